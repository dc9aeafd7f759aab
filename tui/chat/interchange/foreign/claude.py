"""Session files of Claude Code: one JSON object a line, an answer over several lines that share a `requestId`."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tui.chat.conversation.history import RecordKind
from tui.chat.interchange.recording import Recording, compaction, first_words, seconds
from tui.chat.store.ids import new_id
from tui.chat.store.store import Record
from tui.messages import Attachment, Message, MessageKind, Part, Reasoning, Text, ToolCall, ToolResult, Usage

PROVIDER = "anthropic"


def read(lines: Sequence[Mapping[str, Any]], name: str) -> Recording:
    """The main conversation in `lines`; side conversations (`isSidechain`) and error notices are left out.

    Early lines of an answer carry a stale `output_tokens`, so the largest counts. Tool results may stand between two
    lines of one answer: they belong to the next call, and so come after the whole answer here as well.
    """
    reader = _Reader()
    for line in lines:
        reader.take(line)
    messages = tuple(reader.messages)
    return Recording("claude-code", first_words(messages, name), messages, tuple(reader.records), reader.blobs)


class _Reader:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.records: list[Record] = []
        self.blobs: dict[str, bytes] = {}
        self._answers: dict[str, int] = {}  # request id -> position of its message
        self._names: dict[str, str] = {}  # call id -> tool name
        self._start = 0  # where the context begins: after the last compaction
        self._parents: dict[str, str] = {}  # line -> the line it follows
        self._lines: dict[str, set[str]] = {}  # message id -> the lines it stands on

    def take(self, line: Mapping[str, Any]) -> None:
        self._parents[str(line.get("uuid"))] = str(line.get("parentUuid") or "")
        message = line.get("message")
        if not isinstance(message, dict) or line.get("isSidechain"):
            return
        if line.get("type") == "assistant":
            self._answer(line, message)
        elif line.get("type") == "user":
            self._rewind(line, message)
            before = len(self.messages)
            self._input(line, message)
            for added in self.messages[before:]:
                self._lines[added.id] = {str(line.get("uuid"))}

    def _rewind(self, line: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        """A person went back and said something else: set aside what the new line does not follow from.

        Results of parallel calls are no rewind: lines of the same answer stand beside them.
        """
        content = message.get("content")
        typed = isinstance(content, str) or all(block.get("type") == "text" for block in content or [])
        if not typed or line.get("isMeta") or line.get("isCompactSummary"):
            return
        path: set[str] = set()
        at = str(line.get("parentUuid") or "")
        while at in self._parents and at not in path:
            path.add(at)
            at = self._parents[at]
        context = self.messages[self._start :]
        if not context or not path & self._lines.get(context[0].id, set()):
            return  # the beginning is in another file, or was compacted: nothing can be said
        left = [m for m in context if m.role == "assistant" and not self._lines[m.id] & path]
        if not left:
            return
        calls = {part.id for m in left for part in m.parts if isinstance(part, ToolCall)}
        gone = {m.id for m in left}
        for other in context:
            answers = [part.call_id for part in other.parts if isinstance(part, ToolResult)]
            beside = other.role == "user" and not self._lines[other.id] & path
            if beside or (answers and all(call in calls for call in answers)):
                gone.add(other.id)
        ids = [m.id for m in context if m.id in gone]
        self.records.append(Record(new_id(), RecordKind.SET_ASIDE, seconds(line.get("timestamp")), {"ids": ids}))

    def _answer(self, line: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        if message.get("model") == "<synthetic>":
            return
        model = str(message.get("model", ""))
        parts = [part for block in message.get("content") or [] for part in self._part(block, model)]
        key = str(line.get("requestId") or message.get("id") or "")
        usage = _usage(message.get("usage"))
        at = self._answers.get(key) if key else None
        if at is None:
            if key:
                self._answers[key] = len(self.messages)
            ident = new_id()
            self._lines[ident] = {str(line.get("uuid"))}
            self.messages.append(
                Message(
                    "assistant",
                    tuple(parts),
                    id=ident,
                    created_at=seconds(line.get("timestamp")),
                    provider=PROVIDER,
                    model=model,
                    finish_reason=message.get("stop_reason"),
                    usage=usage,
                )
            )
            return
        before = self.messages[at]
        self._lines[before.id].add(str(line.get("uuid")))
        self.messages[at] = replace(
            before,
            parts=(*before.parts, *parts),
            usage=_larger(before.usage, usage),
            finish_reason=message.get("stop_reason") or before.finish_reason,
        )

    def _input(self, line: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        parts = [part for block in blocks for part in self._part(block, "")]
        at = seconds(line.get("timestamp"))
        if line.get("isCompactSummary"):
            self._compact(tuple(parts), at)
            return
        results = tuple(part for part in parts if isinstance(part, ToolResult))
        seen = tuple(part for part in parts if isinstance(part, Attachment)) if results else ()
        rest = tuple(part for part in parts if part not in results and part not in seen)
        if results:
            self.messages.append(Message("tool", (*results, *seen), id=new_id(), created_at=at))
        if rest:
            kind: MessageKind = "injected" if line.get("isMeta") else "chat"
            self.messages.append(Message("user", rest, id=new_id(), kind=kind, created_at=at))

    def _compact(self, parts: tuple[Part, ...], at: float) -> None:
        summary = Message("user", parts, id=new_id(), kind="summary", created_at=at)
        if len(self.messages) > self._start:
            first, last = self.messages[self._start].id, self.messages[-1].id
            count = len(self.messages) - self._start
            self.records.append(compaction(at, first, last, summary.id, (), count))
        self.messages.append(summary)
        self._start = len(self.messages) - 1

    def _part(self, block: Mapping[str, Any], model: str) -> list[Part]:
        match block.get("type"):
            case "text":
                return [Text(str(block["text"]))]
            case "thinking":
                signature = block.get("signature") or None
                return [Reasoning(str(block["thinking"]), PROVIDER, model, signature=signature)]
            case "redacted_thinking":
                return [Reasoning("", PROVIDER, model, redacted=str(block["data"]))]
            case "tool_use":
                self._names[str(block["id"])] = str(block["name"])
                arguments = json.dumps(block.get("input"), ensure_ascii=False)
                return [ToolCall(str(block["id"]), str(block["name"]), arguments)]
            case "tool_result":
                return self._result(block)
            case "image":
                return self._image(block)
            case _:
                return []

    def _result(self, block: Mapping[str, Any]) -> list[Part]:
        content, call = block.get("content") or "", str(block["tool_use_id"])
        inner = [{"type": "text", "text": content}] if isinstance(content, str) else content
        text = "\n".join(str(piece["text"]) for piece in inner if piece.get("type") == "text")
        images = [part for piece in inner if piece.get("type") == "image" for part in self._image(piece)]
        return [ToolResult(call, self._names.get(call, ""), text, bool(block.get("is_error"))), *images]

    def _image(self, block: Mapping[str, Any]) -> list[Part]:
        source = block.get("source") or {}
        if source.get("type") != "base64":
            return []
        data = base64.b64decode(source["data"])
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return [Attachment("image", "image", str(source.get("media_type", "image/png")), digest, len(data))]


def _usage(data: Any) -> Usage | None:
    if not isinstance(data, dict):
        return None
    read, write = data.get("cache_read_input_tokens") or 0, data.get("cache_creation_input_tokens") or 0
    total = int(data.get("input_tokens") or 0) + read + write
    details = data.get("output_tokens_details") or {}
    return Usage(total, int(data.get("output_tokens") or 0), read, write, details.get("thinking_tokens"))


def _larger(one: Usage | None, other: Usage | None) -> Usage | None:
    if one is None or other is None:
        return one or other
    return other if (other.output_total or 0) >= (one.output_total or 0) else one

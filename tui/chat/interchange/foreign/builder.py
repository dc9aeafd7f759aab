"""What the readers share: a conversation while it is made, and shapes that several formats have."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from tui.chat.conversation.history import RecordKind
from tui.chat.interchange.recording import Recording
from tui.chat.store.ids import new_id
from tui.chat.store.store import Record
from tui.context.reduction.records import CompactionRecord, checkpoint_to_json
from tui.messages import (
    Attachment,
    Message,
    MessageKind,
    MessageStatus,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)


class Builder:
    """A conversation so far.

    `start` is the position of the first message that is still in the context, `tool_names` are the tools of the calls,
    by the id of the call.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.records: list[Record] = []
        self.blobs: dict[str, bytes] = {}
        self.tool_names: dict[str, str] = {}
        self.start = 0
        self._summary = ""  # id of the last one: the context begins with it
        self._last_verbatim = ""  # id of the last message that stayed behind it

    def add(
        self,
        role: Role,
        parts: Iterable[Part],
        at: float = 0.0,
        *,
        kind: MessageKind = "chat",
        provider: str = "",
        model: str = "",
        usage: Usage | None = None,
        status: MessageStatus = "complete",
        finish_reason: str | None = None,
        error: str | None = None,
    ) -> str:
        """Append a message, and return its id. Only an answer may have no parts: otherwise nothing is added."""
        content = tuple(parts)
        if not content and role != "assistant":
            return ""
        ident = new_id()
        self.messages.append(
            Message(
                role, content, id=ident, kind=kind, created_at=at, provider=provider, model=model, usage=usage,
                status=status, finish_reason=finish_reason, error=error,
            )
        )  # fmt: skip
        return ident

    def compact(
        self,
        parts: Iterable[Part],
        at: float,
        *,
        verbatim: int | Sequence[str] = (),
        role: Role = "user",
        provider: str = "",
        model: str = "",
        usage: Usage | None = None,
    ) -> None:
        """Replace the context by a summary, except messages that stay `verbatim`: ids, or all from a position on."""
        replaced = self.messages[self.start :]
        if isinstance(verbatim, int):
            verbatim = [message.id for message in self.messages[max(self.start, verbatim) :]]
        content = tuple(parts) or (Text(""),)
        summary = self.add(role, content, at, kind="summary", provider=provider, model=model, usage=usage)
        if replaced:
            self.record_summary(replaced, summary, at, verbatim)
        stay = set(verbatim)
        self.start += next((i for i, message in enumerate(replaced) if message.id in stay), len(replaced))

    def record_summary(
        self, replaced: Sequence[Message], summary: str, at: float, verbatim: Sequence[str] = ()
    ) -> None:
        """Record that the message `summary` replaces others, except those that stay `verbatim`."""
        first, last = self._summary or replaced[0].id, replaced[-1].id
        if last == self._summary:  # nothing was added since
            last = self._last_verbatim or last
        self._summary, self._last_verbatim = summary, max(verbatim, default="")
        self._checkpoint(CompactionRecord(new_id(), at, 0, 0, len(replaced), first, last, summary, tuple(verbatim)))

    def clear(self, results: Iterable[tuple[str, str]], at: float) -> None:
        """Record that tool results (message id, call id) are sent as a fixed line from now on."""
        self._checkpoint(CompactionRecord(new_id(), at, 0, 0, 0, cleared=tuple(results)))

    def _checkpoint(self, record: CompactionRecord) -> None:
        self.records.append(Record(record.id, RecordKind.CHECKPOINT, record.at, dict(checkpoint_to_json(record))))

    def set_aside(self, ids: Iterable[str], at: float | None = None) -> None:
        """Record that messages are not sent any more. Without a time, since the last message."""
        if messages := list(ids):
            at = self.messages[-1].created_at if at is None else at
            self.records.append(Record(new_id(), RecordKind.SET_ASIDE, at, {"ids": messages}))

    def picture(self, media_type: str, data: str) -> list[Attachment]:
        """The attachment for an image or document in base64, its bytes kept; none if it can't be decoded."""
        try:
            raw = base64.b64decode(data)
        except binascii.Error:
            return []
        digest = hashlib.sha256(raw).hexdigest()
        self.blobs[digest] = raw
        kind: Literal["image", "pdf"] = "pdf" if media_type == "application/pdf" else "image"
        return [Attachment(kind, kind, media_type, digest, len(raw))]

    def call(self, ident: object, name: object, arguments: object) -> ToolCall:
        """A tool call. Arguments that are not text are written as JSON."""
        self.tool_names[str(ident)] = str(name)
        return ToolCall(str(ident), str(name), arguments if isinstance(arguments, str) else as_json(arguments))

    def result(self, call: object, text: str, failed: object = False) -> ToolResult:
        """The result of an earlier call, which names the tool."""
        return ToolResult(str(call), self.tool_names.get(str(call), ""), text, bool(failed))

    def anthropic_parts(self, content: Any, provider: str, model: str) -> list[Part]:
        """The parts of a content in the form of Anthropic's API; images of a tool's result follow it."""
        parts: list[Part] = []
        for block in blocks(content):
            match block.get("type"):
                case "text" if block.get("text"):
                    parts.append(Text(str(block["text"])))
                case "thinking":
                    text, signature = str(block.get("thinking") or ""), block.get("signature") or None
                    parts.append(Reasoning(text, provider, model, signature=signature))
                case "redacted_thinking":
                    parts.append(Reasoning("", provider, model, redacted=str(block["data"])))
                case "tool_use":
                    parts.append(self.call(block["id"], block["name"], block.get("input") or {}))
                case "tool_result":
                    pieces = blocks(block.get("content"))
                    loaded = [str(piece.get("tool_name")) for piece in pieces if piece.get("type") == "tool_reference"]
                    text = f"Loaded: {', '.join(loaded)}" if loaded else text_of(pieces)
                    parts.append(self.result(block["tool_use_id"], text, block.get("is_error")))
                    images = [piece for piece in pieces if piece.get("type") == "image"]
                    parts += self.anthropic_parts(images, provider, model)
                case "image" if (source := block.get("source") or {}).get("type") == "base64":
                    parts += self.picture(str(source.get("media_type", "image/png")), str(source["data"]))
        return parts

    def recording(
        self,
        source: str,
        fallback: str,
        title: object = "",
        *,
        window: int | None = None,
        unscored: str = "",
        unpredictable: Mapping[str, str] | None = None,
        corrected: Mapping[str, int] | None = None,
    ) -> Recording:
        """The conversation. Without a title it is the first words of the person, or else `fallback`.

        `unscored` says why, if no answer has a usage.
        """
        return Recording(
            source, str(title or "") or self._first_words() or fallback, tuple(self.messages),
            tuple(self.records), self.blobs, window=window,
            unscored="" if any(message.usage for message in self.messages) else unscored,
            unpredictable=dict(unpredictable or {}), corrected=corrected or {},
        )  # fmt: skip

    def _first_words(self) -> str:
        """The first words of the person."""
        for message in self.messages:
            words = message.text.split() if message.role == "user" and message.kind == "chat" else []
            if words and not words[0].startswith("<"):
                return " ".join(words)[:80]
        return ""


def seconds(stamp: Any) -> float:
    """An ISO time or a number of milliseconds as seconds since the epoch; 0 for anything else."""
    if isinstance(stamp, int | float):
        return float(stamp) / 1000
    try:
        return datetime.fromisoformat(str(stamp).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


def blocks(content: Any) -> list[Any]:
    """The blocks of a message's content, which may be text alone."""
    return [{"type": "text", "text": content}] if content and isinstance(content, str) else content or []


def text_of(pieces: Iterable[Mapping[str, Any]], joint: str = "\n") -> str:
    """The text blocks among `pieces`."""
    return joint.join(str(piece.get("text") or "") for piece in pieces if piece.get("type") == "text")


def results_first(parts: Sequence[Part]) -> tuple[list[Part], list[Part]]:
    """The tool results among `parts`, with all images if there are any results; and the other parts."""
    results: list[Part] = [part for part in parts if isinstance(part, ToolResult)]
    results += [part for part in parts if isinstance(part, Attachment)] if results else []
    return results, [part for part in parts if part not in results]


def texts_in(parts: Iterable[Part], joint: str = "") -> str:
    """The text among a message's parts."""
    return joint.join(part.text for part in parts if isinstance(part, Text))


def as_json(value: Any) -> str:
    """The arguments of a tool call, or a result, as JSON text."""
    return json.dumps(value, ensure_ascii=False)


def ancestors(parents: Mapping[str, Any], leaf: Any) -> list[str]:
    """The nodes of a tree from `leaf` back to the root: a dict, so that a circle ends."""
    path: dict[str, None] = {}
    while leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return list(path)


def usage_with_thoughts(data: Any, prompt: str, answer: str, cached: str, thoughts: str) -> Usage | None:
    """A usage in the form of Gemini's API; None without any input. The others are the names of its fields in `data`.

    The prompt includes cached tokens; the thoughts stand beside the answer.
    """
    if not isinstance(data, Mapping) or not data.get(prompt):
        return None
    total, output, read, reasoning = (int(data.get(name) or 0) for name in (prompt, answer, cached, thoughts))
    return Usage(total, output + reasoning, read, reasoning=reasoning)


def usage_apart(data: Any, fresh: str, output: str, read: str, write: str) -> Usage | None:
    """A usage whose input leaves out what was read from or written to the cache; None without any input.

    The others are the names of its fields in `data`.
    """
    if not isinstance(data, Mapping):
        return None
    fresh_tokens, output_tokens, read_tokens, written = (
        int(data.get(name) or 0) for name in (fresh, output, read, write)
    )
    total = fresh_tokens + read_tokens + written
    return Usage(total, output_tokens, read_tokens, written) if total else None

"""Kimi CLI's `context.jsonl` and Kimi Code's `wire.jsonl` (protocol 1.4), one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tui.chat.interchange.foreign.source import Line, SourceFile
from tui.chat.interchange.recording import Recording, compaction, first_words, seconds
from tui.chat.store.ids import new_id
from tui.chat.store.store import Record
from tui.messages import Message, Part, Reasoning, Text, ToolCall, ToolResult, Usage

SOURCE, NAME = "kimi", "Kimi"
PROVIDER = "moonshotai"


def detect(file: SourceFile) -> bool:
    """Whether `file` is a wire file, or a context file (messages beside `_usage` and `_checkpoint` records)."""
    first = file.lines[:1]
    if any(line.get("type") == "metadata" and "protocol_version" in line for line in first):
        return True
    return any(str(line.get("role", "")).startswith("_") for line in file.lines[:5])


def read(file: SourceFile) -> list[Recording]:
    """The conversation in `file`."""
    if file.lines[0].get("type") == "metadata":
        reader = _Wire()
        file.feed(reader.add)
        messages = tuple(reader.messages)
        return [Recording(SOURCE, first_words(messages, file.stem), messages, tuple(reader.records))]
    context = [message for line in file.lines if (message := _context_message(line)) is not None]
    title = first_words(context, file.stem)
    return [
        Recording(SOURCE, title, tuple(context), unscored="a context file has no usage per call; its wire.jsonl has")
    ]


class _Wire:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.records: list[Record] = []
        self._model = ""
        self._names: dict[str, str] = {}  # call id -> tool name
        self._start = 0  # position in `messages` where the context begins
        self._parts: list[Part] = []  # of the step that is being written
        self._results: list[Part] = []

    def add(self, line: Line) -> None:
        """Take one line. `llm.request` and `usage.record` repeat what the step's end says."""
        at = seconds(line.get("time"))
        match line.get("type"):
            case "config.update" if line.get("modelAlias"):
                self._model = str(line["modelAlias"]).rpartition("/")[2]
            case "context.append_message":
                self._message(line.get("message") or {}, at)
            case "context.append_loop_event":
                self._event(line.get("event") or {}, at)
            case "context.apply_compaction":
                self._compact(line, at)

    def _message(self, data: Mapping[str, Any], at: float) -> None:
        message = _context_message(data)
        if message is not None and message.role == "user":
            injected = (data.get("origin") or {}).get("kind") not in (None, "user")
            message = replace(message, created_at=at, kind="injected" if injected else "chat")
            self.messages.append(message)

    def _event(self, event: Mapping[str, Any], at: float) -> None:
        match event.get("type"):
            case "step.begin":
                self._finish(None, None, at)
            case "content.part":
                part = event.get("part") or {}
                if part.get("type") == "think":
                    self._parts.append(Reasoning(str(part.get("think", "")), PROVIDER, self._model))
                elif part.get("type") == "text":
                    self._parts.append(Text(str(part.get("text", ""))))
            case "tool.call":
                ident, name = str(event.get("toolCallId")), str(event.get("name", ""))
                self._names[ident] = name
                arguments = json.dumps(event.get("args") or {}, ensure_ascii=False)
                self._parts.append(ToolCall(ident, name, arguments))
            case "tool.result":
                self._result(event)
            case "step.end":
                self._finish(_usage(event.get("usage")), event.get("finishReason"), at)

    def _result(self, event: Mapping[str, Any]) -> None:
        ident, result = str(event.get("toolCallId")), event.get("result") or {}
        output = result.get("output", "")
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        part = ToolResult(ident, self._names.get(ident, ""), text, bool(result.get("isError")))
        self._results.append(part)

    def _finish(self, usage: Usage | None, reason: Any, at: float) -> None:
        """The step is over: an answer and, where tools ran, their results."""
        if self._parts or usage is not None:
            parts = tuple(self._parts)
            self.messages.append(
                Message(
                    "assistant", parts, id=new_id(), created_at=at, provider=PROVIDER, model=self._model,
                    finish_reason=str(reason) if reason else None, usage=usage,
                    status="complete" if usage is not None else "interrupted",
                )
            )  # fmt: skip
        if self._results:
            self.messages.append(Message("tool", tuple(self._results), id=new_id(), created_at=at))
        self._parts, self._results = [], []

    def _compact(self, line: Line, at: float) -> None:
        text = str(line.get("contextSummary") or line.get("summary") or "")
        summary = Message("user", (Text(text),), id=new_id(), kind="summary", created_at=at)
        replaced = self.messages[self._start :]
        if replaced:
            self.records.append(compaction(at, replaced[0].id, replaced[-1].id, summary.id, (), len(replaced)))
        self.messages.append(summary)
        self._start = len(self.messages) - 1


def _context_message(data: Mapping[str, Any]) -> Message | None:
    """A message in OpenAI's form; None for the records between them."""
    role, content = data.get("role"), data.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    parts: list[Part] = []
    for block in blocks:
        if block.get("type") == "text" and block.get("text"):
            parts.append(Text(str(block["text"])))
        elif block.get("type") == "think":
            parts.append(Reasoning(str(block.get("think", "")), PROVIDER))
    if role == "user" and parts:
        return Message("user", tuple(parts), id=new_id())
    if role == "assistant":
        for call in data.get("tool_calls") or []:
            function = call.get("function") or {}
            arguments = str(function.get("arguments") or "{}")
            parts.append(ToolCall(str(call.get("id")), str(function.get("name", "")), arguments))
        return Message("assistant", tuple(parts), id=new_id(), provider=PROVIDER, model="kimi") if parts else None
    if role == "tool":
        text = "".join(part.text for part in parts if isinstance(part, Text))
        return Message("tool", (ToolResult(str(data.get("tool_call_id")), "", text),), id=new_id())
    return None


def _usage(data: Any) -> Usage | None:
    """`inputOther` leaves out what was read from or written to the cache."""
    if not isinstance(data, Mapping):
        return None
    read, write = int(data.get("inputCacheRead") or 0), int(data.get("inputCacheCreation") or 0)
    return Usage(int(data.get("inputOther") or 0) + read + write, int(data.get("output") or 0), read, write)

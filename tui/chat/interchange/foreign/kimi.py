"""Kimi CLI's `context.jsonl` and Kimi Code's `wire.jsonl` (protocol 1.4), one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tui.chat.interchange.foreign.reading import Builder, Line, SourceFile, as_json, seconds, texts_in, usage_apart
from tui.chat.interchange.recording import Recording
from tui.messages import MessageKind, Part, Text, Usage

SOURCE, NAME = "kimi", "Kimi"
PROVIDER = "moonshotai"


def detect(file: SourceFile) -> bool:
    """Whether `file` is a wire file, or a context file (messages beside `_usage` and `_checkpoint` records)."""
    return any(
        (line.get("type") == "metadata" and "protocol_version" in line)
        or line.get("type") == "config.update"
        or str(line.get("role", "")).startswith("_")
        for line in file.lines[:5]
    )


def read(file: SourceFile) -> Iterator[Recording]:
    """The conversation in `file`."""
    if not any("role" in line for line in file.lines[:5]):
        reader = _Wire()
        file.feed(reader.read_line)
        yield reader.recording(SOURCE, file.stem)
        return
    context = Builder()
    file.feed(lambda line: _context_message(context, line))
    yield context.recording(SOURCE, file.stem, unscored="a context file has no usage per call; its wire.jsonl has")


class _Wire(Builder):
    def __init__(self) -> None:
        super().__init__()
        self._model = ""
        self._parts: list[Part] = []  # of the step that is being written
        self._results: list[Part] = []

    def read_line(self, line: Line) -> None:
        """Take one line. `llm.request` and `usage.record` repeat what the step's end says."""
        at = seconds(line.get("time"))
        match line.get("type"):
            case "config.update" if line.get("modelAlias"):
                self._model = str(line["modelAlias"]).rpartition("/")[2]
            case "context.append_message" if (message := line.get("message") or {}).get("role") == "user":
                injected = (message.get("origin") or {}).get("kind") not in (None, "user")
                _context_message(self, message, at, "injected" if injected else "chat")
            case "context.append_loop_event":
                self._event(line.get("event") or {}, at)
            case "context.apply_compaction":
                self.compact([Text(str(line.get("contextSummary") or line.get("summary") or ""))], at)

    def _event(self, event: Mapping[str, Any], at: float) -> None:
        match event.get("type"):
            case "step.begin":
                self._finish(None, None, at)
            case "content.part":
                self._parts += self.parts([event.get("part") or {}], PROVIDER, self._model)
            case "tool.call":
                self._parts.append(self.call(event.get("toolCallId"), event.get("name", ""), event.get("args") or {}))
            case "tool.result":
                result = event.get("result") or {}
                output = result.get("output", "")
                text = output if isinstance(output, str) else as_json(output)
                self._results.append(self.result(event.get("toolCallId"), text, result.get("isError")))
            case "step.end":
                usage = usage_apart(event.get("usage"), "inputOther", "output", "inputCacheRead", "inputCacheCreation")
                self._finish(usage, event.get("finishReason"), at)

    def _finish(self, usage: Usage | None, reason: Any, at: float) -> None:
        """The step is over: an answer and, where tools ran, their results."""
        if self._parts or usage is not None:
            self.add(
                "assistant", self._parts, at, provider=PROVIDER, model=self._model, usage=usage,
                finish_reason=reason,
                status="complete" if usage is not None else "interrupted",
            )  # fmt: skip
        self.add("tool", self._results, at)
        self._parts, self._results = [], []


def _context_message(chat: Builder, data: Mapping[str, Any], at: float = 0.0, kind: MessageKind = "chat") -> None:
    """Add a message in OpenAI's form, nothing for the records between them."""
    parts = chat.parts(data.get("content"), PROVIDER)
    match data.get("role"):
        case "user":
            chat.add("user", parts, at, kind=kind)
        case "assistant":
            for call in data.get("tool_calls") or []:
                function = call.get("function") or {}
                parts.append(chat.call(call.get("id"), function.get("name", ""), function.get("arguments") or "{}"))
            if parts:
                chat.add("assistant", parts, provider=PROVIDER, model="kimi")
        case "tool":
            chat.add("tool", [chat.result(data.get("tool_call_id"), texts_in(parts))])

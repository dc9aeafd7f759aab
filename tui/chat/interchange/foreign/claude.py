"""Session files of Claude Code: one JSON object a line, an answer over several lines that share a `requestId`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tui.chat.interchange.foreign.reading import Builder, Line, SourceFile, ancestors, blocks, seconds, text_or_none
from tui.chat.interchange.recording import Recording
from tui.messages import Part, Text, ToolCall, ToolResult, Usage
from tui.providers.usage_reading import read_usage

SOURCE, NAME = "claude-code", "Claude Code"
PROVIDER = "anthropic"

SMALL_WINDOW, LARGE_WINDOW = 200_000, 1_000_000  # tokens: without "[1m]" behind the model's name, and with it

_NOT_SENT = frozenset(
    {
        "already_read_file", "command_permissions", "context_efficiency", "current_session_memory", "dynamic_skill",
        "edited_image_file", "hook_cancelled", "hook_deferred_tool", "hook_error_during_execution",
        "hook_non_blocking_error", "hook_permission_decision", "hook_system_message", "prompt_snapshot",
        "structured_output",
    }
)  # fmt: skip
"""Kinds of `attachment` lines that are for the screen or the record only, as observed up to 2.1.258."""

_NOT_IN_FILE = ("auto_mode", "plan_mode")
"""Prefixes of kinds whose text is sent, but is not in the file."""

_CONTENT = (
    "filename", "path", "content", "snippet", "text", "message", "body", "files", "memories", "skills", "context",
    "snapshot", "planFilePath", "planContent", "addedBlocks", "addedLines", "removedNames", "newDate", "blockingError",
    "response", "description",
)  # fmt: skip
"""Fields of the other kinds that are sent."""


def detect(file: SourceFile) -> bool:
    """Whether `file` is a session, of a conversation or of a sub-agent."""
    return any("sessionId" in line or "leafUuid" in line or "snapshot" in line for line in file.lines)


def read(file: SourceFile) -> Iterator[Recording]:
    """The conversation in `file`. In a file of a sub-agent that is the sub-agent's (every line `isSidechain`), in any
    other file side conversations and error notices are left out.

    Early lines of an answer carry a stale `output_tokens`, so the largest counts. Tool results may stand between two
    lines of one answer: they belong to the next call, and so come after the whole answer here as well.
    """
    talk = [line for line in file.lines if isinstance(line.get("message"), dict)]
    reader = Reader(side=bool(talk) and all(line.get("isSidechain") for line in talk))
    file.feed(reader.read_line)
    reader.finish()
    yield reader.recording(SOURCE, file.stem)


class Reader(Builder):
    """Reads a session line by line, also while it grows."""

    source = SOURCE

    def __init__(self, *, side: bool = False) -> None:
        super().__init__()
        self._side = side
        self._answers: dict[str, int] = {}  # request id -> position of its message
        self._results: dict[str, str] = {}  # call id -> id of the message with its result
        self._parents: dict[str, str] = {}  # line -> the line it follows
        self._lines: dict[str, set[str]] = {}  # message id -> the lines it stands on
        self._last_typed, self._compared = "", 0  # the last line that a person typed, and the messages before it
        self._left: set[str] = set()  # messages of this context that were set aside
        self._queue: list[tuple[str, float]] = []  # what a person typed meanwhile, and when
        self._dequeued = 0  # the first ones of them, which are sent with the next line

    def read_line(self, line: Line) -> None:
        """Take one line."""
        uuid, message = str(line.get("uuid")), line.get("message")
        self._parents[uuid] = str(line.get("parentUuid") or "")
        if bool(line.get("isSidechain")) != self._side and line.get("type") != "queue-operation":
            return
        before = len(self.messages)
        if self._queue:
            self._send_dequeued(line)
        match line.get("type"):
            case "assistant" if isinstance(message, dict):
                self._answer(line, message)
            case "user" if isinstance(message, dict):
                self._rewind(line, message)
                self._input(line, message)
            case "attachment":
                self._attachment(line)
            case "queue-operation" if line.get("operation") == "enqueue":  # before 2.1 it stands nowhere else
                self._queue.append((str(line.get("content") or ""), seconds(line.get("timestamp"))))
            case "queue-operation":
                self._dequeued = min(self._dequeued + 1, len(self._queue))
            case "system" if line.get("subtype") == "microcompact_boundary":
                self._cleared(line)
            case "system" if line.get("subtype") == "compact_boundary":
                metadata = line.get("compactMetadata") or {}
                tokens = (metadata.get("preTokens") or 0) if metadata.get("trigger") == "auto" else 0
                if SMALL_WINDOW / 2 < tokens <= SMALL_WINDOW:  # it compacts by itself when that is nearly full
                    self.window = SMALL_WINDOW
        for added in self.messages[before:]:
            self._lines[added.id] = {uuid}

    def finish(self) -> None:
        """Add what a person typed last and the program did not send."""
        for text, at in self._queue:
            self._typed(text, at)

    def _send_dequeued(self, line: Line) -> None:
        """Make messages of the dequeued texts, unless `line` has the same text."""
        if line.get("type") not in ("user", "assistant", "attachment"):
            return
        content: Any = (line.get("attachment") or {}).get("prompt")
        if line.get("type") == "user":
            content = (line.get("message") or {}).get("content")
        parts = self.parts(content if isinstance(content, str | list) else None)
        texts = {part.text.strip() for part in parts if isinstance(part, Text)}
        dequeued, self._queue = self._queue[: self._dequeued], self._queue[self._dequeued :]
        self._dequeued = 0
        self._queue = [entry for entry in self._queue if entry[0].strip() not in texts]
        for text, at in dequeued:
            if text.strip() not in texts:
                self._typed(text, at)

    def _typed(self, text: str, at: float) -> None:
        if text.strip() and not text.startswith("/"):
            kind = "injected" if text.lstrip().startswith("<") else "chat"  # results of agents are marked up
            self.add("user", [Text(text)], at, kind=kind)

    def _attachment(self, line: Line) -> None:
        """Add context that is sent as a reminder, or (`queued_command`) a prompt typed while the agent ran."""
        data = line.get("attachment") or {}
        at = seconds(line.get("timestamp"))
        kind = str(data.get("type") or "")
        if kind == "queued_command":
            prompt = data.get("prompt") or data.get("content")
            origin = (data.get("origin") or {}).get("kind", "human")
            typed = data.get("commandMode", "prompt") == "prompt" and origin == "human"
            self.add("user", self.parts(prompt, PROVIDER), at, kind="chat" if typed else "injected")
        elif kind.startswith(_NOT_IN_FILE):
            if data.get("reminderType") != "sparse":  # which is a sentence
                self.lacking = f"the instructions of {kind[:4]} mode"
        elif kind not in _NOT_SENT:
            self.add("user", self._reminder(data), at, kind="injected")

    def _reminder(self, data: Mapping[str, Any]) -> list[Part]:
        """The parts of an attachment that are sent."""
        match data.get("type"):
            case "file":
                return self._file(data)
            case "task_reminder":
                lines = [f"#{task['id']}. [{task['status']}] {task['subject']}" for task in data.get("content") or []]
            case "hook_success" if data.get("hookEvent") not in ("SessionStart", "UserPromptSubmit"):
                return []
            case _:
                lines = [text for field in _CONTENT for text in _strings(data.get(field))]
                if not data.get("addedLines"):
                    lines += _strings(data.get("addedNames"))
        return [Text("\n".join(lines))] if any(lines) else []

    def _file(self, data: Mapping[str, Any]) -> list[Part]:
        """A file that a person named with @: it is sent as if the model had read it."""
        content = data.get("content") or {}
        file = content.get("file") or {}
        if content.get("type") in ("image", "pdf"):
            media = "application/pdf" if content["type"] == "pdf" else str(file.get("type") or "image/png")
            return [*self.picture(media, str(file.get("base64") or ""))]
        text = file.get("content") if content.get("type") == "text" else None
        if text is None:
            return [Text("\n".join((str(data.get("filename") or ""), *_strings(content))))]
        numbered = enumerate(str(text).split("\n"), int(file.get("startLine") or 1))
        lines = "\n".join(f"{number}\t{line}" for number, line in numbered)
        return [Text(f"{data.get('filename') or ''}\n{lines}")]

    def _cleared(self, line: Mapping[str, Any]) -> None:
        """Record old tool results that are sent as a fixed line from now on."""
        calls = (line.get("microcompactMetadata") or {}).get("compactedToolIds") or []
        cleared = [(self._results[call], call) for call in calls if call in self._results]
        if cleared:
            self.clear(cleared, seconds(line.get("timestamp")))

    def _rewind(self, line: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        """If the person went back and wrote something else, set aside what the new line does not follow.

        Results of parallel calls are no rewind: lines of the same answer stand beside them.
        """
        content = message.get("content")
        typed = isinstance(content, str) or all(block.get("type") == "text" for block in content or [])
        if not typed or line.get("isMeta") or line.get("isCompactSummary"):
            return
        if not self._is_rewind(str(line.get("uuid")), str(line.get("parentUuid") or "")):
            return
        path = set(ancestors(self._parents, line.get("parentUuid")))
        context = [m for m in self.messages[self.start :] if m.id not in self._left]
        if not context or path.isdisjoint(self._lines.get(context[0].id, ())):
            return  # the beginning is in another file, or was compacted: it is unknown
        abandoned = {m.id for m in context if m.role != "tool" and path.isdisjoint(self._lines.get(m.id, path))}
        answers = [m for m in context if m.role == "assistant" and m.id in abandoned]
        calls = {part.id for m in answers for part in m.parts if isinstance(part, ToolCall)}
        for other in context:
            results = [part.call_id for part in other.parts if isinstance(part, ToolResult)]
            if results and calls.issuperset(results):
                abandoned.add(other.id)
        if answers or self._left:  # without a rewind, what stands beside the path is sent too
            self._left |= abandoned
            self.set_aside((m.id for m in context if m.id in abandoned), seconds(line.get("timestamp")))

    def _is_rewind(self, uuid: str, parent: str) -> bool:
        """Whether a typed line does not follow the last one and all since then; looks at no more than that."""
        newer = ancestors(self._parents, parent, end=self._last_typed)
        follows = (self._parents[newer[-1]] if newer else parent) == self._last_typed
        path = {*newer, self._last_typed}
        roles = ("assistant", "user") if self._left else ("assistant",)  # as in `_rewind`
        fresh = (m for m in self.messages[self._compared :] if m.role in roles)
        self._last_typed, self._compared = uuid, len(self.messages)
        return not follows or any(path.isdisjoint(self._lines.get(m.id, path)) for m in fresh)

    def _answer(self, line: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        if message.get("model") == "<synthetic>":
            return
        model = str(message.get("model", ""))
        parts = self.parts(message.get("content") or [], PROVIDER, model)
        key = str(line.get("requestId") or message.get("id") or "")
        usage = read_usage(message.get("usage"))
        if usage is not None and (usage.input_total or 0) > SMALL_WINDOW:
            self.window = LARGE_WINDOW
        at = self._answers.get(key)
        if at is None:
            if key:
                self._answers[key] = len(self.messages)
            if usage is not None and usage.searches:
                self.lacking = "what the server read by itself"
            self.add(
                "assistant", parts, seconds(line.get("timestamp")), provider=PROVIDER, model=model, usage=usage,
                finish_reason=message.get("stop_reason"),
            )  # fmt: skip
            return
        before = self.messages[at]
        self._lines[before.id].add(str(line.get("uuid")))
        self.messages[at] = replace(
            before,
            parts=(*before.parts, *parts),
            usage=_larger(before.usage, usage),
            finish_reason=text_or_none(message.get("stop_reason")) or before.finish_reason,
        )

    def _input(self, line: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        content = blocks(message.get("content"))
        parts, at = self.parts(content, PROVIDER), seconds(line.get("timestamp"))
        if line.get("isCompactSummary"):
            self.compact(parts, at)
            self._left.clear()
            return
        answered = (block for block in content if block.get("type") == "tool_result")
        pieces = (piece for block in answered for piece in blocks(block.get("content")))
        if any(piece.get("type") == "tool_reference" for piece in pieces):
            self.lacking = "the schemas of tools that were loaded"
        results = self.add_entry("user", parts, at, kind="injected" if line.get("isMeta") else "chat")
        self._results |= {part.call_id: results for part in parts if isinstance(part, ToolResult)}


def _strings(value: Any) -> list[str]:
    """Every text in `value`, in its order."""
    if isinstance(value, str):
        return [value] if value else []
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _strings(item)]


def _larger(first: Usage | None, second: Usage | None) -> Usage | None:
    if first is None or second is None:
        return first or second
    return second if (second.output_total or 0) >= (first.output_total or 0) else first

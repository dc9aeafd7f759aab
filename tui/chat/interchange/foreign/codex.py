"""Rollout files of OpenAI Codex: `{timestamp, type, payload}`, one JSON object a line, appended only.

`response_item` lines are what the model reads and writes; `event_msg` lines are copies for display: only their token
counts and rollbacks are used here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tui.chat.interchange.foreign.reading import Builder, Line, SourceFile, as_json, blocks, seconds, texts_in
from tui.chat.interchange.recording import Recording
from tui.messages import Attachment, Part, Reasoning, Text, ToolCall, Usage
from tui.providers.wire import find_count, object_of

SOURCE, NAME = "codex", "Codex"

_REPLAY_SECONDS = 1.0
"""A fork's file begins with a copy of its parent's lines, written within milliseconds; no own call is that fast."""
_INJECTED = ("<", "# AGENTS.md")  # beginnings of user messages that Codex writes itself
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output")


def detect(file: SourceFile) -> bool:
    """Whether `file` is a rollout; those of before September 2025 have no envelope."""
    return any(
        (line.get("type") in ("session_meta", "response_item") and "payload" in line)
        or line.get("record_type") == "state"
        for line in file.lines[:5]
    )


def read(file: SourceFile) -> Iterator[Recording]:
    """The conversation in `file`."""
    reader = Reader()
    file.feed(reader.read_line)
    reader.close_answer()
    yield reader.recording(SOURCE, file.stem)


class Reader(Builder):
    """Reads a rollout line by line, also while it grows."""

    source = SOURCE

    def __init__(self) -> None:
        super().__init__()
        self._fork: bool | None = None  # None until the first `session_meta`
        self._began = 0.0
        self._provider = "openai"
        self._model = ""
        self._total: object = None  # the thread's running sum at the last token count
        self._at = 0.0
        self._answer: list[Part] = []  # parts of an answer whose token count has not come yet
        self._results: list[Part] = []  # outputs of calls in `_answer`
        self._rolled_back: set[str] = set()  # ids of messages

    def read_line(self, line: Line) -> None:
        """Take one line."""
        payload = object_of(line.get("payload"))
        self._at = seconds(line.get("timestamp")) or self._at
        match line.get("type"):
            case "session_meta" if self._fork is None:
                self._fork = bool(payload.get("forked_from_id"))
                self._provider = str(payload.get("model_provider") or "openai")
                self._began = self._at
            case "turn_context":
                self._model = str(payload.get("model") or self._model)
            case "response_item":
                self._item(payload)
            case "event_msg":
                self._event(payload)
            case "compacted":
                self._compacted(payload)
            case "message" | "reasoning" | "function_call" | "function_call_output":
                self._item(line)  # no envelope: a file of before September 2025

    def _event(self, payload: Mapping[str, Any]) -> None:
        match payload.get("type"):
            case "token_count":
                self._token_count(payload.get("info") or {})
            case "task_started" if payload.get("model_context_window"):
                self.window = find_count(payload, "model_context_window")
            case "thread_rolled_back":
                self.close_answer()
                self._roll_back(find_count(payload, "num_turns") or 0)
            case "turn_aborted":
                self.close_answer()

    def _roll_back(self, turns: int) -> None:
        thread = [message for message in self.messages if message.id not in self._rolled_back]
        questions = [i for i, message in enumerate(thread) if message.role == "user" and message.kind == "chat"]
        if questions and turns:
            ids = [message.id for message in thread[questions[max(0, len(questions) - turns)] :]]
            self._rolled_back.update(ids)
            self.set_aside(ids, self._at)

    def _token_count(self, info: Mapping[str, Any]) -> None:
        """A call is a count whose running sum differs from the one before: the same one is written again and again."""
        if info.get("model_context_window"):
            self.window = find_count(info, "model_context_window")
        total, last = info.get("total_token_usage"), info.get("last_token_usage")
        if total is None or total == self._total or not last or not last.get("input_tokens"):
            return
        first, self._total = self._total is None, total
        usage = _usage(last)
        if self._fork and (self._at - self._began < _REPLAY_SECONDS or (first and total != last)):
            self.close_answer(reasoning=usage.reasoning)  # a call of the parent, not of this session
        else:
            self.close_answer(usage, usage.reasoning)

    def close_answer(self, usage: Usage | None = None, reasoning: int | None = None) -> None:
        """End the open answer, with the usage and the reasoning tokens reported for it, if any."""
        if not self._answer and usage is None:
            return
        for number, part in enumerate(self._answer):
            if isinstance(part, Reasoning):  # the file has their sum only: the first block gets it
                self._answer[number] = replace(part, tokens=reasoning)
                reasoning = 0 if reasoning is not None else None
        self.add("assistant", self._answer, self._at, provider=self._provider, model=self._model, usage=usage)
        self.add("tool", self._results, self._at)
        self._answer, self._results = [], []

    def _item(self, item: Mapping[str, Any]) -> None:
        match item.get("type"):
            case "message" | "agent_message" | "additional_tools":
                self._message(item)
            case "reasoning":
                summary = "\n".join(str(piece.get("text", "")) for piece in item.get("summary") or [])
                encrypted = str(item.get("encrypted_content") or "")
                encrypted = "" if encrypted == "REDACTED" else encrypted
                ident = str(item.get("id") or "") or None
                self._answer.append(Reasoning(summary, self._provider, self._model, encrypted=encrypted, item_id=ident))
            case kind if kind in _CALLS:
                self._call(item)
            case kind if kind in _OUTPUTS:
                self._output(item)
            case "web_search_call":
                self.lacking = "what the server read by itself"
            case "image_generation_call":
                self.lacking = "pictures that the server made"

    def _message(self, item: Mapping[str, Any]) -> None:
        """A message, also of another agent, or schemas of tools loaded later."""
        content, role = blocks(item.get("content")), item.get("role")
        parts = self.parts(content)
        if role == "assistant" and item["type"] == "message":
            self._answer += parts
            return
        self.close_answer()
        if any(piece.get("type") == "encrypted_content" for piece in content):
            self.lacking = "what agents told each other"
        if item.get("tools"):
            parts.append(Text(as_json(item["tools"])))
        typed = role == "user" and not texts_in(parts).strip().startswith(_INJECTED)
        self.add("user", parts, self._at, kind="chat" if typed else "injected")

    def _call(self, item: Mapping[str, Any]) -> None:
        name = str(item.get("name") or item["type"])
        arguments = item.get("arguments", item.get("input", item.get("action", {})))
        if item["type"] == "custom_tool_call":
            arguments = as_json(arguments)
        ident = str(item.get("call_id") or item.get("id") or f"call-{len(self.tool_names)}")
        self._answer.append(self.call(ident, name, arguments))

    def _output(self, item: Mapping[str, Any]) -> None:
        """An output belongs to the request after the one that called, wherever its line stands."""
        ident = str(item.get("call_id") or "")
        tools, output = item.get("tools"), item.get("output")  # tools that a search loaded
        if isinstance(output, dict):
            output = output.get("content") or output.get("output") or ""
        parts = self.parts(as_json(tools) if tools else output)
        images = [part for part in parts if isinstance(part, Attachment)]
        result: list[Part] = [self.result(ident, texts_in(parts)), *images]
        if any(isinstance(part, ToolCall) and part.id == ident for part in self._answer):
            self._results += result
        else:
            self.add("tool", result, self._at)

    def _compacted(self, payload: Mapping[str, Any]) -> None:
        """`replacement_history` is the whole new context: what was there before stays, the rest is the summary."""
        self.close_answer()
        items = payload.get("replacement_history") or []
        unused: dict[tuple[str, str], str] = {}  # role and text -> message id
        for message in self.messages[self.start :]:
            if not any(isinstance(part, ToolCall) for part in message.parts):
                unused[message.role, message.text] = message.id
        verbatim: list[str] = []
        texts = [str(payload.get("message") or "")]
        for item in items:
            parts = self.parts(item.get("content")) if item.get("type") == "message" else []
            text = texts_in(parts)
            role = "assistant" if item.get("role") == "assistant" else "user"
            same = unused.pop((role, text), "")
            if same:
                verbatim.append(same)
            else:
                texts.append(text)
        text = "\n\n".join(filter(None, texts)) or "[Compacted by Codex. Its summary is encrypted in the file.]"
        self.compact([Text(text)], self._at, verbatim=verbatim)


def _usage(data: Mapping[str, Any]) -> Usage:
    """`input_tokens` includes cached tokens, `output_tokens` includes reasoning."""
    return Usage(
        find_count(data, "input_tokens"),
        find_count(data, "output_tokens") or 0,
        find_count(data, "cached_input_tokens") or 0,
        find_count(data, "cache_write_input_tokens"),
        find_count(data, "reasoning_output_tokens") or 0,
    )

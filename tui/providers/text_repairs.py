"""Repairs of what servers stream: reasoning left in the text, and surrogates. Pure.

Servers without a reasoning parser (llama.cpp with `--reasoning-format none`, older Ollama and LM Studio, plain proxies)
send the model's reasoning as text, `<think>…</think>` at the beginning of an answer. It is separated while it streams,
so that it is shown, counted and sent back as reasoning.

A server that escapes its JSON writes an emoji as a surrogate pair, and some split it between two pieces of the answer.
A lone surrogate can be neither printed nor sent back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import isfinite
from typing import Any, Literal, TypeAlias, TypeVar

from tui.providers.base import (
    ModelNamed,
    ReasoningDelta,
    ReasoningMeta,
    RefusalDelta,
    SourceCited,
    StreamEvent,
    TextDelta,
    TextMeta,
    ToolCallDelta,
    UsageUpdate,
)

# Opening and closing tags: DeepSeek R1, Qwen and most others; Kimi; Gemini's Chat endpoint.
MARKS = {"<think>": "</think>", "<thinking>": "</thinking>", "<thought>": "</thought>", "◁think▷": "◁/think▷"}


BESIDE = (TextMeta, SourceCited, UsageUpdate, ModelNamed)
"""Events that may come with any piece of a text, before it and in its middle."""


class ThinkTags:
    """Passes the events of one answer on, with reasoning separated that was left in the text.

    Only a tag at the very beginning counts (preceding blanks are dropped with it): an answer about `<think>` is left
    unchanged. Text that may become a tag is held back. If the tag is never closed, everything is reasoning. If the
    server separates reasoning itself, or with `on` False, all text is text.
    """

    def __init__(self, *, on: bool = True) -> None:
        self._state: Literal["start", "thinking", "blanks", "text"] = "start" if on else "text"
        self._block: int | None = None  # of the text
        self._pending = ""  # text that may be a tag, or part of one
        self._close = ""  # the closing tag of the open reasoning
        self._begun = False  # whether reasoning text was emitted

    def read(self, events: Iterable[StreamEvent]) -> Iterator[StreamEvent]:
        """`events`, with reasoning separated from text."""
        for event in events:
            match event:
                case TextDelta(text, block) if self._state != "text":
                    self._block = block
                    yield from self._split(text)
                case TextDelta():
                    yield event
                case _ if isinstance(event, BESIDE):
                    yield event
                case _:
                    yield from self.flush()
                    if isinstance(event, ReasoningDelta | ReasoningMeta):
                        self._state = "text"
                    yield event

    def flush(self) -> Iterator[StreamEvent]:
        """The pending text, when something else follows or the answer breaks off."""
        pending, self._pending = self._pending, ""
        if pending and self._state != "blanks":
            yield ReasoningDelta(pending) if self._state == "thinking" else TextDelta(pending, self._block)
        if self._state == "start":
            self._state = "text"

    def _split(self, text: str) -> Iterator[StreamEvent]:
        self._pending += text
        if self._state == "start":
            self._open()
        if self._state == "thinking":
            yield from self._think()
        if self._state == "blanks":  # those after the reasoning
            self._pending = self._pending.lstrip()
            self._state = "text" if self._pending else "blanks"
        if self._state == "text" and self._pending:
            pending, self._pending = self._pending, ""
            yield TextDelta(pending, self._block)

    def _open(self) -> None:
        start = self._pending.lstrip()
        for mark, close in MARKS.items():
            if start.startswith(mark):
                self._state, self._close, self._pending = "thinking", close, start[len(mark) :]
                return
        if not any(mark.startswith(start) for mark in MARKS):
            self._state = "text"

    def _think(self) -> Iterator[ReasoningDelta]:
        pending = self._pending if self._begun else self._pending.lstrip("\n")
        thought, mark, rest = pending.partition(self._close)
        if mark:
            self._state, self._pending = "blanks", rest
            thought = thought.rstrip()
        else:
            sizes = range(min(len(self._close) - 1, len(thought)), 0, -1)
            keep = next((size for size in sizes if thought.endswith(self._close[:size])), 0)  # may begin the mark
            thought, self._pending = thought[: len(thought) - keep], thought[len(thought) - keep :]
        if thought:
            self._begun = True
            yield ReasoningDelta(thought)


def thought_before(text: str) -> tuple[str, str] | None:
    """The reasoning and the answer in a text in which a tag closes that was never opened; None for any other.

    Chat templates that begin the answer themselves (DeepSeek R1, QwQ, Qwen 3 Thinking) leave only the closing tag in
    it, on a line of its own. While it streams nothing tells that it is reasoning.
    """
    for mark, close in MARKS.items():
        thought, found, answer = text.partition(f"\n{close}\n")
        if found and mark not in thought:
            return thought.strip(), answer.lstrip()
    return None


_Piece: TypeAlias = TextDelta | RefusalDelta | ReasoningDelta | ToolCallDelta
_PieceT = TypeVar("_PieceT", bound=_Piece)


def whole_text(text: str) -> str:
    """`text` as it can be encoded: split surrogate pairs are joined, lone surrogates become U+FFFD.

    Servers that escape their JSON split emoji between two pieces of an answer.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def whole_texts(value: Any) -> Any:
    """A JSON value with `whole_text` applied to all strings, and null for NaN and infinite numbers."""
    match value:
        case float() if not isfinite(value):
            return None
        case str():
            return whole_text(value)
        case dict():
            return {whole_text(key): whole_texts(inner) for key, inner in value.items()}
        case list():
            return [whole_texts(inner) for inner in value]
        case _:
            return value


class SurrogateJoiner:
    """Holds back a high surrogate at the end of a piece until the low one arrives; a lone one becomes U+FFFD."""

    def __init__(self) -> None:
        self._pending: _Piece | None = None

    def read(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """`event` with complete characters."""
        if isinstance(event, BESIDE):
            yield event
            return
        if self._pending is not None and not (isinstance(event, _Piece) and _place(self._pending) == _place(event)):
            yield from self.rest()
        if not isinstance(event, _Piece):
            yield event
            return
        text = _text(event) if self._pending is None else _text(self._pending) + _text(event)
        self._pending = None
        if "\ud800" <= text[-1:] <= "\udbff":
            self._pending, text = _with_text(event, text[-1]), text[:-1]
        if text or isinstance(event, ToolCallDelta):  # it may carry the call's name
            yield _with_text(event, whole_text(text))

    def rest(self) -> Iterator[StreamEvent]:
        """The pending event, when the answer ends or another part begins."""
        pending, self._pending = self._pending, None
        if pending is not None:
            yield _with_text(pending, "\ufffd")


def _text(event: _Piece) -> str:
    return event.arguments if isinstance(event, ToolCallDelta) else event.text


def _with_text(event: _PieceT, text: str) -> _PieceT:
    if text == _text(event):
        return event
    return replace(event, arguments=text) if isinstance(event, ToolCallDelta) else replace(event, text=text)


def _place(event: _Piece) -> tuple[type[_Piece], int | None]:
    """The part of the answer that a piece belongs to."""
    index = event.index if isinstance(event, ToolCallDelta) else getattr(event, "block", None)
    return type(event), index

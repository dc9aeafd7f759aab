"""Joins surrogate pairs that a server split between two pieces of its answer. Pure.

A server that escapes its JSON writes an emoji as a surrogate pair, and some split it. A lone surrogate can be neither
printed nor sent back.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import TypeAlias, TypeVar

from tui.providers.base import ReasoningDelta, RefusalDelta, StreamEvent, TextDelta, ToolCallDelta
from tui.providers.wire import whole_text

_Piece: TypeAlias = TextDelta | RefusalDelta | ReasoningDelta | ToolCallDelta
_PieceT = TypeVar("_PieceT", bound=_Piece)


class SurrogateJoiner:
    """Holds back a high surrogate at the end of a piece until the low one arrives; a lone one becomes U+FFFD."""

    def __init__(self) -> None:
        self._pending: _Piece | None = None

    def read(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """`event` with complete characters."""
        pending = self._pending
        if pending is None and (not isinstance(event, _Piece) or _text(event).isascii()):
            yield event
            return
        if pending is not None and not (isinstance(event, _Piece) and _place(pending) == _place(event)):
            yield from self.rest()
            pending = None
        if not isinstance(event, _Piece):
            yield event
            return
        self._pending = None
        text = (_text(pending) if pending is not None else "") + _text(event)
        if "\ud800" <= text[-1:] <= "\udbff":
            self._pending, text = _with_text(event, text[-1]), text[:-1]
        if text or isinstance(event, ToolCallDelta):  # it may carry the call's name
            yield _with_text(event, whole_text(text))

    def rest(self) -> Iterator[StreamEvent]:
        """The pending event, when the answer ends or another part begins."""
        pending, self._pending = self._pending, None
        if pending is not None:
            yield _with_text(pending, "\ufffd")


async def whole_characters(stream: AsyncGenerator[StreamEvent, None]) -> AsyncGenerator[StreamEvent, None]:
    """`stream` with complete characters. Raises `ProviderError`."""
    joiner = SurrogateJoiner()
    async with aclosing(stream) as events:
        async for event in events:
            for whole in joiner.read(event):
                yield whole
    for whole in joiner.rest():
        yield whole


def _text(event: _Piece) -> str:
    return event.arguments if isinstance(event, ToolCallDelta) else event.text


def _with_text(event: _PieceT, text: str) -> _PieceT:
    return replace(event, arguments=text) if isinstance(event, ToolCallDelta) else replace(event, text=text)


def _place(event: _Piece) -> tuple[type[_Piece], int | None]:
    """The part of the answer that a piece belongs to."""
    match event:
        case ToolCallDelta(index=index):
            return ToolCallDelta, index
        case RefusalDelta():
            return RefusalDelta, None
        case _:
            return type(event), event.block

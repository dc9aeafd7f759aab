"""Characters that a server split between two pieces of its answer: put together before anybody sees them. Pure.

A server that escapes its JSON writes an emoji as two halves (a surrogate pair), and some cut between them. A half can
be neither printed nor sent back.
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


class Halves:
    """Holds back half a character at a piece's end until the other half comes; left alone it becomes U+FFFD."""

    def __init__(self) -> None:
        self._held: _Piece | None = None

    def read(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """`event`, with whole characters."""
        held = self._held
        if held is None and (not isinstance(event, _Piece) or _said(event).isascii()):
            yield event
            return
        if held is not None and not (isinstance(event, _Piece) and _place(held) == _place(event)):
            yield from self.rest()
            held = None
        if not isinstance(event, _Piece):
            yield event
            return
        self._held = None
        text = (_said(held) if held is not None else "") + _said(event)
        if "\ud800" <= text[-1:] <= "\udbff":
            self._held, text = _saying(event, text[-1]), text[:-1]
        if text or isinstance(event, ToolCallDelta):  # that one may bring the call's name
            yield _saying(event, whole_text(text))

    def rest(self) -> Iterator[StreamEvent]:
        """What is still held back, when the answer ends or goes on otherwise."""
        held, self._held = self._held, None
        if held is not None:
            yield _saying(held, "\ufffd")


async def whole_characters(stream: AsyncGenerator[StreamEvent, None]) -> AsyncGenerator[StreamEvent, None]:
    """`stream` without half characters. Raises `ProviderError`."""
    halves = Halves()
    async with aclosing(stream) as events:
        async for event in events:
            for whole in halves.read(event):
                yield whole
    for whole in halves.rest():
        yield whole


def _said(event: _Piece) -> str:
    return event.arguments if isinstance(event, ToolCallDelta) else event.text


def _saying(event: _PieceT, text: str) -> _PieceT:
    return replace(event, arguments=text) if isinstance(event, ToolCallDelta) else replace(event, text=text)


def _place(event: _Piece) -> tuple[type[_Piece], int | None]:
    """Which part of the answer a piece belongs to."""
    match event:
        case ToolCallDelta(index=index):
            return ToolCallDelta, index
        case RefusalDelta():
            return RefusalDelta, None
        case _:
            return type(event), event.block

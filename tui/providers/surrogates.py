"""Surrogates: joins pairs that a server split between two pieces of its answer, and replaces lone ones. Pure.

A server that escapes its JSON writes an emoji as a surrogate pair, and some split it. A lone surrogate can be neither
printed nor sent back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from tui.providers.base import ReasoningDelta, RefusalDelta, StreamEvent, TextDelta, ToolCallDelta

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
    """A JSON value with `whole_text` applied to all strings."""
    match value:
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

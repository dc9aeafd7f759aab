"""Server-sent events, parsed as the HTML standard says (section 9.2.6, "Interpreting an event stream"), and the memory
that a server's text takes. Pure.

Not the HTTP library's `EventSource`: it refuses other content types and does not tell of comments, a sign of life.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tui.providers.base import ProviderError, StreamEvent, UsageUpdate
from tui.text.numbers import size_text

_PIECE = 64  # bytes of a piece of a line in addition to its characters
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """An event with data. `name` is "" if the server sends none."""

    name: str
    data: str


class SSEDecoder:
    """Decodes a stream in pieces of any size. Ignores events without data, and one not ended by a blank line.

    An event may take `limit` bytes of memory. `lines` counts complete lines.
    """

    def __init__(self, limit: int) -> None:
        self.lines = 0
        self._limit = limit
        self._size = 0  # bytes of the event so far
        self._text = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._line: list[str] = []  # pieces of the incomplete line
        self._after_cr = False
        self._name = ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> Iterator[ServerSentEvent]:
        """The events completed by `piece`. Raises `TooLargeError`."""
        text = self._text.decode(piece)
        if self._after_cr and text:
            text, self._after_cr = text.removeprefix("\n"), False
        if text.endswith("\r"):
            self._after_cr = True
        *lines, rest = _LINE_END.split(text)
        for line in lines:
            self._hold(line)
            whole, self._line = "".join(self._line), []
            self.lines += 1
            event = self._read(whole)
            del whole
            if event is not None:
                yield event
        if rest:
            self._hold(rest)

    def _hold(self, text: str) -> None:
        self._line.append(text)
        self._size += text_cost(text) + _PIECE
        if self._size > self._limit:
            raise TooLargeError(self._limit)

    def _read(self, line: str) -> ServerSentEvent | None:
        if not line:
            name, data, self._name, self._data, self._size = self._name, self._data, "", [], 0
            return ServerSentEvent(name, "\n".join(data)) if data else None
        end = line.find(":")  # a comment has no field name
        field = line if end < 0 else line[:end]
        if field in ("event", "data"):
            value = "" if end < 0 else line[end + (2 if line.startswith(" ", end + 1) else 1) :]
            if field == "event":
                self._name = value
            else:
                self._data.append(value)
        elif not self._data and not self._name:
            self._size = 0  # ignored lines take no memory
        return None


# Bytes that CPython 3.11 (64 bit) uses for JSON values in addition to their characters: an empty list with its slot in
# another one, a dict with one entry, the slot of a value and the value's header.
_LIST, _DICT, _VALUE = 64, 240, 64

_EVENT = 64  # bytes of an event of an answer in addition to its text


class TooLargeError(Exception):
    """A server sent more than `limit` bytes in one piece."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} bytes")
        self.limit = limit


def text_cost(text: str) -> int:
    """The most memory that `text` takes, in bytes."""
    return len(text) if text.isascii() else 4 * len(text)


def check_json_cost(content: bytes | str, limit: int) -> None:
    """Raise `TooLargeError` if `content`, parsed as JSON, would take more than twice `limit` bytes of memory.

    Counts the text, its strings, and each value: `[[],[],[]...` takes more than twenty times its length.
    """
    length = len(content) if content.isascii() else 4 * len(content)
    if 2 * length + _DICT * length <= 2 * limit:
        return
    marks: tuple[Any, ...] = ("[", "{", ",") if isinstance(content, str) else (b"[", b"{", b",")
    lists, dicts, values = map(content.count, marks)
    if 2 * length + _LIST * lists + _DICT * dicts + _VALUE * values > 2 * limit:
        raise TooLargeError(limit)


def event_cost(event: StreamEvent) -> int:
    """Bytes of memory that `event` takes as part of an answer; 0 for usage, which replaces the one before."""
    if isinstance(event, UsageUpdate):
        return 0
    values = (getattr(event, name) for name in event.__slots__)
    return _EVENT + sum(text_cost(value) for value in values if isinstance(value, str))


def too_large(provider: str, limit: int) -> ProviderError:
    """The error of an answer of more than `limit` bytes."""
    return ProviderError(
        "protocol",
        f"{provider}: the server sent more than {size_text(limit)} in one answer. What arrived is kept. "
        f"If so much is meant to come, raise max_response (bytes) in [providers.{provider}].",
    )

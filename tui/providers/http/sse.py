"""Server-sent events, as the HTML standard reads them (section 9.2.6, "Interpreting an event stream"). Pure.

The SDKs' own decoders are private, fail on bytes that are no UTF-8, take a byte order mark for a part of the first
field's name, and hand on events without data, which each SDK then reads in its own way.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event that has data. `name` is "" where the server gives none."""

    name: str
    data: str


class SSEDecoder:
    """Reads a stream piece by piece, however it is cut. An event that is not ended by a blank line is not one."""

    def __init__(self) -> None:
        self._text = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._line: list[str] = []  # pieces of the line that is not ended yet
        self._after_cr = False
        self._name = ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> Iterator[ServerSentEvent]:
        """The events that `piece` completes."""
        text = self._text.decode(piece)
        if self._after_cr and text:
            text, self._after_cr = text.removeprefix("\n"), False
        if text.endswith("\r"):
            self._after_cr = True
        *lines, rest = _LINE_END.split(text)
        for line in lines:
            self._line.append(line)
            whole, self._line = "".join(self._line), []
            if (event := self._read(whole)) is not None:
                yield event
        if rest:
            self._line.append(rest)

    def _read(self, line: str) -> ServerSentEvent | None:
        if not line:
            name, data, self._name, self._data = self._name, self._data, "", []
            return ServerSentEvent(name, "\n".join(data)) if data else None
        field, _, value = line.partition(":")  # a comment has no field's name
        value = value.removeprefix(" ")
        match field:
            case "event":
                self._name = value
            case "data":
                self._data.append(value)
        return None

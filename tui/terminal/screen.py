"""Textual's output to the terminal: without control characters, and surviving the terminal's disappearance."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.color import Color
from textual.drivers._writer_thread import WriterThread
from textual.filter import LineFilter

if TYPE_CHECKING:
    from textual.driver import Driver

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class SafeLines(LineFilter):
    """Removes control characters, bidirectional overrides and lone surrogates. None of them has a width.

    A second barrier: text is cleaned, visibly, where it enters the program (`text/clean.py`).
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """`segments` without control characters."""
        del background
        if not any(_CONTROLS.search(segment.text) for segment in segments):
            return segments
        return [Segment(_CONTROLS.sub("", text), style, control) for text, style, control in segments]


class LastingWriter(WriterThread):
    """Textual's writer thread, which keeps discarding output once the terminal is gone.

    Textual's own (8.2) ends with an error then; its queue fills up, and the event loop waits forever.
    """

    def run(self) -> None:
        """Run the thread."""
        with suppress(OSError):
            while (text := self._queue.get()) is not None:
                self._file.write(text)
                if self._queue.qsize() == 0:
                    self._file.flush()
            return
        while self._queue.get() is not None:
            pass


def use_lasting_writer(driver: type[Driver]) -> type[Driver]:
    """A subclass of `driver` that writes by a `LastingWriter`; Textual has no other way to set one."""
    if hasattr(module := sys.modules[driver.__module__], "WriterThread"):
        setattr(module, "WriterThread", LastingWriter)  # noqa: B010
    return driver

"""The thread that writes to the terminal, and survives its disappearance."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from textual.drivers._writer_thread import WriterThread

if TYPE_CHECKING:
    from textual.driver import Driver


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

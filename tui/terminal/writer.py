"""The thread that writes to the terminal, also where that goes away."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from textual.drivers._writer_thread import WriterThread

if TYPE_CHECKING:
    from textual.driver import Driver


class LastingWriter(WriterThread):
    """Textual's thread, which goes on taking what nobody can see any more once the terminal is gone.

    Textual's own (8.2) ends in an error then; its queue fills, and the event loop waits for room in it for ever.
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
    """`driver`, which writes by a `LastingWriter` from now on: Textual has no other way to choose one."""
    if hasattr(module := sys.modules[driver.__module__], "WriterThread"):
        setattr(module, "WriterThread", LastingWriter)  # noqa: B010
    return driver

"""Lines from standard input, without blocking the event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable

FENCE = '"""'
"""A line that begins and ends a message of several lines."""


class Lines:
    """Standard input, line by line, from a thread.

    `os.read` rather than `sys.stdin`: a thread waiting in the buffered reader would keep the interpreter from exiting.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._arrived: asyncio.Queue[str | None] = asyncio.Queue()
        self._ended = False
        threading.Thread(target=self._read, name="lines", daemon=True).start()

    def _read(self) -> None:
        rest = b""
        while True:
            try:
                data = os.read(self._descriptor, 1 << 16)
            except OSError:
                data = b""
            *complete, rest = (rest + data).split(b"\n")
            lines: list[str | None] = [line.decode("utf-8", "replace").removesuffix("\r") for line in complete]
            if not data:
                lines += [rest.decode("utf-8", "replace"), None] if rest else [None]
            try:
                for line in lines:
                    self._loop.call_soon_threadsafe(self._arrived.put_nowait, line)
            except RuntimeError:
                return  # the event loop has been closed
            if not data:
                return

    def end(self) -> None:
        """End the input: pending readers get None at once."""
        self._ended = True
        self._arrived.put_nowait(None)

    async def next(self) -> str | None:
        """The next line without its end; None at the end of the input."""
        line = None if self._ended else await self._arrived.get()
        self._ended = self._ended or line is None
        return None if self._ended else line

    async def fresh(self, read: Callable[[], Awaitable[str | None]]) -> str | None:
        """The result of `read` (`next`, `message`) on lines that are not written yet.

        Earlier lines are no answer to a question, and stay queued.
        """
        early = self._drained()
        answer = None if None in early else await read()
        for line in (*early, *self._drained()):
            self._arrived.put_nowait(line)
        return answer

    def unread(self) -> list[str]:
        """The lines that nobody has taken."""
        return [line for line in self._drained() if line and line.strip()]

    def _drained(self) -> list[str | None]:
        return [self._arrived.get_nowait() for _ in range(self._arrived.qsize())]

    async def message(self) -> str | None:
        """The next line, or all lines between two fences."""
        line = await self.next()
        if line is None or line.strip() != FENCE:
            return line
        text: list[str] = []
        while (line := await self.next()) is not None and line.strip() != FENCE:
            text.append(line)
        return "\n".join(text)

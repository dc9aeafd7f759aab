"""Draws large messages of the transcript in a thread: a megabyte takes seconds, and a frame is 16 ms."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

from tui.messages import Message
from tui.render.live import LiveReply
from tui.render.message import View, message_rows
from tui.render.palette import Palette
from tui.render.rows import Row


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause garbage collection while the body creates long-lived objects, and freeze them afterwards. Thread-safe.

    Messages and rows have no cycles: reference counting frees them. The collector's full passes would scan them again
    and again, and stop the screen each time: 50 ms for 10,000 messages, 400 ms for the rows of a megabyte.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


@dataclass(frozen=True, slots=True)
class Job:
    """A message to draw, in the state when this was requested. `key` tells whether that is still current.

    `live` is a streaming reply that is drawn for the first time; None for a complete message.
    """

    index: int
    key: object
    message: Message
    width: int
    palette: Palette
    view: View
    live: LiveReply | None = None

    def run(self) -> list[Row]:
        """The rows. Takes about two seconds for a megabyte."""
        with gc_paused():
            if self.live is not None:
                self.live.draw(self.width, self.palette, self.view, monotonic())
                return self.live.rows
            return message_rows(self.message, self.width, self.palette, self.view)


class Drawer:
    """A drawing thread for one view; the latest request comes first, since it is on screen."""

    def __init__(
        self,
        job_of: Callable[[int], Job | None],
        drawn: Callable[[Job, list[Row]], None],
        start: Callable[[Callable[[], Awaitable[None]]], object],
    ) -> None:
        self._job_of, self._drawn, self._start = job_of, drawn, start
        self._wanted: dict[int, None] = {}
        self._running = False

    def want(self, index: int) -> None:
        """Request the drawing of entry `index`."""
        self._wanted.pop(index, None)
        self._wanted[index] = None
        if not self._running:
            self._running = True
            self._start(self._work)

    async def _work(self) -> None:
        try:
            while self._wanted:
                index, _ = self._wanted.popitem()
                job = self._job_of(index)
                if job is not None:
                    self._drawn(job, await asyncio.to_thread(job.run))
        finally:
            self._running = False

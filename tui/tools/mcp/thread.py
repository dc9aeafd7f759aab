"""A separate event loop for MCP in a thread: servers and the SDK can't block the screen."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

END_WAIT = 5.0
"""Seconds for the thread to end; it is a daemon, so anything that hangs dies with the process."""


class LoopThread:
    """An event loop in a thread, started with the first piece of work."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._started = threading.Event()

    @property
    def running(self) -> bool:
        """Whether it has been started and not closed."""
        return self._thread is not None and self._thread.is_alive()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run `work` there, from any thread. Cancelling the future cancels the work."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._main, name=self._name, daemon=True)
            self._thread.start()
            self._started.wait()
        if self._loop is None or self._loop.is_closed():
            work.close()
            raise RuntimeError(f"{self._name} has ended")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` there and await its result here."""
        return await asyncio.wrap_future(self.submit(work))

    def close(self) -> None:
        """Stop the loop and cancel its tasks. Idempotent. Blocks: not on an event loop."""
        thread, loop = self._thread, self._loop
        if thread is not None and loop is not None and self.running:
            loop.call_soon_threadsafe(self._stop.set)
            thread.join(END_WAIT)

    def _main(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._started.set()
        await self._stop.wait()

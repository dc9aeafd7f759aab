"""The wait before a request is repeated, on standard error: counting down on a terminal, one line elsewhere."""

from __future__ import annotations

import asyncio
import sys
import time
from math import ceil

from tui.chat.conversation.events import RetryScheduled
from tui.cli import complain


class Countdown:
    """Shows one wait at a time. Ctrl-C ends it as it ends an answer."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def start(self, event: RetryScheduled, line: str) -> None:
        """Show the wait; `line` says all of it at once."""
        if not sys.stderr.isatty():
            complain(line)
            return
        complain(" ".join(event.reason.split()))
        self._task = asyncio.create_task(self._run(event.seconds, event.attempt))

    def stop(self) -> None:
        """The wait is over: the line goes."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    async def _run(self, seconds: float, attempt: int) -> None:
        end = time.monotonic() + seconds
        while (left := ceil(end - time.monotonic())) > 0:
            sys.stderr.write(f"\r\x1b[Kchatctx: asking again in {left} s (attempt {attempt + 1}); ctrl+c stops")
            sys.stderr.flush()
            await asyncio.sleep(min(1.0, max(0.05, end - time.monotonic())))

"""A screen with background work whose errors are shown in one line."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

from textual.worker import Worker

from tui.screens.base import GuardedMouse

log = logging.getLogger(__name__)

Work: TypeAlias = Callable[[], Awaitable[None]]


class BackgroundScreen(GuardedMouse[None]):
    """Shows errors of background work as lines. Details go to `log_file`."""

    def __init__(self, log_file: Path) -> None:
        super().__init__()
        self.log_file = log_file
        self._reported: set[str] = set()  # groups whose error was reported already
        self._asked: dict[str, tuple[Work, float] | None] = {}  # by key: the running work, and the next one requested
        self.closing = False  # whether the resources of the work are being closed

    @abstractmethod
    def say_error(self, text: str) -> None:
        """Show one line."""

    def one_line(self, error: BaseException) -> str:
        """The error for a person. For a bug it names the log, never a traceback."""
        from tui.providers.keys import redact  # not before the first frame

        text = redact(" ".join(str(error).split()))
        if type(error).__module__.startswith("tui.") and text:
            return text
        what = f"{type(error).__name__}: {text}" if text else type(error).__name__
        return f"An error in chatctx ({what[:200]}). Nothing was lost; details are in {self.log_file}"

    def complain(self, error: BaseException) -> None:
        """Show the error."""
        self.say_error(self.one_line(error))

    def background(self, work: Work, group: str, *, exclusive: bool = False, again: bool = False) -> None:
        """Run work in the background.

        Errors are logged and shown: once per group, or every time with `again`. While the program is closing no work is
        started, and errors of running work are expected.
        """
        if self.closing:
            return

        async def guarded() -> None:
            try:
                await work()
            except Exception as error:
                if self.closing:
                    log.info("given up at the end: %s (%s)", group, error)
                    return
                log.exception("in the background: %s", group)
                if again or group not in self._reported:
                    self._reported.add(group)
                    self.complain(error)

        _: Worker[None] = self.run_worker(guarded, group=group, exclusive=exclusive, exit_on_error=False)

    def soon(self, work: Work, group: str, pause: float = 0.0) -> None:
        """Like `background`, for work requested by every key: after `pause` seconds, one at a time, the newest request
        next.

        The cost of a key is constant; a worker for each would have to be cancelled by the next.
        """
        running = group in self._asked
        self._asked[group] = (work, pause)
        if not running:
            self.background(partial(self._keep_up, group), group)

    async def _keep_up(self, group: str) -> None:
        left: tuple[Work, float] | None = None
        try:
            while (asked := self._asked[group]) is not None:
                await asyncio.sleep(asked[1])
                newest, _ = self._asked[group] or asked
                self._asked[group] = None
                await newest()
        except Exception:
            left = self._asked[group]  # requested after the failed one
            raise
        finally:
            del self._asked[group]
            if left is not None:
                self.soon(left[0], group, left[1])

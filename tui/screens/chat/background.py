"""A screen that does work beside the event loop's other work, and says in one line what went wrong there."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

from tui.screens.base import GuardedMouse, run_quietly

log = logging.getLogger(__name__)

Work: TypeAlias = Callable[[], Awaitable[None]]


class BackgroundScreen(GuardedMouse[None]):
    """Errors of its background work are lines for a person. `log_file` is where the details go."""

    def __init__(self, log_file: Path) -> None:
        super().__init__()
        self.log_file = log_file
        self._reported: set[str] = set()  # groups whose error was reported already
        self._asked: dict[str, tuple[Work, float] | None] = {}  # what runs for keys, and what is asked for after it
        self.closing = False  # what the work stands on is being closed

    @abstractmethod
    def say_error(self, text: str) -> None:
        """Show one line."""

    def one_line(self, error: BaseException) -> str:
        """What went wrong, for a person. An error of the program itself names the log, never a traceback."""
        from tui.providers.keys import redact  # not before the first frame

        text = redact(" ".join(str(error).split()))
        if type(error).__module__.startswith("tui.") and text:
            return text
        what = f"{type(error).__name__}: {text}" if text else type(error).__name__
        return f"Something went wrong in the program ({what[:200]}). Nothing was lost; details are in {self.log_file}"

    def complain(self, error: BaseException) -> None:
        """Say what went wrong."""
        self.say_error(self.one_line(error))

    def background(self, work: Work, group: str, *, exclusive: bool = False, again: bool = False) -> None:
        """Do something beside the event loop's other work.

        What goes wrong is logged, and said: once for each group, or every time with `again`. While the program ends
        nothing begins any more, and what it takes the ground from is no error.
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

        run_quietly(self, guarded, group, exclusive=exclusive)

    def soon(self, work: Work, group: str, pause: float = 0.0) -> None:
        """As `background`, for what every key asks for anew: `pause` seconds later, one at a time, the newest next.

        A key costs the same however many came before it; a worker for each would have to be cancelled by the next.
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
            left = self._asked[group]  # asked for after what failed
            raise
        finally:
            del self._asked[group]
            if left is not None:
                self.soon(left[0], group, left[1])

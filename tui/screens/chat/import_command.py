"""The command `/import`: a session from a file, opened at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content

from tui.config.paths import at_home
from tui.screens.chat.command_base import CommandBase
from tui.screens.items import Item

if TYPE_CHECKING:
    from tui.chat.interchange.import_known import AlreadyHereError
    from tui.screens.ports import SessionInfoLike, WorkspaceLike

AGAIN = "--again"
OPEN, IMPORT = "open", "import"  # answers to what was imported before
SIGN_OF_LIFE = 0.2
"""Seconds between two figures of how far it is."""


class ImportCommand(CommandBase):
    """`/import FILE [--again]`."""

    async def take_in(self, args: str) -> None:
        """Read, measure, store and open it; what can't be read is said, and nothing of it is kept.

        What was imported before is recognised: the person decides whether to open that, or to have it twice.
        """
        from tui.chat.interchange.import_known import (
            AlreadyHereError,  # with the store behind it: not before the first frame
        )
        from tui.chat.interchange.recording import RecordingError

        workspace = self.workspace()
        if workspace is None or self.idle() is None:
            return
        name = args.removesuffix(AGAIN).strip()
        if not name:
            self.refuse("/import needs a file: of chatctx, or of a program that `chatctx import --help` lists.")
            return
        try:
            info = await self._imported(workspace, _path(name), again=args.endswith(AGAIN))
        except AlreadyHereError as known:
            self._ask(known, name)
            return
        except RecordingError as error:
            self.refuse(f"Not imported: {error}")
            return
        if self.screen.turns.busy:  # a message was sent meanwhile: its answer keeps the screen
            self.say(f"Imported {info.messages:,} messages: /sessions opens them.")
            return
        await self.screen.attach(await workspace.resume(info.id))
        self.screen.notify(f"Imported {info.messages:,} messages.", markup=False)

    async def _imported(self, workspace: WorkspaceLike, path: Path, *, again: bool) -> SessionInfoLike:
        """Take it in, and say above the prompt how far that is."""
        far = [0, 0]  # written by the thread that reads, read by the timer

        def progress(done: int, whole: int) -> None:
            far[:] = done, whole

        timer = self.screen.set_interval(SIGN_OF_LIFE, partial(self._show_progress, path.name, lambda: far))
        try:
            return await workspace.import_file(path, again=again, progress=progress)
        finally:
            timer.stop()
            self.screen.turns.show_rest()

    def _show_progress(self, name: str, far: Callable[[], list[int]]) -> None:
        if self.screen.turns.busy:
            return
        done, whole = far()
        share = f", {done:,} of {whole:,} calls measured" if whole else ""
        self.screen.composer.rule.show(left=Content.styled(f"● importing {name}{share}", "$primary"))

    def _ask(self, known: AlreadyHereError, name: str) -> None:
        from tui.screens.question import Question

        info = known.info
        title = info.title or "(no title)"
        file = f"The first {info.messages:,}" if known.more else f"All {info.messages:,}"
        new = f"; {known.more:,} more are new." if known.more else "."
        answers = (
            Item(OPEN, "Open what is here", title),
            Item(IMPORT, "Import it again", "as another conversation; its calls count once more in /usage"),
        )
        question = Question("Imported before", f"{file} messages of this file are here already{new}", answers)
        self.screen.app.push_screen(question, partial(self._answered, info.id, name))

    def _answered(self, session_id: str, name: str, answer: str | None) -> None:
        if answer is not None:
            self.screen.action_command(f"sessions {session_id}" if answer == OPEN else f"import {name} {AGAIN}")


def _path(name: str) -> Path:
    return at_home(name)

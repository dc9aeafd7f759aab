"""Commands about compaction: make one, look at it first, change its summary, take it back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from tui.chat.conversation.events import CompactionStarted, Notice, SessionEvent, UsageChanged
from tui.commands.registry import PREVIEW
from tui.screens.chat.command_base import CommandBase

if TYPE_CHECKING:
    from tui.screens.session_ports import SessionLike
    from tui.screens.summary.summary import SummaryPanel
    from tui.screens.summary.summary_subject import PanelSubject


class CompactCommands(CommandBase):
    """The commands `/compact`, `/summary` and `/undo`."""

    summary_panel: SummaryPanel | None = None  # while it is open

    async def compact(self, args: str) -> None:
        """`/compact [--preview] [instructions]`."""
        if (session := self.idle()) is None:
            return
        first, _, wish = args.partition(" ")
        if first == PREVIEW:
            self.screen.turns.run(self._previewed(session, wish.strip()))
        elif first.startswith("--"):
            self.refuse(f"/compact knows {PREVIEW}, not {first}.")
        else:
            self.screen.turns.run(session.compact(args))

    async def _previewed(self, session: SessionLike, wish: str) -> AsyncIterator[SessionEvent]:
        """A turn that lasts until the person has decided: what waits to be sent waits for that."""
        from tui.chat.compaction.summaries import FAILURES
        from tui.screens.summary.summary_subject import DraftSubject

        yield CompactionStarted(automatic=False)
        try:
            draft = await session.summaries.draft(wish)
        except FAILURES as error:
            yield Notice("warning", f"{str(error).rstrip('.')}. Nothing was changed.")
            return
        if not self.screen.app.app_focus:
            self.screen.app.bell()
        subject = DraftSubject(session.summaries, draft)
        await self._shown(subject, session)
        yield subject.done or Notice("info", "Not compacted. Nothing was changed.")
        yield UsageChanged(await session.refresh_usage())

    async def summary(self, args: str) -> None:
        """`/summary`: read and change the summary in force; `args` may be its message's id."""
        if (session := self.idle()) is None:
            return
        standing = session.summaries.standing(args)
        if standing is None:
            none = "There is no summary in force: /compact makes one."
            self.refuse("This summary is not in force any more." if args else none)
            return
        from tui.context.reduction.compaction_rules import compaction_report
        from tui.screens.summary.summary_subject import StandingSubject

        subject = StandingSubject(session.summaries, standing)
        await self._shown(subject, session)
        if subject.done is None:
            return
        edit, message = subject.done
        self.screen.transcript.append(message)
        await session.refresh_usage()
        self.recounted()
        self.say(compaction_report(edit))

    async def _shown(self, subject: PanelSubject, session: SessionLike) -> None:
        """Let the person look and decide. A text that is left is within reach of the up key."""
        from tui.screens.summary.summary import SummaryPanel

        self.summary_panel = panel = SummaryPanel(subject, stop=session.cancel, keep=session.summaries.keep)
        try:
            accepted = await self.screen.app.push_screen_wait(panel)
        finally:
            self.summary_panel = None
        if not accepted and panel.left:
            self.screen.remember(panel.left)
            self.say("Your changes to the summary are not in force; the up key brings their text into the prompt.")
        await session.summaries.keep("")

    async def bring_back_summary(self, session: SessionLike) -> None:
        """What was being written when the program was killed."""
        if text := await session.summaries.kept():
            self.screen.remember(text)
            await session.summaries.keep("")
            self.say("A summary that was being changed is not lost: the up key brings its text into the prompt.")

    async def put_summary_away(self) -> None:
        """The program ends: close the panel and keep what was changed in it, for the up key of the next run."""
        panel, workspace = self.summary_panel, self.screen.workspace
        if panel is not None:
            panel.leave()
            if panel.left and workspace is not None:
                await workspace.add_prompt(panel.left)
            panel.left = ""

    async def undo(self, _args: str) -> None:
        """`/undo`."""
        if (session := self.idle()) is not None:
            line = await session.undo()
            if line is None:
                self.refuse("There is no compaction to take back.")
                return
            await session.refresh_usage()
            self.recounted()
            self.say(line)

"""The `UI` of slash commands on the chat screen: panels, and lines in the conversation."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import signal
import subprocess
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported
from textual.content import Content

from tui.commands import BUSY, CommandError, EditorError
from tui.commands.help import HelpView
from tui.commands.sessions import SessionMenu
from tui.config.files import unsent_folder
from tui.text.cells import plain
from tui.views.context_table import ContextView
from tui.views.models import ModelMenu
from tui.views.tools_mcp import McpView, ToolsView
from tui.views.usage_table import UsageView
from tui.views.view import Option
from tui.widgets.themes import load_themes

if TYPE_CHECKING:
    from tui.chat.compaction.compactor import SummaryText
    from tui.chat.conversation.events import SessionEvent
    from tui.chat.turn.session import ChatSession
    from tui.screens.base import Panel, Result
    from tui.screens.chat.screen import ChatScreen
    from tui.screens.summary import SummaryPanel
    from tui.views.view import Form, Menu, Question, View

log = logging.getLogger(__name__)

TOAST = 8.0
"""Seconds for which a passing message is shown."""


class ScreenUI:
    """Implements `commands.UI` and `commands.Screen`. Panels are imported when they are opened."""

    def __init__(self, chat: ChatScreen, themes_dir: Path) -> None:
        self.chat = chat
        self._themes_dir = themes_dir
        self._themes_loaded = False
        self._times = False
        self._summary: SummaryPanel | None = None  # while it is open

    @property
    def busy(self) -> bool:
        """Whether a turn runs."""
        return self.chat.turns.busy

    @property
    def screen(self) -> ScreenUI:
        """This object."""
        return self

    async def _open(self, panel: Panel[Result]) -> Result | None:
        """Open a panel and await its result. Unlike Textual's `push_screen_wait` this also works outside of workers."""
        result: asyncio.Future[Result | None] = asyncio.get_running_loop().create_future()

        def dismissed(value: Result | None) -> None:
            if not result.done():
                result.set_result(value)

        self.chat.app.push_screen(panel, dismissed)
        try:
            return await result
        except asyncio.CancelledError:  # the answer is no longer needed
            if panel.is_current:
                panel.dismiss(None)
            raise

    # -- methods of `UI` ------------------------------------------------------------------------------------

    async def say(self, text: str, *, passing: bool = False) -> None:
        """Show a line in the conversation, or as a toast."""
        if passing:
            self.chat.notify(plain(text), timeout=TOAST, markup=False)
        else:
            self.chat.transcript.add_notice("info", text)

    async def refuse(self, text: str) -> None:
        """Show in the conversation why not."""
        self.chat.transcript.add_notice("warning", text)

    @asynccontextmanager
    async def progress(self, text: str) -> AsyncIterator[None]:
        """Show a line above the prompt; that of a turn has precedence."""
        if not self.busy:
            self.chat.composer.rule.show(left=Content.styled(f"● {plain(text)} …", "$primary"))
        try:
            yield
        finally:
            self.chat.turns.show_hint()

    async def show(self, view: View) -> None:
        """Open the view's panel; without one, show its lines."""
        match view:
            case ContextView():
                from tui.screens.context import ContextPanel, MessageLink

                match await self._open(ContextPanel(view, self.chat.request_changed, self.chat.key)):
                    case "compact":
                        self.chat.action_command("compact")
                    case MessageLink(message_id, unfold):
                        self.chat.transcript.choose(message_id, unfold=unfold)
            case ToolsView():
                from tui.screens.tools import ToolsPanel

                await self._open(ToolsPanel(view, self.chat.request_changed))
            case McpView():
                from tui.screens.tools import McpPanel

                await self._open(McpPanel(view, self.chat.recount_soon, self.chat.action_command))
            case UsageView():
                from tui.screens.pager import UsagePanel

                await self._open(UsagePanel(view.title, view.drawing))
            case HelpView():
                from tui.screens.keymap import all_keys
                from tui.screens.pager import HelpPanel

                classes = type(self.chat), type(self.chat.app)
                await self._open(HelpPanel(view, partial(all_keys, classes, self.chat.keymap)))
            case _:
                from tui.screens.pager import Pager

                lines = await view.lines(self.chat.size.width - 8)
                text = "\n".join(line.plain.rstrip() for line in lines)
                await self._open(Pager([(view.title, text)], wraps=True))

    async def choose(self, menu: Menu) -> str | None:
        """Open a list with a search line."""
        match menu:
            case ModelMenu():
                from tui.screens.lists import ModelPicker

                return await self._open(ModelPicker(menu))
            case SessionMenu():
                from tui.screens.lists import SessionPicker

                key = await self._open(SessionPicker(menu))
                self.chat.refresh_title()
                return key
            case _:
                from tui.screens.lists import Picker

                return await self._open(Picker(menu))

    async def confirm(self, question: Question) -> str | None:
        """Open a panel with the answers below the text."""
        from tui.screens.question import QuestionPanel

        typed = self.chat.composer.type_text if question.unasked else None
        return await self._open(QuestionPanel(question, typed))

    async def ask(self, form: Form) -> Mapping[str, str] | None:
        """Open a panel with a line for each field. Until it is closed what is typed there is a part of the draft."""
        from tui.screens.question import FormPanel

        try:
            return await self._open(FormPanel(form, self.chat.drafts.set_form))
        finally:
            self.chat.drafts.set_form("")

    async def turn(self, events: AsyncIterator[SessionEvent]) -> None:
        """Show the turn in the transcript; waiting messages follow it."""
        if self.busy:
            raise CommandError(BUSY)
        await self.chat.turns.run(events)

    async def attach(self, session: ChatSession) -> None:
        """Show this conversation."""
        await self.chat.attach(session)
        self.chat.composer.focus_prompt()

    async def changed(self) -> None:
        """Update numbers, title, welcome text, and the draft's cost."""
        if (session := self.chat.session) is not None:
            await session.refresh_usage()
            self.chat.refresh_title()
            self.chat.welcome()
            self.chat.request_changed()
            self.chat.draft_cost.count()

    async def copy(self, text: str) -> None:
        """Copy by every available way."""
        self.chat.app.copy_to_clipboard(text)

    async def leave(self) -> None:
        """End the program."""
        await self.chat.app.action_quit()

    # -- summaries ---------------------------------------------------------------------------------------------------

    async def edit(self, text: SummaryText) -> bool:
        """Open a panel with an editor. A text that was not accepted can be recalled by the up key."""
        from tui.screens.summary import SummaryPanel

        if not self.chat.app.app_focus:
            self.chat.app.bell()
        self._summary = panel = SummaryPanel(text)
        try:
            accepted = await self._open(panel)
        finally:
            self._summary = None
        if not accepted and panel.abandoned:
            await self.chat.drafts.remember_now(panel.abandoned)
            up = self.chat.key("composer.up", "up")
            await self.say(
                f"Your changes to the summary were not applied. The {up} key puts their text into the prompt."
            )
        await text.compactor.save_draft("")
        return bool(accepted)

    async def recover_summary(self, session: ChatSession) -> None:
        """Recall a summary that was being edited when the program was killed."""
        if text := await session.compactor.saved_draft():
            await self.chat.drafts.remember_now(text)
            await session.compactor.save_draft("")
            up = self.chat.key("composer.up", "up")
            await self.say(f"An edited summary was not lost: the {up} key puts its text into the prompt.")

    async def save_summary(self) -> None:
        """Before the program ends: close the panel and store its changes, for the up key of the next run."""
        panel = self._summary
        if panel is not None:
            panel.leave()
            if panel.abandoned:
                try:
                    await self.chat.drafts.remember_now(panel.abandoned)
                except Exception:
                    log.exception("a changed summary becomes a part of the draft")
            panel.abandoned = ""

    # -- methods of `Screen` ------------------------------------------------------------------------------------

    async def append_to_draft(self, text: str) -> None:
        """Append `text` to the draft."""
        composer = self.chat.composer
        composer.value = "\n\n".join(filter(None, [composer.value.rstrip(), text]))
        composer.focus_prompt()

    async def paste(self, text: str) -> None:
        """Insert it; long text becomes a chip."""
        self.chat.composer.area.insert_paste(text)

    async def mention(self, path: str) -> None:
        """Mention a file in the draft."""
        self.chat.composer.area.mention(path)

    @property
    def clipboard(self) -> str:
        """The text copied last in this program."""
        return self.chat.app.clipboard

    async def edit_draft(self) -> None:
        """Suspend the screen while the editor runs."""
        composer = self.chat.composer
        problem: EditorError | None = None
        await self.chat.guarded(self.chat.drafts.save, "draft-save")  # nothing is stored while the editor runs
        try:
            with self.chat.app.suspend():
                try:
                    before = composer.value
                    composer.value = after = edit_externally(before, self.chat.rescue_folders)
                    if before.strip() not in after:
                        self.chat.drafts.remember(before)
                except EditorError as error:  # not inside `suspend`, which would not restore the terminal
                    problem = error
                    if error.written:
                        self.chat.drafts.remember(error.written)
        except SuspendNotSupported:
            problem = EditorError("An editor needs a terminal, and there is none here.")
        composer.focus_prompt()
        if problem is not None:
            raise problem

    async def find(self, text: str) -> tuple[int, int]:
        """The nearest match above, then one after the other."""
        transcript = self.chat.transcript
        if text:
            await transcript.search(text)
        return transcript.go_to_hit(forward=not text)

    async def fold(self) -> None:
        """Fold or unfold the transcript."""
        self.chat.transcript.clear_cursor()
        self.chat.transcript.toggle_fold()

    async def toggle_times(self) -> None:
        """For every message."""
        self._times = not self._times
        self.chat.transcript.show_times(self._times)

    async def themes(self) -> Sequence[Option]:
        """The program's and the person's first, then Textual's. Invalid files are reported and left out."""
        app = self.chat.app
        if not self._themes_loaded:  # the current one was loaded at the start
            self._themes_loaded = True
            loaded, complaints = await asyncio.to_thread(load_themes, self._themes_dir)
            for theme in loaded:
                if theme.name != app.theme:
                    app.register_theme(theme)
            for complaint in complaints:
                await self.refuse(complaint)
        themes = app.available_themes.values()
        ours = [theme for theme in themes if "context-system" in theme.variables]
        others = [theme for theme in themes if "context-system" not in theme.variables]
        options = []
        for theme in [*ours, *sorted(others, key=lambda theme: theme.name)]:
            kind = "terminal colours" if theme.ansi else "dark" if theme.dark else "light"
            options.append(Option(theme.name, theme.name, kind, theme.name == app.theme, kind.split()[0]))
        return options

    def use_theme(self, name: str) -> None:
        """Change the colours."""
        self.chat.app.theme = name


def edit_externally(text: str, folders: Iterable[Path]) -> str:
    """Edit `text` in $VISUAL or $EDITOR. Blocks until it exits. Raises `EditorError`.

    The file is in one of `folders`, where the next start finds it if this program is killed meanwhile.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    # ctrl+c is the editor's (or that of a command run in it), but the terminal sends it to this program, too.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with unsent_folder(folders) as folder:
            return _edited(editor, text, folder / "draft.md")
    except OSError as error:
        raise EditorError(f"The draft's file can't be made ({error.strerror}); the draft is as it was.") from None
    finally:
        signal.signal(signal.SIGINT, before)


def _edited(editor: str, text: str, path: Path) -> str:
    path.write_text(f"{text}\n" if text else "", encoding="utf-8", errors="replace")
    try:
        done = subprocess.run([*shlex.split(editor), str(path)], check=False)
    except (OSError, ValueError) as error:
        raise EditorError(f"The editor {editor!r} could not be started ({error}): set EDITOR.") from None
    try:
        written = path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
    except OSError as error:
        reason = error.strerror or error
        raise EditorError(f"The editor {editor!r} left no file ({reason}); the draft is as it was.") from None
    if done.returncode:
        problem = f"The editor {editor!r} ended with code {done.returncode}; the draft is as it was."
        if written == text:
            raise EditorError(problem)
        raise EditorError(f"{problem} What was written there is the latest of your earlier prompts.", written)
    return written

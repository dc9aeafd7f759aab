"""The chat screen: conversation, prompt, status. It takes keys before there is a session, without losing any."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from textual import events, getters, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from tui import commands as slash
from tui.commands import Chat, Command
from tui.errors import ExpectedError
from tui.screens.base import BackgroundScreen, CopyingApp, Panel
from tui.screens.chat.drafts import DraftCost, Drafts
from tui.screens.chat.mentions import FileIndex, mention_offers
from tui.text.cells import plain
from tui.widgets.bars import Bar, QueueList, StatusBar, status_line, title_line, welcome
from tui.widgets.composer import Composer, is_completed
from tui.widgets.transcript.transcript import Transcript
from tui.widgets.transcript.view import MessagePlace

if TYPE_CHECKING:
    from tui.chat.turn.session import ChatSession
    from tui.chat.workspace import Workspace
    from tui.config.settings import Settings
    from tui.screens.chat.message_actions import MessageActions
    from tui.screens.chat.turns import Turns
    from tui.screens.chat.ui import ScreenUI
    from tui.text.numbers import Cost
    from tui.tools.mcp.questions import Question as ServerQuestion
    from tui.tools.mcp.questions import Reply

log = logging.getLogger(__name__)

OpenWorkspace: TypeAlias = "Callable[[], Awaitable[Workspace]]"

CheckKeys: TypeAlias = Callable[[], Awaitable[Sequence[str]]]
"""Loads every panel, checks the person's keys in each, and returns the problems."""

CONVERSATION = ("tui.screens.chat.turns", "tui.chat.workspace")
"""Modules loaded between the first frame and the first conversation."""

COMMANDS = ("tui.screens.chat.ui", "tui.screens.chat.message_actions")
"""Modules loaded `COMMANDS_PAUSE` seconds after that, or with the first command: the first message goes before them."""

COMMANDS_PAUSE = 0.2

HISTORY_LOADED = 500
"""Prompts of earlier sessions available to the up key."""


PROMPT_KEYS = ("app.", "chat.", "composer.")
"""Beginnings of the names of keys that act while the prompt has the focus."""

SHUTDOWN_NOTICE = 0.5
"""Seconds before a message says that MCP servers are being stopped."""


class ChatScreen(BackgroundScreen):
    """Transcript, prompt and the lines around them, connected to one session at a time, to keys and commands."""

    DEFAULT_CSS = """
    ChatScreen { layout: vertical; background: $background; }
    ChatScreen > Transcript { height: 1fr; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop the answer", id="chat.stop", show=False),
        Binding("pageup", "scroll_pages(-1)", "Scroll up", id="chat.page_up", show=False, priority=True),
        Binding("pagedown", "scroll_pages(1)", "Scroll down", id="chat.page_down", show=False, priority=True),
        Binding("ctrl+home", "to_start", "To the beginning", id="chat.start", show=False, priority=True),
        Binding("ctrl+end", "to_end", "To the end", id="chat.end", show=False, priority=True),
        # Priority, so that the next letter goes to the message rather than the prompt.
        Binding("alt+up", "choose_message(-1)", "Choose a message", id="chat.choose", show=False, priority=True),
        Binding(
            "alt+down", "choose_message(1)", "Choose the next message", id="chat.choose_next", show=False, priority=True
        ),
        Binding("f1", "command('help')", "Help", id="chat.help", show=False),
        Binding("f2", "command('context')", "What fills the window", id="chat.context", show=False),
        Binding("f3", "command('fold')", "Fold or unfold all", id="chat.fold", show=False),
        Binding("f4", "command('times')", "Show or hide times", id="chat.times", show=False),
        Binding("f8", "rephrase", "Edit the last message", id="chat.rephrase", show=False),
        Binding("f9", "command('leave-out')", "Leave the last turn out", id="chat.leave_out", show=False),
        Binding("ctrl+o", "command('model')", "Model", id="chat.model", show=False),
        Binding("ctrl+r", "command('sessions')", "Conversations", id="chat.sessions", show=False),
        Binding("ctrl+g", "command('edit')", "Edit the draft in $EDITOR", id="chat.edit", show=False),
        Binding("ctrl+n", "command('new')", "New conversation", id="chat.new", show=False),
    ]

    AUTO_FOCUS = ""

    app = getters.app(CopyingApp)

    def __init__(self, open_workspace: OpenWorkspace, settings: Settings, check_keys: CheckKeys) -> None:
        super().__init__(settings.log_file)
        self.rescue_folders = (settings.data_dir, settings.log_dir)  # for what can't be stored
        self.open_workspace = open_workspace
        self._check_keys = check_keys
        self.themes_dir = settings.themes_dir
        self.state = Chat()  # the workspace and the conversation
        self.cost: Cost | None = None  # of this session; None before it is computed
        self.title_bar = Bar()
        self.transcript = Transcript()
        self.queue_list = QueueList()
        self.composer = Composer()
        self.status_bar = StatusBar()
        self.files = FileIndex(Path.cwd())
        self._places: dict[str, MessagePlace | None] = {}  # the reader's position in each conversation of this run
        self.broken = ""  # why there is no workspace, if it failed to open
        self.drafts = Drafts(self)
        self.draft_cost = DraftCost(self)
        self.use_keys(settings)

    def use_keys(self, settings: Settings) -> None:
        """Name and use the person's keys; the app has to set them, too."""
        self.keymap, self.key = settings.keys, settings.key
        prompt_keys = ((name, keys) for name, keys in self.keymap.items() if name.startswith(PROMPT_KEYS))
        self.composer.area.use_keys({key.strip(): name for name, keys in prompt_keys for key in keys.split(",")})

    @property
    def workspace(self) -> Workspace | None:
        """None until it is open."""
        return self.state.opened

    @property
    def session(self) -> ChatSession | None:
        """The conversation; None until there is one."""
        return self.state.attached

    def compose(self) -> ComposeResult:
        """From top to bottom; only the conversation shrinks."""
        yield self.title_bar
        yield self.transcript
        yield self.queue_list
        yield self.composer
        yield self.status_bar

    @cached_property
    def turns(self) -> Turns:
        """Running and waiting turns. Loaded after the first frame."""
        from tui.screens.chat.turns import Turns

        return Turns(self)

    @cached_property
    def ui(self) -> ScreenUI:
        """The commands' access to this screen. Loaded after the first frame, or with the first command."""
        from tui.screens.chat.ui import ScreenUI

        return ScreenUI(self, self.themes_dir)

    @cached_property
    def message_actions(self) -> MessageActions:
        """Actions on a message. Loaded after the first frame."""
        from tui.screens.chat.message_actions import MessageActions

        return MessageActions(self)

    def on_mount(self) -> None:
        """Take keys at once; load everything else after the first frame."""
        self.composer.focus_prompt()
        self.title_bar.draw(partial(title_line, "chatctx", "starting …"))
        self.call_after_refresh(self._open)

    @work(group="open", exit_on_error=False)
    async def _open(self) -> None:
        try:
            for name in CONVERSATION:
                await asyncio.to_thread(import_module, name)  # longer than a frame
            self.state.opened = workspace = await self.open_workspace()
            session = await workspace.start_session()
        except Exception as error:
            log.exception("the workspace could not be opened")
            await self._not_opened(error)
            return
        finally:
            if not gc.isenabled():  # the command line disabled it during start-up; a long conversation has no garbage
                gc.freeze()
                gc.enable()
        await self._opened(workspace, session)
        await asyncio.sleep(COMMANDS_PAUSE)
        for name in COMMANDS:
            await asyncio.to_thread(import_module, name)
        await asyncio.to_thread(slash.all_commands)

    async def _not_opened(self, error: Exception) -> None:
        """Quit with the error; if something was typed, stay, so that it can be copied."""
        if self.composer.value or self.turns.waiting:
            self.title_bar.draw(partial(title_line, "chatctx", "not open"))
            self.broken = self.one_line(error)
            self.transcript.add_notice("error", self.broken)
            return
        await self.leave()
        code = error.exit_code if isinstance(error, ExpectedError) else 1
        self.app.exit(return_code=code, message=f"chatctx: {self.one_line(error)}")

    async def _opened(self, workspace: Workspace, session: ChatSession) -> None:
        """Show the conversation, recall earlier drafts and prompts, and report what is wrong with the settings."""
        try:
            if await asyncio.to_thread(workspace.store.recover_drafts, session.id):
                self._notify_recalled()
        except Exception as error:  # they stay where they are
            log.exception("earlier drafts could not be recalled")
            self.show_error(self.one_line(error))
        self.composer.history.load(await asyncio.to_thread(workspace.store.prompts, HISTORY_LOADED))
        await self.attach(session)
        workspace.servers.on_change(self._server_changed)
        self._report_news()
        problems = await asyncio.to_thread(self.drafts.rescued_texts)
        for text in (*problems, *await self._check_keys()):
            self.notify(text, severity="warning", timeout=8, markup=False)

    def _notify_recalled(self) -> None:
        self.notify(f"The {self.key('composer.up', 'up')} key brings back your last draft.", timeout=8, markup=False)

    async def answer_server(self, question: ServerQuestion) -> Reply:
        """Ask the person what an MCP server wants to know; cancelled when it does not wait any more."""
        from tui.commands.questions import ask

        return await ask(self.ui, self.state, question)

    async def attach(self, session: ChatSession) -> None:
        """Show this session, with its draft."""
        before = self.session
        if before is not None and before is not session:
            await self.drafts.hand_over(before, session)  # raises if they can't be stored: then nothing changes
        self.state.attached, self.cost = session, None
        if before is not None:
            self.turns.rewind_to = ""
            self._places[before.id] = self.transcript.reader_place
        self.transcript.set_messages(session.messages, not_sent=session.conversation.not_sent())
        if before is not None and session.id in self._places:
            self.transcript.return_to(self._places[session.id])
        self.welcome()
        self.turns.show_hint()  # the chosen message is not on screen any more
        for notice in session.conversation.memory.notices:
            self.transcript.add_notice("info", notice)
        if session.messages:
            self.background(partial(self.ui.recover_summary, session), "summary")
        self.refresh_title()
        self.refresh_status(counts=True)
        draft = session.conversation.info.draft
        if draft and not self.composer.value:
            self.composer.value = draft
        elif draft and before is None:  # text typed during start-up
            self.drafts.remember(draft)
            self._notify_recalled()
        self.draft_cost.count()
        if self.turns.waiting:
            self.turns.send_next()
        else:
            self.background(partial(self._measure, session), "measure")

    async def _measure(self, session: ChatSession) -> None:
        """Measure a session after asking the server for its window, which may take a while."""
        await session.refresh_usage()
        if session is self.session:
            self.refresh_status(counts=True)
            self.welcome()

    def welcome(self) -> None:
        """The text of an empty conversation, with what is known so far."""
        session = self.session
        if session is not None and not session.messages:
            where = self.workspace.place(session.provider) if self.workspace is not None else ""
            keys = f"{self.key('composer.send', 'enter')} sends, {self.key('composer.newline', 'ctrl+j')} new line"
            self.transcript.show_static(welcome(session.provider, session.model, session.usage, where, keys))

    def show_error(self, text: str) -> None:
        """Show an error in the conversation."""
        self.transcript.add_notice("error", text)

    def refresh_title(self) -> None:
        """Update title and model."""
        if self.session is not None:
            title = self.session.conversation.info.title or "new conversation"
            self.title_bar.draw(partial(title_line, title, f"{self.session.provider}/{self.session.model}"))

    def refresh_status(self, *, counts: bool = False) -> None:
        """Update the session's numbers; with `counts` also those of each message."""
        session = self.session
        if session is None:
            return
        self.status_bar.draw(partial(status_line, session.usage, self.cost, session.conversation.info.rolling))
        self._panels_follow()
        if counts and session.usage is not None:
            self.transcript.set_counts(session.usage.messages)
            self.background(partial(self._add_up_cost, session), "cost", exclusive=True)

    async def _add_up_cost(self, session: ChatSession) -> None:
        self.cost = await session.cost()
        self.refresh_status()

    def request_changed(self) -> None:
        """The request has changed: update status and marks."""
        self.refresh_status(counts=True)
        if self.session is not None:
            self.transcript.set_not_sent(self.session.conversation.not_sent())

    def recount_soon(self) -> None:
        """Measure again in the background."""
        self.background(self.ui.changed, "servers", exclusive=True)

    def _panels_follow(self) -> None:
        for screen in self.app.screen_stack:
            if isinstance(screen, Panel) and screen.is_mounted:  # otherwise it will draw what is new by itself
                screen.follow()

    # -- MCP servers ---------------------------------------------------------------------------------------------

    def _server_changed(self, _name: str) -> None:
        self._report_news()
        self._panels_follow()
        if not self.turns.busy:
            self.recount_soon()

    def _report_news(self) -> None:
        """Report ignored settings and failed servers: in the conversation, or as a toast while that is empty."""
        for line in self.workspace.news() if self.workspace is not None else ():
            if self.session is not None and not self.session.messages:
                self.notify(plain(line), severity="warning", timeout=10, markup=False)
            else:
                self.transcript.add_notice("warning", plain(line))

    # -- messages of the widgets ------------------------------------------------------------------------------------

    async def on_composer_submitted(self, event: Composer.Submitted) -> None:
        """Send a message, or run a command; an unknown command goes back to the draft."""
        text = event.text
        if slash.is_command(text):
            try:
                command, args = slash.parse(text)
            except slash.CommandError as error:
                self._return_to_draft(text, str(error))
            else:
                self.drafts.remember(text, sent=not args)  # a command without text is not worth recalling
                self.run_command(command, args)
        elif self.broken:
            self._return_to_draft(text, self.broken)
        else:
            self.drafts.remember(text, sent=True)
            self.transcript.scroll_end(animate=False)
            self.turns.ask(text[1:] if text.startswith(" /") else text)
        self.composer.outgoing.remove(text)

    def _return_to_draft(self, text: str, reason: str) -> None:
        """Put a text that can't be sent back into the draft, and show the reason."""
        self.transcript.add_notice("error", reason)
        self.composer.restore(text)

    def run_command(self, command: Command, args: str = "") -> None:
        """Run a command in the background; errors are shown in the conversation."""
        self.background(partial(slash.run, command, self.ui, self.state, args), f"/{command.name}", again=True)

    def on_composer_changed(self, event: Composer.Changed) -> None:
        """Count, store and complete the draft."""
        self.draft_cost.changed(event.typed, event.pasted)
        self.drafts.save_soon()
        if is_completed(event.text):
            self.soon(partial(self.complete, event.text, event.cursor), "complete")
        else:
            self.composer.completions.offer(())

    async def complete(self, text: str, cursor: int) -> None:
        """Offer completions for a command, or for a file after `@`."""
        if text.startswith("/"):
            offers = await slash.complete(self.ui, self.state, text)
        else:
            servers = self.workspace.servers if self.workspace is not None else None
            offers = await mention_offers(text, cursor, self.files, servers)
        if self.composer.area.text == text:
            completions = self.composer.completions
            completions.offer(offers, text)
            wanted, completions.wanted = completions.wanted, ""
            if offers and wanted == text:
                self.composer.accept(offers[0])

    def on_resize(self, _event: events.Resize) -> None:
        """Redraw what depends on the size."""
        self.composer.fit(self.size.height)
        self.composer.completions.offer(self.composer.completions.choices, self.composer.completions.text)
        if self.session is not None:
            self.turns.show_hint()

    def on_composer_paste_wanted(self) -> None:
        """Paste, possibly an image: the terminal pastes only text."""
        self.action_command("paste")

    def on_composer_recall(self) -> None:
        """Put the last waiting message back into the draft."""
        if text := self.turns.recall_waiting():
            self.composer.restore(text)

    def on_bar_pressed(self, event: Bar.Pressed) -> None:
        """The number or the model was clicked."""
        if event.bar is not self.composer.rule:
            self.action_command("context" if event.bar is self.status_bar else "model")

    def on_transcript_action_requested(self, event: Transcript.ActionRequested) -> None:
        """Run an action on a message."""
        self.background(partial(self.message_actions.run, event), "message", again=True)

    def on_transcript_link_clicked(self, event: Transcript.LinkClicked) -> None:
        """A link was clicked."""
        self.background(partial(self.message_actions.open_link, event.url), "link")

    def on_transcript_cursor_moved(self, event: Transcript.CursorMoved) -> None:
        """Show the keys for the chosen message; without one the prompt has the keys again."""
        if event.message_id is None:
            self.composer.focus_prompt()
        self.turns.show_hint()

    def on_descendant_focus(self) -> None:
        """Keys act on the chosen message only while the conversation has the focus."""
        if self.session is not None:
            self.turns.show_hint()

    # -- keys ----------------------------------------------------------------------------------------------------

    def redirect_typing(self, event: events.Key | events.Paste) -> None:
        """Letters that are not keys of the conversation go to the prompt, and so do the following ones."""
        if self.focused is not self.transcript:
            return
        if isinstance(event, events.Paste) or (event.is_printable and event.key not in self.active_bindings):
            self.transcript.clear_cursor()
            self.set_focus(self.composer.area)

    def action_choose_message(self, step: int) -> None:
        """Move the block cursor from the prompt: up chooses the last message."""
        if step < 0 or self.transcript.cursor_id is not None:
            self.set_focus(self.transcript)
            self.transcript.action_cursor(step)

    def action_scroll_pages(self, pages: int) -> None:
        """Scroll the conversation while the prompt keeps the focus."""
        step = max(1, self.transcript.size.height - 2)
        self.transcript.scroll_relative(y=pages * step, animate=False)

    def action_to_start(self) -> None:
        """Go to the start of the conversation."""
        self.transcript.scroll_home(animate=False)

    def action_to_end(self) -> None:
        """Go to the end of the conversation."""
        self.transcript.scroll_end(animate=False)

    async def action_rephrase(self) -> None:
        """Edit the person's last message in the prompt; sending it replaces the old one."""
        messages = self.session.messages if self.session is not None else ()
        if asked := [message for message in messages if message.role == "user" and message.kind == "chat"]:
            await self.message_actions.run(Transcript.ActionRequested(asked[-1].id, "edit"))

    def action_command(self, line: str) -> None:
        """Run a command by name with its arguments, for keys and the palette."""
        self.run_command(*slash.parse(f"/{line}"))

    def action_stop(self) -> None:
        """Esc: stop the answer, else leave the edited message, the search or the selection."""
        if self.turns.stop():
            return
        if self.turns.rewind_to:
            messages = self.session.messages if self.session is not None else ()
            text = self.composer.value
            if text and all(m.text != text for m in messages if m.id == self.turns.rewind_to):
                self.drafts.remember(text)
            self.turns.rewind_to = ""
            self.composer.clear()
        self.transcript.end_search()
        self.transcript.clear_cursor()
        self.clear_selection()
        self.composer.focus_prompt()

    async def leave(self) -> str:
        """Store everything and close. Returns what could not be stored, for the terminal; "" for nothing."""
        await self.turns.finish()
        await self.ui.save_summary()
        unsaved = await self.drafts.save_at_end()
        if self.workspace is not None:
            if self.workspace.servers.ready:  # some take four seconds
                self.set_timer(SHUTDOWN_NOTICE, lambda: self.notify("Stopping the MCP servers …", markup=False))
            self.closing = True
            try:
                await asyncio.shield(self.workspace.close())
            except Exception:
                log.exception("leaving")
        return unsaved

"""The chat screen: conversation, prompt, status. It takes keys before there is a session, and loses none of them."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from textual import events, work
from textual.binding import Binding, BindingType

from tui.commands import registry as slash
from tui.screens import mentions
from tui.screens.chat.chat_parts import ChatParts
from tui.screens.chat.drafts import Drafts
from tui.screens.chat.resources import pattern_offers, resource_offers
from tui.screens.chat.theming import Theming
from tui.widgets.composer.composer import Composer
from tui.widgets.transcript.document import MessagePlace
from tui.widgets.transcript.transcript import Transcript

if TYPE_CHECKING:
    from tui.screens.chat.chat_commands import ChatCommands
    from tui.screens.chat.turns import Turns
    from tui.screens.ports import SettingsLike, WorkspaceLike
    from tui.screens.session_ports import SessionLike

log = logging.getLogger(__name__)

OpenWorkspace: TypeAlias = "Callable[[], Awaitable[WorkspaceLike]]"

LATER = ("tui.screens.chat.turns", "tui.screens.chat.chat_commands", "tui.render.stream")
"""Loaded between the first frame and the first conversation."""

HISTORY_LOADED = 500
"""Prompts of earlier sessions within reach of the up key."""


class ChatScreen(ChatParts):
    """Wires composer, transcript and status to the session, the keys and the commands."""

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
        # At once, so that the next letter is the message's and not the prompt's.
        Binding("alt+up", "choose_message(-1)", "Choose a message", id="chat.choose", show=False, priority=True),
        Binding(
            "alt+down", "choose_message(1)", "Choose the next one", id="chat.choose_next", show=False, priority=True
        ),
        Binding("f1", "command('help')", "Help", id="chat.help", show=False),
        Binding("f2", "command('context')", "What fills the window", id="chat.context", show=False),
        Binding("f3", "command('fold')", "Fold or unfold all", id="chat.fold", show=False),
        Binding("f4", "command('times')", "When it was written", id="chat.times", show=False),
        Binding("ctrl+o", "command('model')", "Model", id="chat.model", show=False),
        Binding("ctrl+r", "command('sessions')", "Conversations", id="chat.sessions", show=False),
        Binding("ctrl+g", "command('edit')", "Own editor", id="chat.edit", show=False),
        Binding("ctrl+n", "command('new')", "New conversation", id="chat.new", show=False),
    ]

    AUTO_FOCUS = ""

    def __init__(self, open_workspace: OpenWorkspace, settings: SettingsLike) -> None:
        super().__init__(settings)
        self.open_workspace = open_workspace
        self.themes_dir = settings.themes_dir
        self._places: dict[str, MessagePlace | None] = {}  # where the reader was in each conversation of this run
        self.broken = ""  # why there is no workspace, once that is known

    @cached_property
    def theming(self) -> Theming:
        """The themes to choose from."""
        return Theming(self, self.themes_dir)

    @cached_property
    def drafts(self) -> Drafts:
        """What is being written."""
        return Drafts(self)

    @cached_property
    def turns(self) -> Turns:
        """What runs and what waits. Loaded after the first frame, too."""
        from tui.screens.chat.turns import Turns

        return Turns(self)

    @cached_property
    def commands(self) -> ChatCommands:
        """What the slash commands do. Loaded after the first frame."""
        from tui.screens.chat.chat_commands import ChatCommands

        return ChatCommands(self)

    def on_mount(self) -> None:
        """Take keys at once; open everything else after the first frame."""
        self.composer.focus_prompt()
        self.title_bar.show("chatctx", "starting …")
        self.set_interval(1.0, self._tick)
        self.call_after_refresh(self._open)

    def _tick(self) -> None:
        if self.session is not None:
            self.turns.tick()

    @work(group="open", exit_on_error=False)
    async def _open(self) -> None:
        if not gc.isenabled():  # the command line turned it off for the start
            gc.freeze()
            gc.enable()
        try:
            for name in LATER:
                await asyncio.to_thread(import_module, name)  # longer than a frame
            self.workspace = await self.open_workspace()
            session = await self.workspace.start_session()
        except Exception as error:
            log.exception("the workspace could not be opened")
            if not self.composer.value and not self.turns.waiting:
                from tui.chat.store.store import UsageError  # which is loaded by now

                await self.leave()
                code = 2 if isinstance(error, UsageError) else 1  # as the command line has them
                self.app.exit(return_code=code, message=f"chatctx: {self.one_line(error)}")
                return
            self.title_bar.show("chatctx", "not open")
            self.broken = self.one_line(error)
            self.transcript.add_notice("error", self.broken)
            return
        self.composer.history.load(await self.workspace.prompt_history(HISTORY_LOADED))
        await self.attach(session)
        self.commands.follow_servers()
        for text in await asyncio.to_thread(self.commands.key_problems) if self.keymap else ():
            self.notify(text, severity="warning", timeout=8, markup=False)

    async def attach(self, session: SessionLike) -> None:
        """Show this session from now on, with the draft that was left in it."""
        before = self.session
        if before is not None and before is not session:
            await self._part_drafts(before, session)
        self.session, self.cost = session, None
        if before is not None:
            self.turns.rewind_to = ""
            self._places[before.id] = self.transcript.reader_place
        self.transcript.set_messages(session.messages, not_sent=session.not_sent)
        if before is not None and session.id in self._places:
            self.transcript.return_to(self._places[session.id])
        self.welcome()
        self.turns.show_rest()  # a message that was chosen is not on screen any more
        for notice in session.memory.notices:
            self.transcript.add_notice("info", notice)
        self.background(partial(self.commands.bring_back_summary, session), "summary")
        self.refresh_title()
        self.refresh_status(counts=True)
        if session.draft and not self.composer.value:
            self.composer.value = session.draft
        elif session.draft and before is None:  # something was typed while the program started
            self.remember(session.draft)
            self.notify("The up key brings back the draft of last time.", timeout=8, markup=False)
        self.drafts.count()
        if self.turns.waiting:
            self.turns.pump()
        elif session.usage is None or session.messages:  # a number kept from last time says nothing of each message
            self.background(partial(self._measure, session), "measure")

    async def _part_drafts(self, before: SessionLike, session: SessionLike) -> None:
        """A draft goes along into a conversation that has none of its own; else each keeps its own."""
        text = self.drafts.text
        await before.save_draft(text if session.draft else "")
        if session.draft:
            self.composer.value = session.draft

    async def _measure(self, session: SessionLike) -> None:
        """The first numbers of a session; asking the server for its window may take a while."""
        await session.refresh_usage()
        if session is self.session:
            self.refresh_status(counts=True)
            self.welcome()

    async def on_composer_submitted(self, event: Composer.Submitted) -> None:
        """A message goes to the session, a command is run; a command that isn't there goes back to the draft."""
        text = event.text
        if slash.is_command(text):
            parsed = slash.parse(text)
            if isinstance(parsed, slash.Unknown):
                self.transcript.add_notice("error", parsed.text)
                self.composer.give_back(text)
                return
            self.remember(text)
            self.run_command(*parsed)
            return
        if self.broken:
            self.transcript.add_notice("error", self.broken)
            self.composer.give_back(text)
            return
        self.remember(text)
        self.transcript.scroll_end(animate=False)
        self.turns.ask(text[1:] if text.startswith(" /") else text)

    def run_command(self, command: slash.Command, args: str = "") -> None:
        """Run a command beside the event loop's other work; what goes wrong is a line in the conversation."""
        self.background(partial(command.run, self.commands, args), f"/{command.name}", again=True)

    def on_composer_changed(self, event: Composer.Changed) -> None:
        """Count, keep and complete the draft."""
        self.drafts.changed(event.typed, event.pasted)
        self.soon(partial(self.complete, event.words, event.cursor), "complete")

    async def complete(self, words: str, cursor: int) -> None:
        """Offer endings for what is being typed: a command, or a file after `@`."""
        if words.startswith("/"):
            offers = await slash.complete(self.commands, words)
        elif (typed := mentions.open_mention(words[:cursor])) is not None:
            found = await asyncio.to_thread(self.files.offers, typed)
            if self.workspace is not None:
                servers = self.workspace.servers
                found = [*resource_offers(typed, servers.resources), *await pattern_offers(typed, servers), *found]
            offers = [mentions.choice(words, cursor, offer) for offer in found]
        else:
            offers = []
        if self.composer.area.text == words:
            self.composer.completions.offer(offers, words)

    def on_resize(self, _event: events.Resize) -> None:
        """What was laid out for another size."""
        self.composer.fit(self.size.height)
        self.composer.completions.offer(self.composer.completions.choices, self.composer.completions.words)
        if self.session is not None:
            self.turns.show_rest()

    def on_composer_paste_wanted(self) -> None:
        """A picture, perhaps: the terminal pastes only text."""
        self.action_command("paste")

    def on_composer_recall(self) -> None:
        """Bring the last waiting message back into the draft."""
        if text := self.turns.take_back():
            self.composer.value = text

    def on_status_bar_pressed(self) -> None:
        """The number was clicked."""
        self.action_command("context")

    def on_title_bar_pressed(self) -> None:
        """The model was clicked."""
        self.action_command("model")

    def on_transcript_action_requested(self, event: Transcript.ActionRequested) -> None:
        """Something was asked of one message."""
        self.background(
            partial(self.commands.on_message, event.message_id, event.action, event.text, event.detail),
            "message",
            again=True,
        )

    def on_transcript_link_clicked(self, event: Transcript.LinkClicked) -> None:
        """A link was clicked."""
        self.background(partial(self.commands.open_link, event.url), "link")

    def on_transcript_cursor_moved(self, event: Transcript.CursorMoved) -> None:
        """Say what can be done with the chosen message; once none is chosen the prompt has the keys again."""
        if event.message_id is None:
            self.composer.focus_prompt()
        self.turns.show_rest()

    def on_descendant_focus(self) -> None:
        """The keys of a chosen message are its keys only while the conversation has them."""
        if self.session is not None:
            self.turns.show_rest()

    def action_command(self, said: str) -> None:
        """Run a command by name, with what follows it, as a key or the palette does."""
        parsed = slash.parse(f"/{said}")
        if not isinstance(parsed, slash.Unknown):
            self.run_command(*parsed)

    def action_stop(self) -> None:
        """Esc: end the answer, else let go of a message being edited, of a search, of a selection."""
        if self.turns.stop():
            return
        if self.turns.rewind_to:
            self.turns.rewind_to = ""
            self.composer.clear()
        self.transcript.find("")
        self.transcript.clear_cursor()
        self.clear_selection()
        self.composer.focus_prompt()

    async def leave(self) -> str:
        """Keep what there is and close everything. Returns what could not be kept, for the terminal; "" is all well."""
        await self.commands.put_summary_away()
        await self.turns.finish()
        unsaved = self.drafts.text
        try:
            if self.session is not None:
                await self.drafts.save()
                unsaved = ""
            if self.workspace is not None:
                self.commands.leaving()
                self.closing = True
                await asyncio.shield(self.workspace.close())
        except Exception as error:
            log.exception("leaving")
            self.broken = self.one_line(error)
        return f"{self.broken}\nNot stored, so that you can copy it:\n{unsaved}" if unsaved else ""

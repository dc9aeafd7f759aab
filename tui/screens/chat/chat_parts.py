"""What the chat screen consists of, and what its helpers (commands, turns, drafts) ask of it. `ChatScreen` wires it."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from textual import events, getters
from textual.app import ComposeResult

from tui.screens import mentions
from tui.screens.chat.work_screen import WorkScreen
from tui.screens.clipboard import CopyingApp
from tui.views.context_messages import message_counts
from tui.widgets.composer.composer import Composer, QueueList
from tui.widgets.status_bar import Status, StatusBar
from tui.widgets.title_bar import TitleBar
from tui.widgets.transcript.transcript import Transcript
from tui.widgets.welcome import welcome

if TYPE_CHECKING:
    from tui.chat.conversation.events import SessionEvent
    from tui.context.usage.usage import ContextUsage
    from tui.screens.ports import SettingsLike, WorkspaceLike
    from tui.screens.session_ports import SessionLike


class TurnsLike(Protocol):
    """What runs and what waits."""

    waiting: deque[str]
    rewind_to: str

    @property
    def busy(self) -> bool:
        """Whether a turn runs."""
        ...

    def run(self, events: AsyncIterator[SessionEvent]) -> None:
        """Show the events of a turn that was not typed."""
        ...

    def stop(self) -> bool:
        """End the running turn. False if nothing ran."""
        ...

    def show_rest(self) -> None:
        """The line above the prompt while no turn runs."""
        ...


class DraftsLike(Protocol):
    """What is being written."""

    def count(self) -> None:
        """Count it as it is now."""
        ...


class ThemingLike(Protocol):
    """The themes to choose from."""

    async def load(self) -> None:
        """All of them, once."""
        ...

    async def use(self, name: str) -> None:
        """Change the colours, and remember that."""
        ...


class FollowsNumbers(Protocol):
    """A panel that shows the numbers too, while it is open."""

    def follow(self) -> None:
        """They have changed."""
        ...


class ChatParts(WorkScreen):
    """Transcript, prompt and the lines around them, showing one session at a time."""

    app = getters.app(CopyingApp)

    def __init__(self, settings: SettingsLike) -> None:
        super().__init__(settings.log_file)
        self.pictures = settings.data_dir / "pictures"  # that were pasted
        self.keymap = settings.keys
        self.workspace: WorkspaceLike | None = None
        self.session: SessionLike | None = None
        self.cost: float | None = None  # dollars of this session, None is unknown
        self.context_panel: FollowsNumbers | None = None  # while it is open
        self.title_bar = TitleBar()
        self.transcript = Transcript()
        self.queue_list = QueueList()
        self.composer = Composer()
        self.status_bar = StatusBar()
        self.files = mentions.FileIndex(Path.cwd())

    @property
    @abstractmethod
    def turns(self) -> TurnsLike:
        """What runs and what waits."""

    @property
    @abstractmethod
    def drafts(self) -> DraftsLike:
        """What is being written."""

    @property
    @abstractmethod
    def theming(self) -> ThemingLike:
        """The themes to choose from."""

    @abstractmethod
    async def attach(self, session: SessionLike) -> None:
        """Show this session from now on."""

    @abstractmethod
    def action_command(self, said: str) -> None:
        """Run a command by name, with what follows it."""

    def compose(self) -> ComposeResult:
        """From top to bottom; only the conversation gives way."""
        yield self.title_bar
        yield self.transcript
        yield self.queue_list
        yield self.composer
        yield self.status_bar

    def welcome(self) -> None:
        """What an empty conversation shows, with what is known by now."""
        session = self.session
        if session is not None and not session.messages:
            where = self.workspace.place(session.provider) if self.workspace is not None else ""
            self.transcript.show_static(welcome(session.provider, session.model, session.usage, where))

    def say_error(self, text: str) -> None:
        """Put one clear line into the conversation."""
        self.transcript.add_notice("error", text)

    def refresh_title(self) -> None:
        """Title and model of the session."""
        if self.session is not None:
            self.title_bar.show(
                self.session.title or "new conversation", f"{self.session.provider}/{self.session.model}"
            )

    def refresh_status(self, *, counts: bool = False) -> None:
        """The numbers of the session; with `counts` also those beside each message."""
        session = self.session
        if session is None:
            return
        self.status_bar.show(Status(session.usage, self.cost, session.rolling))
        if self.context_panel is not None:
            self.context_panel.follow()
        if counts and session.usage is not None:
            self.background(partial(self._count_messages, session, session.usage), "counts", exclusive=True)

    async def _count_messages(self, session: SessionLike, usage: ContextUsage) -> None:
        """Costs, and tokens of each message: long conversations have many, so off the event loop."""
        self.transcript.set_counts(await asyncio.to_thread(message_counts, usage))
        self.cost = await session.cost()
        self.refresh_status()

    def remember(self, text: str) -> None:
        """Keep a prompt for the up key, in this run and later ones."""
        self.composer.history.add(text)
        if self.workspace is not None:
            self.background(partial(self.workspace.add_prompt, text), "prompts")

    def take_typed(self, event: events.Key | events.Paste) -> None:
        """What is typed in the conversation and is no key of it goes to the prompt, and the next letters with it."""
        if self.focused is not self.transcript:
            return
        if isinstance(event, events.Paste) or (event.is_printable and event.key not in self.active_bindings):
            self.transcript.clear_cursor()
            self.set_focus(self.composer.area)

    def action_choose_message(self, step: int) -> None:
        """Move the block cursor from the prompt: up from nowhere chooses the last message."""
        if step < 0 or self.transcript.cursor_id is not None:
            self.set_focus(self.transcript)
            self.transcript.action_cursor(step)

    def action_scroll_pages(self, pages: int) -> None:
        """Page through the conversation while the prompt keeps the keys."""
        step = max(1, self.transcript.size.height - 2)
        self.transcript.scroll_relative(y=pages * step, animate=False)

    def action_to_start(self) -> None:
        """Go to the beginning of the conversation."""
        self.transcript.scroll_home(animate=False)

    def action_to_end(self) -> None:
        """Go to the end of the conversation."""
        self.transcript.scroll_end(animate=False)

    def copy_text(self, text: str, what: str = "") -> None:
        """Copy `text`, which `what` names in what is said of it."""
        self.app.copy_to_clipboard(text, what)

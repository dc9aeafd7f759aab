"""The port between slash commands and the user interface: panels on screen, lines in `--plain`, scripts in tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from tui.views.view import Choice

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from tui.chat.conversation.events import SessionEvent
    from tui.chat.turn.session import ChatSession
    from tui.chat.workspace import Workspace
    from tui.views.summary_text import SummaryText
    from tui.views.view import Form, Menu, Option, Question, View


class Screen(Protocol):
    """Features of a full screen only: a prompt with a draft, a transcript to move in, colours."""

    async def append_to_draft(self, text: str) -> None:
        """Append `text` to the draft, on lines of its own."""

    async def paste(self, text: str) -> None:
        """Insert text at the cursor as a paste does."""

    async def mention(self, path: str) -> None:
        """Mention a file at the cursor, which attaches it when the draft is sent."""

    async def edit_draft(self) -> None:
        """Edit the draft in an external editor. Raises `EditorError`."""

    async def find(self, text: str) -> tuple[int, int]:
        """Go to the nearest match of `text`, or for "" to the next one; returns its number and how many there are."""

    async def fold(self) -> None:
        """Fold everything that is unfolded, or unfold all."""

    async def toggle_times(self) -> None:
        """Show or hide when each message was written."""

    async def themes(self) -> Sequence[Option]:
        """The available themes."""

    def use_theme(self, name: str) -> None:
        """Change the colours."""

    @property
    def clipboard(self) -> str:
        """The text copied last in this program."""


class UI(Protocol):
    """What commands may do with the user interface. Every method returns once the person is done with it."""

    @property
    def busy(self) -> bool:
        """Whether an answer is running."""

    @property
    def screen(self) -> Screen | None:
        """The full screen; None in `--plain`."""

    async def say(self, text: str, *, passing: bool = False) -> None:
        """Show a result. A `passing` one may disappear."""

    async def refuse(self, text: str) -> None:
        """Show why something was not done."""

    def progress(self, text: str) -> AbstractAsyncContextManager[None]:
        """Show what is under way as long as the context lasts. It leaves no trace."""

    async def show(self, view: View) -> None:
        """Show a view."""

    async def choose(self, menu: Menu) -> str | None:
        """Let the person choose from a list; returns the key, or None."""

    async def confirm(self, question: Question) -> str | None:
        """Ask a question with a few answers; returns the answer's key, or None."""

    async def ask(self, form: Form) -> Mapping[str, str] | None:
        """Let the person fill in a form; returns the values by field name, or None."""

    async def edit(self, text: SummaryText) -> bool:
        """Let the person read, change and accept a summary. False: it was not accepted."""

    async def turn(self, events: AsyncIterator[SessionEvent]) -> None:
        """Run and show a turn. Raises `BusyError` while another one runs."""

    async def attach(self, session: ChatSession) -> None:
        """Switch to another conversation."""

    async def changed(self) -> None:
        """Measure the next request again and show the session's new state."""

    async def copy(self, text: str) -> None:
        """Copy to the clipboard, and show the outcome."""

    async def leave(self) -> None:
        """End the program."""


class CommandError(Exception):
    """A command failed. `str()` is one line: why, and what to do instead."""


class EditorError(CommandError):
    """The external editor failed; the draft is unchanged. `written` is the text the editor left, "" for none."""

    def __init__(self, message: str, written: str = "") -> None:
        super().__init__(message)
        self.written = written


class BusyError(CommandError):
    """An answer is running."""

    def __init__(self) -> None:
        super().__init__("An answer is still coming: Esc stops it, then try again.")


class NotReadyError(CommandError):
    """There is no workspace yet."""

    def __init__(self) -> None:
        super().__init__("Still starting: try again in a moment.")


@dataclass
class Chat:
    """The workspace and the conversation of the user interface, for commands; None until they are open."""

    opened: Workspace | None = None
    attached: ChatSession | None = None

    @property
    def ready(self) -> bool:
        """Whether there is a conversation yet."""
        return self.attached is not None

    @property
    def workspace(self) -> Workspace:
        """The workspace. Raises `NotReadyError`."""
        if self.opened is None:
            raise NotReadyError
        return self.opened

    @property
    def session(self) -> ChatSession:
        """The current conversation. Raises `NotReadyError`."""
        if self.attached is None:
            raise NotReadyError
        return self.attached


Run: TypeAlias = "Callable[[UI, Chat, str], Awaitable[None]]"
Complete: TypeAlias = "Callable[[UI, Chat, str], Awaitable[Sequence[Choice]]]"

When: TypeAlias = Literal["always", "ready", "idle"]
"""When a command may run: at any time, once there is a conversation, or only while no answer is under way."""


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command. `args` describes its arguments in the help: "[on|off]", "TITLE"."""

    name: str
    help: str
    run: Run
    section: str
    when: When = "ready"
    args: str = ""
    aliases: tuple[str, ...] = ()
    complete: Complete | None = None
    variants: tuple[tuple[str, str], ...] = ()  # arguments offered in the palette too, with descriptions
    screen_only: bool = False
    local_only: bool = False  # runs programs, or reads and writes arbitrary files: disabled in a browser
    first: bool = False  # first in its section

    @property
    def usage(self) -> str:
        """ "/compact [instructions]"."""
        return f"/{self.name} {self.args}".rstrip()

    @property
    def needs_args(self) -> bool:
        """Whether it does nothing without an argument."""
        return bool(self.args) and not self.args.startswith("[")


def fixed(*choices: tuple[str, str]) -> Complete:
    """A completion that always offers the same arguments, with descriptions."""

    async def complete(_ui: UI, _chat: Chat, _args: str) -> Sequence[Choice]:
        return [Choice(text, text, what) for text, what in choices]

    return complete

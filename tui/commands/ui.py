"""The port between slash commands and the interface they run in: panels of the screen, lines of `--plain`, a script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from tui.views.view import Choice

if TYPE_CHECKING:
    from tui.chat.conversation.events import SessionEvent
    from tui.chat.turn.session import ChatSession
    from tui.chat.workspace import Workspace
    from tui.views.summary_text import SummaryText
    from tui.views.view import Form, Menu, Option, Question, View


class Screen(Protocol):
    """What only a full screen has: a prompt with a draft, a transcript to move in, colours."""

    async def append_to_draft(self, text: str) -> None:
        """Put `text` behind the draft, on lines of its own."""
        ...

    async def paste(self, text: str) -> None:
        """Insert text at the cursor as a paste does."""
        ...

    async def mention(self, path: str) -> None:
        """Mention a file at the cursor: it is attached when the draft is sent."""
        ...

    async def edit_draft(self) -> None:
        """Let the person's own editor change the draft. Raises `EditorError`."""
        ...

    async def find(self, text: str) -> tuple[int, int]:
        """Go to the nearest match of `text`, or to the next one for ""; its number and how many there are."""
        ...

    async def fold(self) -> None:
        """Fold everything that is unfolded, or unfold all."""
        ...

    async def toggle_times(self) -> None:
        """Show when each message was written, or hide that."""
        ...

    async def themes(self) -> Sequence[Option]:
        """The themes there are."""
        ...

    def use_theme(self, name: str) -> None:
        """Change the colours."""
        ...

    @property
    def clipboard(self) -> str:
        """What was copied in this program last."""
        ...


class UI(Protocol):
    """What a command may do to the interface. Every method returns once the person is done with what it shows."""

    @property
    def busy(self) -> bool:
        """Whether an answer is under way."""
        ...

    @property
    def screen(self) -> Screen | None:
        """The full screen; None where there are only lines."""
        ...

    async def say(self, text: str, *, passing: bool = False) -> None:
        """Tell what was done. What is `passing` need not stay in sight."""
        ...

    async def refuse(self, text: str) -> None:
        """Tell why something was not done."""
        ...

    async def progress(self, text: str) -> None:
        """Tell what is under way; "" when it is over. Nothing of it stays."""
        ...

    async def show(self, view: View) -> None:
        """Let the person look at something."""
        ...

    async def choose(self, menu: Menu) -> str | None:
        """Let the person choose from a list; the key, or None."""
        ...

    async def confirm(self, question: Question) -> str | None:
        """Ask a question with a few answers; the answer's key, or None."""
        ...

    async def ask(self, form: Form) -> Mapping[str, str] | None:
        """Have a form filled in and submitted; the values by field name, or None."""
        ...

    async def edit(self, text: SummaryText) -> bool:
        """Let the person read a summary, change it and accept it. False: it was left."""
        ...

    async def turn(self, events: AsyncIterator[SessionEvent]) -> None:
        """Show a turn. Not while another one runs."""
        ...

    async def attach(self, session: ChatSession) -> None:
        """Go on with another conversation."""
        ...

    async def changed(self) -> None:
        """Measure the next request anew and show the session as it is now."""
        ...

    async def copy(self, text: str) -> None:
        """Copy to the clipboard, and say what came of it."""
        ...

    async def leave(self) -> None:
        """End the program."""
        ...


class CommandError(Exception):
    """A command can't do what was asked. `str()` is one line: why, and what to do instead."""


class EditorError(Exception):
    """The person's editor failed. `str()` is one line; the draft is as it was."""


class NotReadyError(Exception):
    """There is no workspace yet."""

    def __init__(self) -> None:
        super().__init__("Still starting: try again in a moment.")


class Chat:
    """The workspace and the conversation that commands act on, as the interface has them now."""

    def __init__(self, workspace: Workspace | None = None, session: ChatSession | None = None) -> None:
        self._workspace = workspace
        self._session = session

    @property
    def ready(self) -> bool:
        """Whether there is a conversation by now."""
        return self._session is not None

    @property
    def workspace(self) -> Workspace:
        """Everything behind the chat. Raises `NotReadyError`."""
        if self._workspace is None:
            raise NotReadyError
        return self._workspace

    @property
    def session(self) -> ChatSession:
        """The conversation in use. Raises `NotReadyError`."""
        if self._session is None:
            raise NotReadyError
        return self._session

    def open(self, workspace: Workspace) -> None:
        """The workspace is there."""
        self._workspace = workspace

    def attach(self, session: ChatSession) -> None:
        """Go on with this conversation."""
        self._session = session


Run: TypeAlias = "Callable[[UI, Chat, str], Awaitable[None]]"
Complete: TypeAlias = "Callable[[UI, Chat, str], Awaitable[Sequence[Choice]]]"

When: TypeAlias = Literal["always", "ready", "idle"]
"""When a command may run: at any time, once there is a conversation, or only while no answer is under way."""

SECTIONS = ("context", "model", "conversation", "tools", "view", "program")
"""The parts of the list of commands, in order."""


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command. `args` is how its arguments are written in the help: "[on|off]", "TITLE"."""

    name: str
    help: str
    run: Run
    section: str
    when: When = "ready"
    args: str = ""
    aliases: tuple[str, ...] = ()
    complete: Complete | None = None
    variants: tuple[tuple[str, str], ...] = ()  # arguments that the palette offers too, and what they do
    screen_only: bool = False
    local_only: bool = False  # runs programs, or reads and writes files of one's choice: not from a browser
    first: bool = False  # leads its section

    @property
    def usage(self) -> str:
        """ "/compact [instructions]"."""
        return f"/{self.name} {self.args}".rstrip()

    @property
    def needs_args(self) -> bool:
        """Whether it does nothing without an argument."""
        return bool(self.args) and not self.args.startswith("[")


def fixed(*choices: tuple[str, str]) -> Complete:
    """A completion that always offers the same arguments; each with what it does."""

    async def complete(_ui: UI, _chat: Chat, _args: str) -> Sequence[Choice]:
        return [Choice(text, text, what) for text, what in choices]

    return complete

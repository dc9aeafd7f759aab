"""Slash commands: what one is, the user interface it talks to, and how all are found, completed and run.

A command is a module of this package whose `run` is decorated with `command`; no registration is needed. All are
imported when the first one is used, after the first frame.
"""

from __future__ import annotations

import logging
import os
import pkgutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from tui.errors import ExpectedError
from tui.text.labels import did_you_mean
from tui.views.view import Option, match, matching

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from tui.chat.compaction.compactor import SummaryText
    from tui.chat.conversation.events import SessionEvent
    from tui.chat.turn.session import ChatSession
    from tui.chat.workspace import Workspace
    from tui.views.view import Form, Menu, Question, View

log = logging.getLogger(__name__)

SECTIONS = ("context", "model", "conversation", "tools", "view", "program")
"""The parts of the list of commands, in order."""

NO_COMMANDS = frozenset({"questions"})
"""Modules of the package that are not commands."""

RESTRICTED = "CHATCTX_RESTRICTED"
"""Set in the environment of a chat started by `chatctx serve`, unless it is unrestricted."""


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
    """The user interface for commands. Every method returns once the person is done with it."""

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
        """Run and show a turn. Raises `CommandError` while another one runs."""

    async def attach(self, session: ChatSession) -> None:
        """Switch to another conversation."""

    async def changed(self) -> None:
        """Measure the next request again and show the session's new state."""

    async def copy(self, text: str) -> None:
        """Copy to the clipboard, and show the outcome."""

    async def leave(self) -> None:
        """End the program."""


class CommandError(ExpectedError):
    """A command failed. `str()` is one line: why, and what to do instead."""

    exit_code = 2


class EditorError(CommandError):
    """The external editor failed; the draft is unchanged. `written` is the text the editor left, "" for none."""

    def __init__(self, message: str, written: str = "") -> None:
        super().__init__(message)
        self.written = written


BUSY = "An answer is still coming: stop it or wait for it, then try again."
STILL_STARTING = "Still starting: try again in a moment."


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
        """The workspace. Raises `CommandError`."""
        if self.opened is None:
            raise CommandError(STILL_STARTING)
        return self.opened

    @property
    def session(self) -> ChatSession:
        """The current conversation. Raises `CommandError`."""
        if self.attached is None:
            raise CommandError(STILL_STARTING)
        return self.attached


HALF_REFUSAL = 300
"""Characters of the beginning and of the end of a line that says why not."""

Run: TypeAlias = "Callable[[UI, Chat, str], Awaitable[None]]"
Complete: TypeAlias = "Callable[[UI, Chat, str], Awaitable[Sequence[Option]]]"
"""Completions of the arguments: `key` is inserted, `label` matched."""

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


def command(about: str, section: str, **options: Any) -> Callable[[Run], Command]:
    """Makes a `Command` of a module's `run`, named like the module. `about` is its help, `options` are fields."""

    def decorate(run: Run) -> Command:
        name = run.__module__.rpartition(".")[2].rstrip("_").replace("_", "-")
        return Command(name, about, run, section, **options)

    return decorate


def fixed(*choices: tuple[str, str]) -> Complete:
    """A completion that always offers the same arguments, with descriptions."""

    async def complete(_ui: UI, _chat: Chat, _args: str) -> Sequence[Option]:
        return [Option(text, text, what) for text, what in choices]

    return complete


@cache
def all_commands() -> tuple[Command, ...]:
    """Every command, by section and name."""
    names = {module.name for module in pkgutil.iter_modules(__path__)} - NO_COMMANDS
    commands = [import_module(f"{__name__}.{name}").run for name in names]
    return tuple(
        sorted(commands, key=lambda command: (SECTIONS.index(command.section), not command.first, command.name))
    )


@cache
def _by_name() -> dict[str, Command]:
    return {name: command for command in all_commands() for name in (command.name, *command.aliases)}


def is_command(text: str) -> bool:
    """Whether a draft is a command: one line that starts with a slash and a letter, and is not a path."""
    first, *_ = text.split(maxsplit=1) or [""]
    return text.startswith("/") and "\n" not in text.strip() and first[1:2] not in ("", "/") and "/" not in first[1:]


def parse(text: str) -> tuple[Command, str]:
    """Command and argument of a draft for which `is_command` holds.

    Raises `CommandError` for an unknown command, and for words after one that takes none: they would be lost.
    """
    name, _, args = text.strip().removeprefix("/").partition(" ")
    names = _by_name()
    command = names.get(name.lower())
    if command is not None and args.strip() and not command.args:
        raise CommandError(f"/{name} takes no argument. To send it as a message, put a space before it.")
    if command is not None:
        return command, args.strip()
    hint = did_you_mean(f"/{name.lower()}", [f"/{known}" for known in names]) or "/help lists them all."
    raise CommandError(
        f"There is no command /{name}. {hint[:1].upper()}{hint[1:]} To send it as a message, put a space before it."
    )


def split_option(args: str, option: str) -> tuple[str, bool]:
    """The argument without `option`, which may be its first or last word, and whether it was there."""
    words = args.split(" ")  # a name may have several spaces
    if is_there := option in (words[0], words[-1]):
        words.remove(option)
    return " ".join(words).strip(), is_there


async def run(command: Command, ui: UI, chat: Chat, args: str = "") -> None:
    """Run a command if it may run now. Shows why not; shows and logs expected errors."""
    try:
        _check(command, ui, chat)
        await command.run(ui, chat, args)
    except ExpectedError as error:
        if not isinstance(error, CommandError):  # which is about what was typed
            log.warning("/%s failed", command.name, exc_info=True)
        await ui.refuse(_refusal(str(error)))


def _refusal(text: str) -> str:
    """`text` as a sentence, without keys that it repeats, and without its middle if it names something pasted."""
    from tui.providers.keys import redact  # loaded by now

    text = redact(text).removesuffix(".")
    if text.partition(" ")[0].replace("'", "").isalpha():  # not the name of a file
        text = f"{text[:1].upper()}{text[1:]}"
    text += "" if text.endswith("?") else "."
    return text if len(text) <= 2 * HALF_REFUSAL else f"{text[:HALF_REFUSAL]} … {text[-HALF_REFUSAL:]}"


def _check(command: Command, ui: UI, chat: Chat) -> None:
    """Raises `CommandError` if the command may not run now."""
    if command.screen_only and ui.screen is None:
        raise CommandError(f"/{command.name} needs the screen: start chatctx without --plain.")
    if command.local_only and os.environ.get(RESTRICTED):
        raise CommandError(f"/{command.name} is off in the browser: chatctx serve --unrestricted allows it.")
    if command.when != "always" and not chat.ready:
        raise CommandError(STILL_STARTING)
    if command.when == "idle" and ui.busy:
        raise CommandError(BUSY)


async def complete(ui: UI, chat: Chat, text: str) -> list[Option]:
    """Completions for the draft `text`: command names, or arguments after a space. Best first."""
    if not text.startswith("/") or "\n" in text:
        return []
    name, space, args = text[1:].partition(" ")
    if not space:
        scored = []
        for command in all_commands() if "/" not in name else ():
            score = max(match(name, command.name), *(match(name, alias) - 0.5 for alias in command.aliases), 0.0)
            if score > 0:
                whole = name if name.lower() in command.aliases else command.name  # enter runs what was typed
                typed = f"/{whole}" + (" " if command.args else "")
                scored.append((score, Option(typed, command.usage, command.help)))
        return [choice for _, choice in sorted(scored, key=lambda pair: -pair[0])]
    named = _by_name().get(name.lower())
    if named is None or named.complete is None:
        return []
    offers = await named.complete(ui, chat, args) if chat.ready or named.when == "always" else []
    ranked = matching(args, offers, lambda offer: offer.label)
    if any(offer.key == args for offer in ranked):
        return []
    return [Option(f"/{named.name} {offer.key}", offer.label, offer.detail) for offer in ranked]

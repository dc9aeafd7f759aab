"""All slash commands: found, parsed, completed and run the same way in every interface.

A command is a module of this package with a `COMMAND`; no registration is needed. All are imported when the first one
is used, after the first frame.
"""

from __future__ import annotations

import os
import pkgutil
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from tui import commands as package
from tui.commands.ui import UI, BusyError, Chat, Command, CommandError, NotReadyError
from tui.views.view import Choice, match

SECTIONS = ("context", "model", "conversation", "tools", "view", "program")
"""The parts of the list of commands, in order."""

NO_COMMANDS = frozenset({"questions", "registry", "ui"})
"""Modules of the package that are not commands."""


@cache
def all_commands() -> tuple[Command, ...]:
    """Every command, by section and name."""
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__) if not module.ispkg)
    commands = [import_module(f"{package.__name__}.{name}").COMMAND for name in names if name not in NO_COMMANDS]
    return tuple(
        sorted(commands, key=lambda command: (SECTIONS.index(command.section), not command.first, command.name))
    )


@cache
def _by_name() -> dict[str, Command]:
    return {name: command for command in all_commands() for name in (command.name, *command.aliases)}


@dataclass(frozen=True, slots=True)
class Unknown:
    """An unknown command. `text` is one line: what to do instead."""

    text: str


def is_command(text: str) -> bool:
    """Whether a draft is a command: one line that starts with a slash and a letter, and is not a path."""
    first, *_ = text.split(maxsplit=1) or [""]
    return text.startswith("/") and "\n" not in text.strip() and first[1:2] not in ("", "/") and "/" not in first[1:]


def parse(text: str) -> tuple[Command, str] | Unknown:
    """Command and argument of a draft for which `is_command` holds."""
    name, _, args = text.strip().removeprefix("/").partition(" ")
    names = _by_name()
    command = names.get(name.lower())
    if command is not None:
        return command, args.strip()
    import difflib  # needed for mistyped commands only

    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    hint = f"Did you mean /{names[near[0]].name}?" if near else "/help lists what there is."
    return Unknown(f"There is no command /{name}. {hint} To send it as a message, put a blank before it.")


RESTRICTED = "CHATCTX_RESTRICTED"
"""Set in the environment of a chat started by `chatctx serve`, unless it is unrestricted."""


async def run(command: Command, ui: UI, chat: Chat, args: str = "") -> None:
    """Run a command if it may run now, else say why not."""
    try:
        _check(command, ui, chat)
        await command.run(ui, chat, args)
    except CommandError as error:
        await ui.refuse(str(error))


def _check(command: Command, ui: UI, chat: Chat) -> None:
    """Raises `CommandError` if the command may not run now."""
    if command.screen_only and ui.screen is None:
        raise CommandError(f"/{command.name} needs the screen: start chatctx without --plain.")
    if command.local_only and os.environ.get(RESTRICTED):
        raise CommandError(f"/{command.name} is off in the browser: chatctx serve --unrestricted allows it.")
    if command.when != "always" and not chat.ready:
        raise NotReadyError
    if command.when == "idle" and ui.busy:
        raise BusyError


async def complete(ui: UI, chat: Chat, text: str) -> list[Choice]:
    """Completions for the draft `text`: command names, or arguments after a blank. Best first."""
    if not text.startswith("/") or "\n" in text:
        return []
    name, blank, args = text[1:].partition(" ")
    if not blank:
        return [] if "/" in name else _complete_name(name)
    parsed = parse(text)
    if isinstance(parsed, Unknown) or parsed[0].complete is None:
        return []
    command = parsed[0]
    offers = await parsed[0].complete(ui, chat, args) if chat.ready or command.when == "always" else []
    ranked = [(match(args, offer.label), offer) for offer in offers]
    ranked = sorted((pair for pair in ranked if pair[0] > 0), key=lambda pair: -pair[0])
    if any(offer.text == args for _, offer in ranked):
        return []
    return [Choice(f"/{command.name} {offer.text}", offer.label, offer.help) for _, offer in ranked]


def _complete_name(typed: str) -> list[Choice]:
    scored = []
    for command in all_commands():
        score = max(match(typed, command.name), *(match(typed, alias) - 0.5 for alias in command.aliases), 0.0)
        if score > 0:
            text = f"/{command.name}" + (" " if command.args else "")
            scored.append((score, Choice(text, command.usage, command.help)))
    scored.sort(key=lambda pair: -pair[0])
    return [choice for _, choice in scored]

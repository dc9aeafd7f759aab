"""`/help`: the commands, then keys by section."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from textual.content import Content

from tui.commands import UI, Chat, command
from tui.text.cells import pad

COLUMN, WIDE_COLUMN = 36, 40
"""Cells for a command's syntax, beside its description; from 80 cells on the wide one."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key in the help; `id` is its name in the `[keys]` table of the config file."""

    keys: str
    action: str
    id: str


@dataclass(frozen=True, slots=True)
class HelpView:
    """The commands available here: syntax and purpose. A screen adds its keys."""

    commands: Sequence[tuple[str, str]]
    title = "Help"

    async def lines(self, width: int) -> Sequence[Content]:
        """One line per command."""
        return help_lines(self.commands, {}, width)


def help_lines(commands: Sequence[tuple[str, str]], keys: Mapping[str, Sequence[Key]], width: int) -> list[Content]:
    """Commands, then keys by section, no line wider than `width` cells; if narrow, descriptions get their own line."""
    lines = [Content.styled("Commands", "bold $foreground")]
    for usage, purpose in commands:
        lines += _row(usage, purpose, "", width)
    for title, section in keys.items():
        lines += [Content(""), Content.styled(title, "bold $foreground")]
        for key in section:
            lines += _row(key.keys, key.action, key.id, width)
    return lines


def _row(left: str, right: str, name: str, width: int) -> list[Content]:
    if width < 60:
        syntax = textwrap.wrap(left, width, subsequent_indent="    ")
        about = textwrap.wrap(right, width, initial_indent="  ", subsequent_indent="  ")
        return [
            *(Content.styled(text, "$primary") for text in syntax),
            *(Content.styled(text, "$text-muted") for text in about),
        ]
    column = WIDE_COLUMN if width >= 80 else COLUMN
    syntax, about = textwrap.wrap(left, column, subsequent_indent="  "), textwrap.wrap(right, width - column - 1)
    lines = [
        Content.assemble((pad(start, column), "$primary"), " ", (text, "$foreground"))
        for start, text in zip_longest(syntax, about, fillvalue="")
    ]
    if name and lines[0].cell_length + len(name) + 2 <= width:
        gap = width - lines[0].cell_length - len(name)
        lines[0] = Content.assemble(lines[0], " " * gap, (name, "$text-muted"))
    return lines


@command("commands and keys", "program", when="always", aliases=("?",))
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Show every command that works here."""
    from tui.commands import all_commands

    commands = [command for command in all_commands() if ui.screen is not None or not command.screen_only]
    await ui.show(HelpView([(command.usage, command.help) for command in commands]))

"""The content of `/help`: commands, then keys by section."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from textual.content import Content

from tui.text.cells import clip, pad

COLUMN = 36
"""Cells for a command's syntax, beside its description."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key in the help; `id` is its name in the `[keys]` table of the config file."""

    keys: str
    what: str
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
    for usage, what in commands:
        lines += _row(usage, what, "", width)
    for title, section in keys.items():
        lines += [Content(""), Content.styled(title, "bold $foreground")]
        for key in section:
            lines += _row(key.keys, key.what, key.id, width)
    return lines


def _row(left: str, right: str, name: str, width: int) -> list[Content]:
    if width < 60:
        about = textwrap.wrap(right, width, initial_indent="  ", subsequent_indent="  ")
        return [Content.styled(clip(left, width), "$primary"), *(Content.styled(text, "$text-muted") for text in about)]
    first, *more = textwrap.wrap(right, width - COLUMN - 1) or [""]
    text = Content.assemble((pad(left, COLUMN), "$primary"), " ", (first, "$foreground"))
    if name and text.cell_length + len(name) + 2 <= width:
        text = Content.assemble(text, " " * (width - text.cell_length - len(name)), (name, "$text-muted"))
    return [text, *(Content.styled(" " * (COLUMN + 1) + line, "$foreground") for line in more)]

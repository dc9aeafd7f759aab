"""`/help`: the commands that work here, and the keys."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.dom import DOMNode
from textual.widgets import Static

from tui.commands.registry import Command
from tui.screens.base import Panel
from tui.screens.hints import CLOSE, clickable
from tui.text.cells import clip, pad


@dataclass(frozen=True, slots=True)
class Key:
    """A key as the help lists it; `id` is its name in the `[keys]` table of the config file."""

    keys: str
    what: str
    id: str


def keys_of(nodes: Iterable[type[DOMNode]], keymap: Mapping[str, str]) -> list[Key]:
    """The named keys of some classes, as the person has set them."""
    found = []
    for node in nodes:
        for binding in node.BINDINGS:
            if isinstance(binding, Binding) and binding.id:
                keys = keymap.get(binding.id, binding.key)
                found.append(Key(keys.replace(",", "  "), binding.description, binding.id))
    return found


def help_lines(commands: Sequence[Command], keys: Mapping[str, Sequence[Key]], width: int) -> list[Content]:
    """Commands, then keys by section, no line wider than `width` cells; narrow, what they do has its own line."""
    lines = [Content.styled("Commands", "bold $foreground")]
    for command in commands:
        lines += _row(command.usage, command.help, "", width)
    for title, section in keys.items():
        lines += [Content(""), Content.styled(title, "bold $foreground")]
        for key in section:
            lines += _row(key.keys, key.what, key.id, width)
    return lines


def _row(left: str, right: str, name: str, width: int) -> list[Content]:
    if width < 60:
        about = textwrap.wrap(right, width, initial_indent="  ", subsequent_indent="  ")
        return [Content.styled(clip(left, width), "$primary"), *(Content.styled(text, "$text-muted") for text in about)]
    column = 32
    room = width - column - 1
    text = Content.assemble((pad(left, column), "$primary"), " ", (clip(right, room), "$foreground"))
    if name and text.cell_length + len(name) + 2 <= width:
        text = Content.assemble(text, " " * (width - text.cell_length - len(name)), (name, "$text-muted"))
    return [text]


class HelpPanel(Panel[None]):
    """Text to scroll through."""

    DEFAULT_CSS = """
    HelpPanel VerticalScroll { height: auto; max-height: 1fr; scrollbar-size-vertical: 1; }
    HelpPanel Static { height: auto; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,f1,enter", "close", "close", id="help.close", show=False)]

    def __init__(self, commands: Sequence[Command], keys: Mapping[str, Sequence[Key]]) -> None:
        super().__init__()
        self.commands = commands
        self.keys = keys

    def compose(self) -> ComposeResult:
        """One text."""
        with Vertical(classes="panel") as panel:
            panel.border_title = "Help"
            panel.border_subtitle = clickable(self, CLOSE)
            with VerticalScroll():
                yield Static("", markup=False)

    def on_mount(self) -> None:
        """Scroll with the keys at once."""
        self.query_one(VerticalScroll).focus()
        self.redraw()

    def on_resize(self) -> None:
        """Draw for this width."""
        self.redraw()

    def redraw(self) -> None:
        """Both lists."""
        width = self.list_width
        self.query_one(Static).update(Content("\n").join(help_lines(self.commands, self.keys, width)))

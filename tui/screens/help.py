"""`/help`: the commands that work here, and the keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tui.commands import Command
from tui.screens.base import Panel
from tui.widgets.cells import clip

KEYS: tuple[tuple[str, str], ...] = (
    ("enter", "send"),
    ("ctrl+j  shift+enter", "new line"),
    ("up  down", "earlier and later prompts"),
    ("tab", "take a completion"),
    ("esc", "stop the answer; what arrived is kept"),
    ("pageup  pagedown", "scroll the conversation"),
    ("ctrl+end", "to the end of it"),
    ("f2", "what fills the window"),
    ("ctrl+o", "model"),
    ("ctrl+r", "conversations"),
    ("ctrl+n", "new conversation"),
    ("ctrl+p", "all commands, searchable"),
    ("f1", "this page"),
    ("ctrl+c", "copy a selection; else stop, clear, leave"),
    ("ctrl+q", "leave"),
)


def help_lines(commands: Sequence[Command], keys: Iterable[tuple[str, str]], width: int) -> list[Content]:
    """Two lists in lines of at most `width` cells."""
    narrow = width < 60
    rows = [(command.usage, command.help) for command in commands]
    lines = [Content.styled("Commands", "bold $foreground")]
    lines += _rows(rows, width, 20 if narrow else 32)
    lines += [Content(""), Content.styled("Keys", "bold $foreground")]
    lines += _rows(list(keys), width, 20 if narrow else 32)
    return lines


def _rows(rows: Sequence[tuple[str, str]], width: int, column: int) -> list[Content]:
    lines = []
    for left, right in rows:
        left = clip(left, column)
        lines.append(
            Content.assemble(
                (left.ljust(column), "$primary"), " ", (clip(right, max(8, width - column - 1)), "$text-muted")
            )
        )
    return lines


class HelpPanel(Panel[None]):
    """Text to scroll through."""

    DEFAULT_CSS = """
    HelpPanel VerticalScroll { height: auto; max-height: 1fr; scrollbar-size-vertical: 1; }
    HelpPanel Static { height: auto; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,f1,enter", "close", "close", id="help.close", show=False)]

    def __init__(self, commands: Sequence[Command]) -> None:
        super().__init__()
        self.commands = commands

    def compose(self) -> ComposeResult:
        """One text."""
        with Vertical(classes="panel") as panel:
            panel.border_title = "Help"
            panel.border_subtitle = "esc close"
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
        width = max(20, min(112, self.app.size.width) - (5 if self.app.size.width < 60 else 7))
        self.query_one(Static).update(Content("\n").join(help_lines(self.commands, KEYS, width)))

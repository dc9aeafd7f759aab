"""A question that is answered with a line of text."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from tui.screens.base import Panel
from tui.screens.hints import clickable
from tui.text.cells import plain


class AskText(Panel[str]):
    """Dismissed with what was written, or None for Esc. Nothing is accepted only where `optional`."""

    max_width = 84

    DEFAULT_CSS = """
    AskText Static { height: auto; color: $foreground; }
    AskText Input { border: none; height: 1; padding: 0; background: transparent; margin-top: 1; }
    AskText Input:focus { border: none; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "accept", show=False, priority=True)]

    def __init__(self, title: str, text: str, *, optional: bool = False) -> None:
        super().__init__()
        self.heading = title
        self.text = text
        self.optional = optional

    def compose(self) -> ComposeResult:
        """What is asked, and a line to write on."""
        with Vertical(classes="panel") as panel:
            panel.border_title = plain(self.heading)
            panel.border_subtitle = clickable(self, ("enter", "go on", "accept"), ("esc", "leave it", "close"))
            yield Static(plain(self.text), markup=False)
            yield Input(placeholder="may stay empty" if self.optional else "", compact=True)

    def on_mount(self) -> None:
        """Write at once."""
        self.query_one(Input).focus()

    def action_accept(self) -> None:
        """Take what stands there."""
        text = self.query_one(Input).value
        if text or self.optional:
            self.dismiss(text)

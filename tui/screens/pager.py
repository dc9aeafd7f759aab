"""Long text to read: all of what tools returned, however much that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static

from tui.render.clean import clean_line, clean_output
from tui.screens.base import Panel
from tui.widgets.cells import plain

LONGEST = 20_000
"""Characters of a line that can be scrolled to."""


class TextLines(ScrollView, can_focus=True):
    """Lines of text; only those in sight are made."""

    DEFAULT_CSS = """
    TextLines { height: 1fr; background: transparent; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    """

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__()
        self._lines = lines
        self.virtual_size = Size(min(LONGEST, max(map(len, lines), default=0)), len(lines))

    def render_line(self, y: int) -> Strip:
        """One line as far as it is in sight."""
        x, top = self.scroll_offset
        at = top + y
        style = self.rich_style
        text = self._lines[at][:LONGEST].expandtabs(4) if at < len(self._lines) else ""
        strip = Strip([Segment(text, Style(color=style.color, bgcolor=style.bgcolor))])
        return strip.crop_extend(x, x + self.size.width, style)


class Pager(Panel[None]):
    """Shows texts one under the other, each under its name."""

    DEFAULT_CSS = """
    Pager > .panel { max-width: 100%; height: 100%; margin-top: 0; }
    Pager .pager-keys { height: 1; color: $text-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,o", "close", "close", id="pager.close"),
        Binding("c", "copy", "copy all", id="pager.copy"),
        Binding("home,g", "to(0)", "first line", id="pager.home", show=False, priority=True),
        Binding("end,G", "to(1)", "last line", id="pager.end", show=False, priority=True),
        Binding("pageup", "page(-1)", show=False, priority=True),
        Binding("pagedown,space", "page(1)", show=False, priority=True),
    ]

    def __init__(self, texts: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._texts = texts

    def compose(self) -> ComposeResult:
        """The lines, and the keys under them."""
        lines: list[str] = []
        for name, text in self._texts:
            if len(self._texts) > 1:
                lines += [f"── {clean_line(name)} ──"]
            lines += clean_output(text).split("\n")
        names = ", ".join(dict.fromkeys(clean_line(name) for name, _ in self._texts))
        with Vertical(classes="panel") as panel:
            panel.border_title = plain(f"{names}: {len(lines):,} lines")
            yield TextLines(lines)
            keys = Content.styled("↑ ↓ page up/down scroll   c copy all   esc close", "$text-muted")
            yield Static(keys, classes="pager-keys", markup=False)

    def on_mount(self) -> None:
        """The lines have the keys."""
        self.query_one(TextLines).focus()

    def action_copy(self) -> None:
        """All of it to the clipboard, by the terminal."""
        self.app.copy_to_clipboard("\n\n".join(text for _, text in self._texts))
        self.notify("Sent to the clipboard.", markup=False)

    def action_to(self, end: int) -> None:
        """The first or the last line."""
        lines = self.query_one(TextLines)
        if end:
            lines.scroll_end(animate=False)
        else:
            lines.scroll_home(animate=False)

    def action_page(self, pages: int) -> None:
        """A page on or back."""
        lines = self.query_one(TextLines)
        lines.scroll_relative(y=pages * max(1, lines.size.height - 2), animate=False)

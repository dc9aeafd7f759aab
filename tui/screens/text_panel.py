"""A text to read: a memory file, an attachment, a tool's schema. Read-only, as long as it likes to be."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from tui.render.clean import clean_text
from tui.render.wrap import plain_rows
from tui.screens.base import Panel
from tui.widgets.cells import clip, plain
from tui.widgets.line_list import LineList

SHOWN = 1_000_000
"""Characters that are laid out; the file itself has the rest."""


def wrapped(text: str, width: int) -> list[str]:
    """`text` (untrusted) as lines of at most `width` cells. Half a second for a megabyte: not on the event loop."""
    lines = [row.text for row in plain_rows(clean_text(text[:SHOWN]), Style.null(), width)]
    if len(text) > SHOWN:
        lines.append(f"… {len(text) - SHOWN:,} more characters are not shown here")
    return lines


class TextPanel(Panel[None]):
    """Wraps the text once for each width, and makes only the lines that can be seen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,enter", "close", "back", id="text.close", show=False)]

    def __init__(self, title: str, text: str, note: str = "") -> None:
        super().__init__()
        self.title_text, self.text, self.note = title, text, note
        self.lines: list[str] = []
        self._width = 0

    def compose(self) -> ComposeResult:
        """One list of lines."""
        with Vertical(classes="panel") as panel:
            panel.border_title = plain(self.title_text)
            panel.border_subtitle = " · ".join(filter(None, (plain(self.note), "esc back")))
            yield LineList()

    def on_mount(self) -> None:
        """Scroll with the keys at once."""
        self.query_one(LineList).focus()

    def on_resize(self, _event: events.Resize) -> None:
        """Wrap for this width."""
        width = max(20, min(112, self.app.size.width) - (5 if self.app.size.width < 60 else 7))
        if width != self._width:
            self._width = width
            self.run_worker(self._wrap(width), exclusive=True)

    async def _wrap(self, width: int) -> None:
        self.lines = lines = await asyncio.to_thread(wrapped, self.text, width)
        rows = self.query_one(LineList)
        rows.show(len(lines), lambda index, cells: Content(clip(lines[index], cells)), rows.cursor)

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """A click puts the cursor on a line; there is nothing behind it."""
        event.stop()

"""A list of one-line rows of which only the visible ones are created: ten thousand cost as much as ten."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

Draw = Callable[[int, int], Content]
"""Index of a row and the width in cells -> what the row shows."""


class LineList(ScrollView, can_focus=True):
    """Rows by index; the cursor is a row. Enter or a click on a row posts `Chosen`."""

    DEFAULT_CSS = """
    LineList > .line-list--cursor {
        color: $block-cursor-foreground; background: $block-cursor-background; text-style: $block-cursor-text-style;
    }
    LineList { height: auto; max-height: 100%; background: transparent; scrollbar-size-vertical: 1; }
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"line-list--cursor"}

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "go(0)", show=False),
        Binding("end", "go(-1)", show=False),
        Binding("enter", "choose", show=False),
    ]

    class Chosen(Message):
        """Row `index` was chosen."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.cursor = 0
        self._draw: Draw = lambda _index, _width: Content("")

    def show(self, count: int, draw: Draw, cursor: int) -> None:
        """Show `count` rows, with the cursor on one of them."""
        self.count, self._draw = count, draw
        self.virtual_size = Size(0, count)
        self.refresh(layout=True)
        self.call_after_refresh(self.go, cursor)
        self.cursor = min(max(cursor, 0), max(0, count - 1))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The number of rows."""
        return max(1, self.count)

    def go(self, index: int) -> None:
        """Put the cursor on a row (-1 is the last) and scroll it into view."""
        self.cursor = min(max(index if index >= 0 else self.count + index, 0), max(0, self.count - 1))
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Line `y` of the view."""
        index = y + round(self.scroll_y)
        width = self.scrollable_content_region.width
        if index >= self.count or width <= 0:
            return Strip.blank(width, self.rich_style)
        style = self.get_visual_style("line-list--cursor") if index == self.cursor else self.visual_style
        strips = Visual.to_strips(self, self._draw(index, width), width, 1, style, pad=True)
        return strips[0].extend_cell_length(width, style.rich_style)

    def on_click(self, event: events.Click) -> None:
        """Choose the row under the pointer."""
        index = event.y + round(self.scroll_y)
        if index < self.count:
            self.go(index)
            self.action_choose()

    def action_move(self, step: int) -> None:
        """Move the cursor up or down."""
        self.go(max(0, self.cursor + step))

    def action_page(self, pages: int) -> None:
        """Move a screenful up or down."""
        self.go(max(0, self.cursor + pages * max(1, self.size.height - 1)))

    def action_go(self, index: int) -> None:
        """Go to a row."""
        self.go(index)

    def action_choose(self) -> None:
        """Choose the row under the cursor."""
        if self.count:
            self.post_message(self.Chosen(self.cursor))

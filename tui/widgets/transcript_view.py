"""The scrolling view under the transcript: draws only what can be seen and keeps the reader's place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.content import Content
from textual.events import Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.theme import Theme
from textual.visual import Visual

from tui.render.palette import Palette, make_palette
from tui.widgets.transcript_document import Document
from tui.widgets.transcript_paint import GUTTER, paint_mark, paint_row
from tui.widgets.transcript_search import Search
from tui.widgets.transcript_select import row_span

MAX_WIDTH = 120
"""Cells a line of text may take: longer ones are hard to read."""

Place = tuple[int, int]
"""An entry and a row in it."""


class TranscriptView(ScrollView, can_focus=True):
    """One view over a `Document`. Follows the end unless the reader has scrolled up."""

    FOCUS_ON_CLICK = False  # a click unfolds or selects; the next letters still belong to the prompt

    DEFAULT_CSS = """
    TranscriptView {
        height: 1fr;
        background: $background;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
    }
    """

    def __init__(self, name: str | None = None, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(name=name, id=id, classes=classes)
        self._document: Document | None = None
        self._follow = True
        self._placing = False
        self._unseen = False
        self._cursor: int | None = None
        self._search: Search | None = None
        self._static: Content | None = None
        self._static_strips: list[Strip] = []

    @property
    def document(self) -> Document:
        """The entries; made when first asked for, because colours need the app."""
        if self._document is None:
            self._document = Document(self._make_palette())
        return self._document

    @property
    def view_size(self) -> Size:
        """Cells of the view without its scrollbar."""
        return self.scrollable_content_region.size

    @property
    def following(self) -> bool:
        """Whether the view keeps to the end."""
        return self._follow

    def _make_palette(self) -> Palette:
        app = self.app
        return make_palette(app.theme_variables, ansi=app.native_ansi_color, no_color=app.no_color)

    def on_mount(self) -> None:
        """Follow the app's theme."""
        self.app.theme_changed_signal.subscribe(self, self._on_theme)

    def _on_theme(self, theme: Theme) -> None:
        del theme
        self.document.restyle(self._make_palette())
        self._static_strips = []
        self._settle()
        self.refresh()

    def on_resize(self, event: Resize) -> None:
        """Lay out again for the new size."""
        del event
        self._static_strips = []
        self._settle()
        self.refresh()

    def show_static(self, content: Content | None) -> None:
        """What to show while there are no messages."""
        self._static, self._static_strips = content, []
        self.refresh()

    # --- place and scrolling

    def _catch_up(self) -> None:
        """Take in what arrived while nothing was drawn."""

    def _place_of_reader(self) -> Place | None:
        """Entry and row at the top of the view; None while the end is followed."""
        heights = self.document.heights
        if self._follow or not len(heights):
            return None
        line = round(self.scroll_y)
        index = heights.find(line)
        return index, line - heights.top(index)

    def _settle(self, place: Place | None = None) -> None:
        """Draw what the view shows, and set heights and scroll position accordingly. `place` goes to the top."""
        document = self.document
        size = self.view_size
        width = min(MAX_WIDTH, size.width - GUTTER - 1)
        if width < 1 or size.height < 1:
            return
        if document.width != width:
            place = self._relayout(width, place)
        if self._follow:
            first = document.realise_end(size.height)
            top = max(0, document.heights.total - size.height)
        else:
            top = round(self.scroll_y)
            if place:
                document.realise(place[0])
                top = document.heights.top(place[0]) + min(place[1], document.heights[place[0]])
            top, first = document.realise_window(top, size.height)
        document.evict(first, document.heights.find(top + size.height))
        self._move(document.heights.total, top, size.width)

    def _relayout(self, width: int, place: Place | None) -> Place | None:
        """Lay out at another width; the place is kept by its share of the entry's height."""
        document = self.document
        place = place or self._place_of_reader()
        share = place[1] / max(1, document.heights[place[0]]) if place else 0.0
        document.resize(width)
        if place is None:
            return None
        document.realise(place[0])
        return place[0], int(share * document.heights[place[0]])

    def _move(self, total: int, top: int, width: int) -> None:
        self._placing = True
        try:
            if self.virtual_size != (width, total):
                self.virtual_size = Size(width, total)
            self.scroll_target_y = top
            self.scroll_y = top
        finally:
            self._placing = False

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The reader scrolled: draw what came into view, without moving what is in view already."""
        super().watch_scroll_y(old_value, new_value)
        if self._placing:
            return
        document, old, new = self.document, round(old_value), round(new_value)
        self._follow = new >= self.max_scroll_y
        if self._follow:
            self._unseen = False
            self._catch_up()
        elif new < old and document.width:
            size = self.view_size
            new += document.realise_above(old, min(old - new, 3 * size.height))
            self._move(document.heights.total, max(0, new), size.width)
        self._settle()

    def scroll_to(self, *args: Any, **kwargs: Any) -> None:
        """Scroll at once: an animation would fight with heights that become known on the way."""
        super().scroll_to(*args, **{**kwargs, "animate": False})

    def scroll_end(self, *args: Any, **kwargs: Any) -> None:
        """Go to the end and follow it, at once."""
        del args, kwargs
        self._follow, self._unseen = True, False
        self._catch_up()
        self._settle()
        self.refresh()

    def jump_to(self, message_id: str) -> bool:
        """Bring a message to the top of the view. False where there is no such message."""
        index = self.document.index.get(message_id)
        if index is None:
            return False
        self._show((index, 0))
        return True

    def _show(self, place: Place) -> None:
        """Bring a place to the top of the view, as far as what is below it allows."""
        self._follow = False
        self._settle(place)
        self._follow = round(self.scroll_y) >= self.max_scroll_y
        self.refresh()

    # --- drawing

    def render_line(self, y: int) -> Strip:
        """Line `y` of the view."""
        width, height = self.view_size
        document = self.document
        if not document.entries and self._static is not None:
            return self._render_static(self._static, y, width)
        line = round(self.scroll_y) + y
        heights = document.heights
        index = heights.find(line)
        row = line - heights.top(index) if index >= 0 else 0
        rows = document.entries[index].rows if index >= 0 else None
        if rows is None or row >= len(rows):
            strip = Strip.blank(width, document.palette.base)
        else:
            selection = self.text_selection
            strip = paint_row(
                rows[row],
                (index, row),
                width,
                document.palette,
                cursor=index == self._cursor and (row > 0 or len(rows) == 1),
                spans=self._hits(index, row) if self._search else (),
                selected=row_span(selection, index, row, rows[row].end) if selection else None,
            )
        if self._unseen and not self._follow and y == height - 1:
            return paint_mark(strip, "↓ more below", width, document.palette)
        return strip

    def _render_static(self, content: Content, y: int, width: int) -> Strip:
        if not self._static_strips:
            edge = Strip.blank(min(width, GUTTER), self.document.palette.base)
            room = max(1, width - 2 * GUTTER)
            strips = Visual.to_strips(self, content, room, None, self.visual_style, pad=True)
            self._static_strips = [Strip.join([edge, strip, edge]).adjust_cell_length(width) for strip in strips]
        if y < len(self._static_strips):
            return self._static_strips[y]
        return Strip.blank(width, self.document.palette.base)

    def _hits(self, index: int, row: int) -> Sequence[tuple[int, int, bool]]:
        assert self._search is not None
        return self._search.row_hits(index, self.document.entries[index].rows or [], row)

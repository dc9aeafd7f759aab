"""The scrolling view under the transcript: draws only what can be seen and keeps the reader's place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

from textual.content import Content
from textual.events import Resize
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.strip import Strip
from textual.theme import Theme
from textual.visual import Visual
from textual.widget import Widget

from tui.render.palette import Palette, make_palette
from tui.render.rows import Row, let_go
from tui.widgets.transcript.document import Document
from tui.widgets.transcript.drawer import Drawer, Job
from tui.widgets.transcript.paint import GUTTER, paint_mark, paint_row
from tui.widgets.transcript.search import Search
from tui.widgets.transcript.select import row_span

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
        self._thumb = (0, 0, 0)  # what the scroll bar shows: cells, eighths of them above the thumb and to its end
        self._cursor: int | None = None
        self._search: Search | None = None
        self._static: Content | None = None
        self._static_strips: list[Strip] = []

    @property
    def document(self) -> Document:
        """The entries; made when first asked for, because colours need the app."""
        if self._document is None:
            drawer = Drawer(lambda index: self.document.job(index), self._drawn, self.run_worker)
            self._document = Document(self._make_palette(), drawer.want)
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

    def _drawn(self, job: Job, rows: list[Row]) -> None:
        """A large message was drawn: it takes the place of what stood for it, the reader's place stays."""
        place, height = self._place_of_reader(), self.document.heights[job.index]
        before = self.document.entries[job.index].rows if job.index < len(self.document.entries) else None
        change = self.document.take(job, rows)
        if change is None:
            return
        if before:
            self.run_worker(lambda: let_go(before), thread=True, exit_on_error=False)  # a partial would be written out
        if place is not None and place[0] == job.index and place[1] > height // 2:
            place = job.index, max(0, place[1] + change)  # nearer to its end, which is where the reader came from
        self._settle(place)
        self.refresh()

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
                self.set_reactive(Widget.virtual_size, Size(width, total))  # else the whole screen is laid out again
            self.scroll_target_y = top
            self.scroll_y = top
            self._move_thumb(total, top)
        finally:
            self._placing = False

    def _move_thumb(self, total: int, top: float) -> None:
        """Tell the scroll bar; draw it only where that shows: it costs as much as the text, at every line that arrives.

        Its thumb moves by eighths of a cell.
        """
        bar, height = self.vertical_scrollbar, self.size.height
        bar.set_reactive(ScrollBar.window_virtual_size, total)
        bar.set_reactive(ScrollBar.position, top)
        cells = max(1.0, height * height / max(1, total))
        start = int(8 * (height - cells) * top / max(1, total - height))
        thumb = (height, start, start + ceil(8 * cells))  # as ScrollBarRender.render_bar draws it
        if thumb != self._thumb:
            self._thumb = thumb
            bar.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The reader scrolled: draw what came into view, without moving what is in view already."""
        if round(old_value) != round(new_value):
            self.refresh(self.size.region)
        if self._placing:
            return
        self._move_thumb(self.virtual_size.height, new_value)
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

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines of the view, as they are kept with their rows.

        The view has no border, padding, tint or opacity, so Textual's styles would only copy each line, and with the
        copy lose what Textual keeps of a line that it has cut and written before: half the cost of a frame.
        """
        background = self.background_colors[1]
        filters = self.get_line_filters()
        line_at = self._lines()
        left, right = crop.column_span
        strips: list[Strip] = []
        for y in crop.line_range:
            strip = line_at(y)
            for line_filter in filters:
                strip = strip.apply_filter(line_filter, background)
            strips.append(strip if (left, right) == (0, strip.cell_length) else strip.crop_extend(left, right, None))
        return strips

    def render_line(self, y: int) -> Strip:
        """Line `y` of the view."""
        return self._lines()(y)

    def _lines(self) -> Callable[[int], Strip]:
        """What draws a line of the view as it is now."""
        width, height = self.view_size
        document, static = self.document, self._static
        if not document.entries and static is not None:
            return lambda y: self._render_static(static, y, width)
        top, heights, palette = round(self.scroll_y), document.heights, document.palette
        selection = self.text_selection
        marked = height - 1 if self._unseen and not self._follow else -1

        def line_at(y: int) -> Strip:
            line = top + y
            index = heights.find(line)
            row = line - heights.top(index) if index >= 0 else 0
            rows = document.entries[index].rows if index >= 0 else None
            if rows is None or row >= len(rows):
                strip = Strip.blank(width, palette.base)
            else:
                strip = paint_row(
                    rows[row],
                    (index, row),
                    width,
                    palette,
                    cursor=index == self._cursor and (row > 0 or len(rows) == 1),
                    spans=self._hits(index, row) if self._search else (),
                    selected=row_span(selection, index, row, rows[row].end) if selection else None,
                )
            return paint_mark(strip, "↓ more below", width, palette) if y == marked else strip

        return line_at

    def _render_static(self, content: Content, y: int, width: int) -> Strip:
        if not self._static_strips:
            edge = Strip.blank(min(width, GUTTER), self.document.palette.base)
            room = max(1, width - 2 * GUTTER)
            strips = Visual.to_strips(self, content, room, None, self.visual_style, pad=True)
            if len(strips) > self.view_size.height:  # what it says goes before the air around it
                strips = [strip for strip in strips if strip.text.strip()]
            self._static_strips = [Strip.join([edge, strip, edge]).adjust_cell_length(width) for strip in strips]
        if y < len(self._static_strips):
            return self._static_strips[y]
        return Strip.blank(width, self.document.palette.base)

    def _hits(self, index: int, row: int) -> Sequence[tuple[int, int, bool]]:
        assert self._search is not None
        return self._search.row_hits(index, self.document.entries[index].rows or [], row)

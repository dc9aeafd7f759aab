"""The view of a conversation: entries drawn by lines, the streaming reply, the reader's position."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property, partial
from math import ceil
from time import monotonic, time
from typing import Any, TypeAlias

from rich.segment import Segment
from textual.content import Content
from textual.events import Resize
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.selection import Selection
from textual.strip import Strip
from textual.theme import Theme
from textual.timer import Timer
from textual.visual import Visual
from textual.widget import Widget

from tui.messages import Message
from tui.render.message import Count, DeltaKind, LiveReply, warm_up
from tui.render.palette import Palette, make_palette
from tui.render.rows import Row, clear_gradually, restyled
from tui.widgets.transcript.document import Document
from tui.widgets.transcript.entries import Drawing, Level, Place, gc_paused
from tui.widgets.transcript.search import Search
from tui.widgets.transcript.selection import line_number, selected_span, selected_text

MAX_WIDTH = 120
"""Maximal cells of a line: longer ones are hard to read."""

MessagePlace: TypeAlias = tuple[str, int]
"""A message's id and a row of it."""

GUTTER = 2
"""Cells left of the text; the block cursor is in the first."""

MORE_MARK = "↓ more below"
"""Shown at the lower right if something arrived while the reader is scrolled up."""

MIN_GAP, MAX_GAP = 0.05, 0.5
"""Seconds between two drawings of a growing reply."""
GAP_FACTOR = 4.0
"""The pause is this many times the duration of the last drawing, which limits drawing to a fifth of the time."""
WARM_UP_PAUSE = 0.05
"""Seconds."""

MANY = 500
"""Messages; longer conversations are excluded from garbage collection."""


class TranscriptView(ScrollView):
    """The view of a conversation, with its own entries, rows and heights instead of a widget for each message.

    Follows the end unless the reader has scrolled up; then a running reply is stored but not drawn.
    """

    DEFAULT_CSS = """
    TranscriptView {
        height: 1fr;
        background: $background;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._static = Content("")  # shown while there is no entry
        self._follow = True
        self._placing = False  # whether the program is scrolling, not the reader
        self._unseen = False  # whether something arrived below the visible part
        self._thumb = (0, 0, 0)  # the scroll bar as it was last drawn
        self._cursor: int | None = None  # entry under the block cursor
        self._search: Search | None = None
        self._live_index = -1  # entry of the streaming reply
        self._flush_timer: Timer | None = None
        self._flush_seconds = 0.0  # that the last drawing of the reply took
        self._warm = False
        self._large: dict[int, None] = {}  # entries to be drawn in a thread, the latest request last
        self._drawing = False  # whether that thread runs

    @cached_property
    def document(self) -> Document:
        """The entries; created on first use, because colours need the app."""
        return Document(self._palette(), self._draw_later)

    @property
    def view_size(self) -> Size:
        """Cells of the view without its scroll bar."""
        return self.scrollable_content_region.size

    def _palette(self) -> Palette:
        return make_palette(self.app.theme_variables, ansi=self.app.native_ansi_color, no_color=self.app.no_color)

    def on_mount(self) -> None:
        """Follow the app's theme."""
        self.app.theme_changed_signal.subscribe(self, self._on_theme)

    def _on_theme(self, _theme: Theme) -> None:
        self.document.palette = self._palette()
        self._redraw()

    def on_resize(self, _event: Resize) -> None:
        """Lay out again for the new size."""
        self._redraw()

    # --- content

    def show_static(self, content: Content) -> None:
        """Set the text shown while there are no messages."""
        self._static = content
        self.refresh()

    def set_messages(self, messages: Sequence[Message], *, not_sent: Mapping[str, str] | None = None) -> None:
        """Show these messages; the reader's position is kept if it is still there."""
        document = self.document
        place = self._place_of_reader()
        message = document.entries[place[0]].message if place else None
        with gc_paused() if len(messages) >= MANY else nullcontext():
            document.set_messages(messages, not_sent or {})
        self._stop_live()
        self._cursor, self._search, self._unseen = None, None, False
        index = document.index.get(message.id) if message else None
        self._follow = index is None
        self._redraw((index, place[1]) if index is not None and place else None)

    def append(self, message: Message) -> None:
        """Add a message at the end."""
        self.document.append(message)
        self._grown()

    def prepare(self) -> None:
        """Import what draws a reply: one will follow. After a pause, in which the request goes out."""
        if not self._warm:
            self._warm = True
            self.set_timer(WARM_UP_PAUSE, partial(self.run_worker, warm_up, thread=True, exit_on_error=False))

    def add_notice(self, level: Level, text: str) -> None:
        """Add a line that is not a message. Removed by the next `set_messages`."""
        self.document.add_notice(level, text)
        self._grown()

    def set_not_sent(self, mapping: Mapping[str, str]) -> None:
        """Set message ids that are not sent any more, and why: `trimmed`, `compacted` or `excluded`."""
        with self._keep_place():
            self.document.set_not_sent(mapping)

    def set_counts(self, counts: Mapping[str, Count]) -> None:
        """Set the tokens of messages, each with its source (`measured`, `derived`, `counted`, `estimated`)."""
        with self._keep_place():
            self.document.set_counts(counts)

    def show_times(self, on: bool) -> None:
        """Show or hide when each message was written."""
        with self._keep_place():
            self.document.show_times(on, time())

    def _grown(self) -> None:
        """Something was added at the end."""
        self._unseen = not self._follow
        self._redraw()

    # --- the streaming reply

    @property
    def _live(self) -> LiveReply | None:
        """The streaming reply, or None. It changes when a thread has drawn it for the first time."""
        return self.document.entries[self._live_index].live if self._live_index >= 0 else None

    def start_reply(self, message_id: str, provider: str, model: str) -> None:
        """A reply begins."""
        self.document.start_reply(message_id, provider, model)
        self._live_index = self.document.index[message_id]
        self._grown()

    def delta(self, message_id: str, kind: DeltaKind, text: str, name: str = "") -> None:
        """Add a piece of the reply. The cost is independent of the conversation's length; drawing is throttled."""
        if self._live is None or self.document.index.get(message_id) != self._live_index:
            return
        self._live.feed(kind, text, name, monotonic())
        if self._follow:
            self._flush_later()
        elif not self._unseen:
            self._unseen = True
            self.refresh()

    def finish_reply(self, message: Message) -> None:
        """End the reply; it is drawn once more from its source."""
        self._stop_live()
        self.document.finish_reply(message)
        self._grown()

    def drop_reply(self, message_id: str) -> None:
        """Remove the reply without a trace: it came to nothing and will be requested again."""
        self._stop_live()
        with self._keep_place():
            self.document.drop_last(message_id)

    def _stop_live(self) -> None:
        self._live_index = -1
        if self._flush_timer is not None:
            self._flush_timer.stop()
            self._flush_timer = None

    def _flush_later(self) -> None:
        """Draw the reply after a pause that leaves most of the time to everything else."""
        if self._flush_timer is None:
            gap = min(MAX_GAP, max(MIN_GAP, GAP_FACTOR * self._flush_seconds))
            self._flush_timer = self.set_timer(gap, self._flush, name="transcript-flush")

    def _flush(self) -> None:
        """Draw what arrived, unless the reader is elsewhere."""
        self._flush_timer = None
        if self._live is None or not self._follow:
            return
        begin = monotonic()
        self._lay_out()
        self._flush_seconds = monotonic() - begin

    # --- position and scrolling

    def _place_of_reader(self) -> Place | None:
        """Entry and row at the top of the view; None while the end is followed."""
        heights = self.document.heights
        return None if self._follow or not len(heights) else heights.place(round(self.scroll_y))

    @property
    def reader_place(self) -> MessagePlace | None:
        """The message at the top of the view (before a notice), and the row; None while the end is followed."""
        if (place := self._place_of_reader()) is None:
            return None
        index, row = place
        while index > 0 and self.document.entries[index].message is None:  # notices don't last
            index, row = index - 1, 0
        message = self.document.entries[index].message
        return (message.id, row) if message is not None else None

    def return_to(self, place: MessagePlace | None) -> None:
        """Return to a `reader_place`; None is the end."""
        if place is None or place[0] not in self.document.index:
            self.scroll_end()
        else:
            self._show((self.document.index[place[0]], place[1]))

    @contextmanager
    def _keep_place(self) -> Iterator[None]:
        """Keep the top line in place while entries above it change."""
        place = self._place_of_reader()
        yield
        self._redraw(place)

    def scroll_to(self, *args: Any, **kwargs: Any) -> None:
        """Scroll at once: an animation would conflict with heights that become known on the way."""
        super().scroll_to(*args, **{**kwargs, "animate": False})

    def scroll_end(self, *_args: Any, **_kwargs: Any) -> None:
        """Go to the end and follow it, at once."""
        self._follow, self._unseen = True, False
        self._redraw()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The reader scrolled: draw what came into view, without moving what is visible."""
        if round(old_value) != round(new_value):
            self.refresh(self.size.region)
        if self._placing:
            return
        self._move_thumb(self.virtual_size.height, new_value)
        document, old, new = self.document, round(old_value), round(new_value)
        self._follow = new >= self.max_scroll_y
        if self._follow:
            self._unseen = False
        elif new < old and document.width:
            size = self.view_size
            new += document.draw_above(old, min(old - new, 3 * size.height))
            self._move(document.heights.total, max(0, new), size.width)
        self._lay_out()

    def _show(self, place: Place) -> None:
        """Bring a position to the top of the view, if enough follows it."""
        self._follow = False
        self._redraw(place)
        self._follow = round(self.scroll_y) >= self.max_scroll_y

    def _redraw(self, place: Place | None = None) -> None:
        self._lay_out(place)
        self.refresh()

    def _lay_out(self, place: Place | None = None) -> None:
        """Draw what is visible, and set heights and scroll position accordingly. `place` goes to the top."""
        document = self.document
        size = self.view_size
        width = min(MAX_WIDTH, size.width - GUTTER - 1)
        if width < 1 or size.height < 1:
            return
        if document.width != width:
            place = document.resize(width, place or self._place_of_reader())
        if self._follow:
            if self._live is not None:
                index = self._live_index
                changed = document.draw_more(index, monotonic())
                self.refresh_lines(document.heights.top(index) + changed, max(1, document.heights[index] - changed))
            first = document.draw_end(size.height)
            top = max(0, document.heights.total - size.height)
        else:
            top = round(self.scroll_y)
            if place:
                document.draw(place[0])
                top = document.heights.top(place[0]) + min(place[1], document.heights[place[0]])
            top, first = document.draw_window(top, size.height)
        document.evict(first, document.heights.find(top + size.height))
        self._move(document.heights.total, top, size.width)

    def _move(self, total: int, top: int, width: int) -> None:
        self._placing = True
        try:
            if self.virtual_size != (width, total):  # assigned to, it would lay out the whole screen again
                self.set_reactive(Widget.virtual_size, Size(width, total))
            self.scroll_target_y = top
            self.scroll_y = top
            self._move_thumb(total, top)
        finally:
            self._placing = False

    def _move_thumb(self, total: int, top: float) -> None:
        """Update the scroll bar, but draw it only if its thumb moves: that costs as much as the text."""
        bar, height = self.vertical_scrollbar, self.size.height
        bar.set_reactive(ScrollBar.window_virtual_size, total)
        bar.set_reactive(ScrollBar.position, top)
        # In eighths of a cell, as drawn by Textual's `ScrollBarRender.render_bar`.
        cells = max(1.0, height * height / max(1, total))
        start = int(8 * (height - cells) * top / max(1, total - height))
        thumb = height, start, start + ceil(8 * cells)
        if thumb != self._thumb:
            self._thumb = thumb
            bar.refresh()

    def _draw_later(self, index: int) -> None:
        """Draw a large message in a thread. The latest request comes first, since it is on screen."""
        self._large.pop(index, None)
        self._large[index] = None
        if not self._drawing:
            self._drawing = True
            self.run_worker(self._draw_large())

    async def _draw_large(self) -> None:
        try:
            while self._large:
                index, _ = self._large.popitem()
                job = self.document.entries[index].job if index < len(self.document.entries) else None
                if job is not None:
                    self._large_drawn(index, job, await asyncio.to_thread(job.large_rows))
        finally:
            self._drawing = False

    def _large_drawn(self, index: int, job: Drawing, rows: list[Row]) -> None:
        """A large message was drawn: it replaces its placeholder; the reader's position is kept."""
        document, place = self.document, self._place_of_reader()
        before = document.entries[index].rows if index < len(document.entries) else None
        change = document.accept(index, job, rows)
        if change is not None:
            if before:  # a partial would be printed in full in the log
                self.run_worker(lambda: clear_gradually(before), thread=True, exit_on_error=False)
            if place is not None and place[0] == index and place[1] > (len(rows) - change) // 2:
                place = index, max(0, place[1] + change)  # nearer to its end, since the reader came from below
            self._redraw(place)
        if index == self._live_index:
            self._flush_later()  # draw what arrived meanwhile

    # --- drawing

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines of the view, as cached with their rows.

        Bypasses Textual's `StylesCache`: the view has no border, padding, tint or opacity, and the cache would copy
        each strip, which loses what the strip itself has cached (its crops, its output): half the cost of a frame.
        """
        static = self._static_lines() if not self.document.entries else []
        background = self.background_colors[1]
        filters = self.get_line_filters()
        left, right = crop.column_span
        strips: list[Strip] = []
        for y in crop.line_range:
            strip = static[y] if static else self._line(y)
            for line_filter in filters:
                strip = strip.apply_filter(line_filter, background)
            strips.append(strip if (left, right) == (0, strip.cell_length) else strip.crop_extend(left, right, None))
        return strips

    def _line(self, y: int) -> Strip:
        size, line = self.view_size, round(self.scroll_y) + y
        strip = paint_line(self.document, line, size.width, self._cursor, self._search, self.text_selection)
        if y != size.height - 1 or self._follow or not self._unseen:
            return strip
        mark = Segment(f" {MORE_MARK} ", self.document.palette.selection)
        left = size.width - len(mark.text)
        return strip if left < 0 else Strip([*strip.crop(0, left), mark], size.width)

    def render_line(self, y: int) -> Strip:
        """Line `y` of the view, as selecting by the mouse needs it."""
        if not self.document.entries:
            return self._static_lines()[y]
        entry, row = self.document.heights.place(round(self.scroll_y) + y)
        return self._line(y).apply_offsets(-GUTTER, line_number(entry, row))

    def _static_lines(self) -> list[Strip]:
        """The lines of the view while there are no messages."""
        size, base = self.view_size, self.document.palette.base
        edge = Strip.blank(min(size.width, GUTTER), base)
        width = max(1, size.width - 2 * GUTTER)
        strips = Visual.to_strips(self, self._static, width, None, self.visual_style, pad=True)
        if len(strips) > size.height:  # the text matters more than its blank lines
            strips = [strip for strip in strips if strip.text.strip()]
        lines = [Strip.join([edge, strip, edge]).adjust_cell_length(size.width) for strip in strips]
        return lines + [Strip.blank(size.width, base)] * (size.height - len(lines))

    # --- selection

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, as written rather than as wrapped."""
        return selected_text(self.document, selection), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Redraw with the new selection."""
        del selection
        self.refresh()


def paint_line(
    document: Document, line: int, width: int, cursor: int | None, search: Search | None, selection: Selection | None
) -> Strip:
    """A line of the document, `width` cells wide. Undecorated ones are cached with their rows.

    Without the offsets that Textual's selection by mouse reads (`render_line` adds them): they are a part of the style,
    so each line would have styles of its own, and Textual caches 16,000 rendered styles.
    """
    palette = document.palette
    entry, number = document.heights.place(line) if document.entries else (-1, 0)
    rows = document.entries[entry].rows if entry >= 0 else None
    if rows is None or number >= len(rows):
        return Strip.blank(width, palette.base)
    row = rows[number]
    at_cursor = entry == cursor and (number > 0 or len(rows) == 1)
    growing = document.entries[entry].live is not None  # its rows change at each delta
    hits = search.row_hits(entry, rows, number) if search is not None and not growing else ()
    selected = selected_span(selection, line_number(entry, number), row) if selection is not None else None
    plain = not at_cursor and not hits and selected is None
    if plain and row.strip is not None and row.strip.cell_length == width:
        return row.strip
    segments = list(row.segments)
    if hits:
        segments = restyled(segments, [hit[:2] for hit in hits if not hit[2]], palette.hit)
        segments = restyled(segments, [hit[:2] for hit in hits if hit[2]], palette.hit_current)
    if selected is not None:
        segments = restyled(segments, [selected], palette.selection)
    gutter = Segment("▌ ", palette.cursor) if at_cursor else Segment("  ", palette.base)
    strip = Strip([gutter, *segments]).adjust_cell_length(width, palette.base)
    if plain:
        document.cache_strip(row, strip)
    return strip

"""Lines of the view: from a row to a finished line; what is under the mouse; what a selection covers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from textual.content import Content
from textual.geometry import Offset, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.visual import Visual
from textual.widget import Widget

from tui.render.palette import Palette
from tui.render.rows import Row, restyled, rows_text
from tui.text.clean import clean_text
from tui.widgets.transcript.document import Document
from tui.widgets.transcript.search import Search

ROWS_PER_ENTRY = 1 << 20
"""A line's number in a selection: entry times this, plus the row in the entry."""
_WORD = re.compile(r"[\w./:@~+#%-]+")


def line_number(entry: int, row: int) -> int:
    """The number of a row of an entry in a selection's offsets."""
    return entry * ROWS_PER_ENTRY + row


def row_span(selection: Selection, entry: int, row: int, length: int) -> tuple[int, int] | None:
    """Characters of a row that `selection` covers; None for none."""
    span = selection.get_span(line_number(entry, row))
    if span is None:
        return None
    start, end = max(0, span[0]), length if span[1] < 0 else min(span[1], length)
    return (start, end) if start < end else None


def selected_text(document: Document, selection: Selection) -> str:
    """The text of a selection: wrapped lines joined, without borders, marks, labels or padding.

    A message that lies entirely inside and is not drawn is copied from its source, so that "all" is quick.
    """
    last = len(document.entries) - 1
    first_entry, first_row = divmod(selection.start.y, ROWS_PER_ENTRY) if selection.start else (0, 0)
    first_char = max(0, selection.start.x) if selection.start else 0
    last_entry, last_row = divmod(selection.end.y, ROWS_PER_ENTRY) if selection.end else (last, ROWS_PER_ENTRY)
    last_char = max(0, selection.end.x) if selection.end else ROWS_PER_ENTRY
    pieces: list[str] = []
    for number in range(max(0, first_entry), min(last_entry, last) + 1):
        entry = document.entries[number]
        if entry.rows is None and first_entry < number < last_entry and entry.message is not None:
            pieces.append(clean_text(entry.message.text))
            continue
        document.draw_now(number)
        rows = entry.rows or []
        start = (first_row, first_char) if number == first_entry else (0, 0)
        end = (last_row, last_char) if number == last_entry else None
        pieces.append(rows_text(rows, start, end))
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join([piece.strip("\n") for piece in pieces if piece.strip()]))


@dataclass(frozen=True, slots=True)
class Character:
    """A character of a drawn row: its entry, the row's number in the entry, the row, and the character's index."""

    entry: int
    number: int
    row: Row
    character: int


def character_at(document: Document, line: int, cell: int) -> Character | None:
    """The character at a cell of a line; None if no row is drawn there."""
    if line >= document.heights.total:
        return None
    entry, number = document.heights.place(line)
    rows = document.entries[entry].rows
    if rows is None or number >= len(rows):
        return None
    return Character(entry, number, rows[number], _index_at(rows[number].text, cell))


def _index_at(text: str, cell: int) -> int:
    position = 0
    for index, character in enumerate(text):
        position += cell_len(character)
        if position > cell:
            return index
    return len(text)


def word_selection(at: Character) -> Selection:
    """The word around a character; the character itself if there is none."""
    start, end = at.character, at.character + 1
    for match in _WORD.finditer(at.row.text):
        if match.start() <= at.character < match.end():
            start, end = match.span()
    return _selection(at.entry, (at.number, start), (at.number, end))


def entry_selection(document: Document, entry: int) -> Selection:
    """The whole drawn entry."""
    rows = document.entries[entry].rows or []
    return _selection(entry, (0, 0), (len(rows) - 1, len(rows[-1].text) if rows else 0))


def _selection(entry: int, first: tuple[int, int], last: tuple[int, int]) -> Selection:
    """A selection inside one entry, between two (row, character) places."""
    return Selection(Offset(first[1], line_number(entry, first[0])), Offset(last[1], line_number(entry, last[0])))


GUTTER = 2
"""Cells left of the text; the block cursor is in the first."""


def paint_row(
    row: Row,
    width: int,
    palette: Palette,
    *,
    cursor: bool = False,
    spans: Sequence[tuple[int, int, bool]] = (),
    selected: tuple[int, int] | None = None,
) -> Strip:
    """The line for `row`, `width` cells wide. Undecorated lines are cached in `row.strip`."""
    plain = not cursor and not spans and selected is None
    if plain and row.strip is not None and row.strip.cell_length == width:
        return row.strip
    segments: list[Segment] = list(row.segments)
    if spans:
        segments = restyled(segments, [span[:2] for span in spans if not span[2]], palette.hit)
        segments = restyled(segments, [span[:2] for span in spans if span[2]], palette.hit_current)
    if selected is not None:
        low, high = max(selected[0], row.start), min(selected[1], row.end)
        if low < high:
            segments = restyled(segments, [(low, high)], palette.selection)
    gutter = Segment("▌ ", palette.cursor) if cursor else Segment("  ", palette.base)
    strip = Strip([gutter, *segments]).adjust_cell_length(width, palette.base)
    if plain:
        row.strip = strip
    return strip


class LinePainter:
    """Draws lines of a view from `top` on. `mark` is shown at the right end of the last line."""

    def __init__(
        self,
        document: Document,
        top: int,
        size: Size,
        cursor: int | None,
        search: Search | None,
        selection: Selection | None,
        mark: str,
    ) -> None:
        self._document, self._top, self._size = document, top, size
        self._cursor, self._search, self._selection, self._mark = cursor, search, selection, mark

    def line(self, y: int, *, selectable: bool = False) -> Strip:
        """Line `y` of the view. If `selectable`, with the places in the text that selecting by the mouse looks for.

        Lines that are drawn have none: each would need a style of its own, and Textual caches 16,000 drawn styles.
        """
        strip = self._row(self._top + y, selectable=selectable)
        if not self._mark or y != self._size.height - 1:
            return strip
        segment = Segment(f" {self._mark} ", self._document.palette.selection)
        left = self._size.width - cell_len(segment.text)
        return strip if left < 0 else Strip([*strip.crop(0, left), segment], self._size.width)

    def _row(self, line: int, *, selectable: bool) -> Strip:
        document, width = self._document, self._size.width
        entry, row = document.heights.place(line) if document.entries else (-1, 0)
        rows = document.entries[entry].rows if entry >= 0 else None
        search = (
            self._search if rows and document.entries[entry].live is None else None
        )  # its rows change at each delta
        if rows is None or row >= len(rows):
            return Strip.blank(width, document.palette.base)
        before = rows[row].strip
        strip = paint_row(
            rows[row],
            width,
            document.palette,
            cursor=entry == self._cursor and (row > 0 or len(rows) == 1),
            spans=search.row_hits(entry, rows, row) if search is not None else (),
            selected=row_span(self._selection, entry, row, rows[row].end) if self._selection else None,
        )
        if rows[row].strip is not before:
            document.painted(rows[row])
        return strip.apply_offsets(-GUTTER, line_number(entry, row)) if selectable else strip


class StaticText:
    """A text shown instead of a conversation, wrapped at its first drawing for a size and palette."""

    def __init__(self, widget: Widget, content: Content) -> None:
        self._widget, self._content = widget, content
        self._fitted: tuple[Size, Palette] | None = None
        self._strips: list[Strip] = []
        self._blank = Strip.blank(0)

    def fitted(self, size: Size, palette: Palette) -> StaticText:
        """The text, laid out for the view."""
        if self._fitted != (size, palette):
            self._fitted = size, palette
            edge = Strip.blank(min(size.width, GUTTER), palette.base)
            available = max(1, size.width - 2 * GUTTER)
            strips = Visual.to_strips(self._widget, self._content, available, None, self._widget.visual_style, pad=True)
            if len(strips) > size.height:  # the text matters more than the margin
                strips = [strip for strip in strips if strip.text.strip()]
            self._strips = [Strip.join([edge, strip, edge]).adjust_cell_length(size.width) for strip in strips]
            self._blank = Strip.blank(size.width, palette.base)
        return self

    def line(self, y: int, *, selectable: bool = False) -> Strip:
        """Line `y` of the view."""
        del selectable
        return self._strips[y] if y < len(self._strips) else self._blank

"""The character under the mouse, and the text of a selection."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

from rich.cells import cell_len
from textual.geometry import Offset
from textual.selection import Selection

from tui.render.rows import Row, rows_text
from tui.text.clean import clean_text
from tui.widgets.transcript.document import Document

ROWS_PER_ENTRY = 1 << 20
"""A line's number in a selection: entry times this, plus the row in the entry."""
_WORD = re.compile(r"[\w./:@~+#%-]+")


def line_number(entry: int, row: int) -> int:
    """The number of a row of an entry in a selection's offsets."""
    return entry * ROWS_PER_ENTRY + row


def selected_span(selection: Selection, line: int, row: Row) -> tuple[int, int] | None:
    """The characters of a row that are selected, without borders, marks or padding; None if there are none.

    `line` is the row's `line_number`.
    """
    span = selection.get_span(line)
    if span is None:
        return None
    start, end = max(row.start, span[0]), row.end if span[1] < 0 else min(span[1], row.end)  # -1: to the end
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
    row = rows[number]
    ends = list(accumulate(map(cell_len, row.text)))
    return Character(entry, number, row, bisect_right(ends, cell))


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

"""A row: one terminal line of a message, and its text for copying."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip


@dataclass(slots=True)
class Row:
    """A line of cells.

    `segments` are the cells without the view's gutter. Characters `start:end` of their text are copied (no borders,
    marks or padding); `joint` is put between this row and the next in a copy: a newline, or the blank removed by
    wrapping. `part` is the index of the message part (-1: none), `fold` is set on the line that folds and unfolds that
    part. `strip` is the view's cache of the finished line.
    """

    segments: tuple[Segment, ...]
    start: int = 0
    end: int = -1
    joint: str = "\n"
    part: int = -1
    fold: bool = False
    strip: Strip | None = None

    def __post_init__(self) -> None:
        if self.end < 0:
            self.end = len(self.text)

    @property
    def text(self) -> str:
        """All characters of the row, borders and padding included."""
        return "".join([segment.text for segment in self.segments])

    @property
    def copy(self) -> str:
        """The characters that are copied."""
        return self.text[self.start : self.end]

    def link_at(self, index: int) -> str:
        """The address of the link at a character; "" for none."""
        for text, style, _ in self.segments:
            if index < len(text):
                return (style.link or "") if style is not None and index >= 0 else ""
            index -= len(text)
        return ""

    @property
    def cells(self) -> int:
        """Width in terminal cells."""
        return sum([cell_len(segment.text) for segment in self.segments])


def clear_gradually(items: list[Any]) -> None:
    """Empty a long list in steps: at once it would block every thread for 30 to 60 ms, for a megabyte of text."""
    while items:
        del items[-1_000:]


def blank_row() -> Row:
    """An empty line between blocks."""
    return Row(())


def text_row(text: str, style: Style, *, copy: bool = False) -> Row:
    """A row of one style, by default not copied."""
    return Row((Segment(text, style),), 0, len(text) if copy else 0)


def prefixed(rows: Iterable[Row], first: Sequence[Segment], rest: Sequence[Segment]) -> list[Row]:
    """`rows` with marks in front: `first` before the first row, `rest` before the others. Marks are not copied."""
    result: list[Row] = []
    mark, width = tuple(first), sum([len(segment.text) for segment in first])
    others, other_width = tuple(rest), sum([len(segment.text) for segment in rest])
    for row in rows:
        result.append(Row(mark + row.segments, row.start + width, row.end + width, row.joint, row.part, row.fold))
        mark, width = others, other_width
    return result


def restyled(segments: Iterable[Segment], spans: Sequence[tuple[int, int]], style: Style) -> list[Segment]:
    """`segments` with `style` applied to the character ranges `spans` (ascending, not overlapping)."""
    result: list[Segment] = []
    position = 0
    for text, base, control in segments:
        begin, position = position, position + len(text)
        cut = begin
        for start, end in spans:
            low, high = max(start, cut), min(end, position)
            if low >= high:
                continue
            if low > cut:
                result.append(Segment(text[cut - begin : low - begin], base, control))
            result.append(Segment(text[low - begin : high - begin], style if base is None else base + style, control))
            cut = high
        if cut < position:
            result.append(Segment(text[cut - begin :], base, control))
    return result


def rows_text(rows: Sequence[Row], start: tuple[int, int] = (0, 0), end: tuple[int, int] | None = None) -> str:
    """The text of `rows` for copying, between `start` and `end` (row, character; `end` exclusive, None: all)."""
    last, last_char = end if end is not None else (len(rows) - 1, 1 << 30)
    pieces: list[str] = []
    for number in range(max(0, start[0]), min(last, len(rows) - 1) + 1):
        row = rows[number]
        low = max(row.start, start[1]) if number == start[0] else row.start
        high = min(row.end, last_char) if number == last else row.end
        pieces.append(row.text[low:high] if high > low else "")
        if number < last:
            pieces.append(row.joint)
    return "".join(pieces)

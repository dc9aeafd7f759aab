"""Rows, the terminal lines of a message with their text for copying; and wrapping styled text into them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import starmap
from typing import Any, NamedTuple

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.text.cells import CHARACTERS_PER_CELL


@dataclass(slots=True)
class Row:
    """A line of cells.

    `segments` are the cells without the view's gutter. Characters `start:end` of their text are copied (no borders,
    marks or padding); `joint` is put between this row and the next in a copy: a newline, or the space removed by
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


def text_row(text: str, style: Style) -> Row:
    """A row of one style that is not copied."""
    return Row((Segment(text, style),), 0, 0)


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


MIN_WIDTH = 4
"""Cells; text is never wrapped to less."""

# Scripts without spaces: a line may break before and after each of these characters.
_WIDE = (
    "\u2e80-\u303f\u3041-\ua4cf\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\U00020000-\U0003fffd"
)
_NO_START = frozenset(
    "、。，．！？；：）」』】》〉〕％々ーぁぃぅぇぉっゃゅょァィゥェォッャュョ"
)  # JIS X 4051: not at a line's start
_NO_END = frozenset("（「『【《〈〔")  # nor at its end


@cache
def _atoms() -> re.Pattern[str]:
    """Spaces, single wide characters, everything else. Compiled on first use, since that takes as long as a small
    import."""
    return re.compile(f" +|[{_WIDE}]|[^ {_WIDE}]+")


AT_ONCE = 4_096
"""Characters; longer texts are split lazily, since one call blocks every other thread: 180 ms for a megabyte."""


@cache
def _wide() -> re.Pattern[str]:
    return re.compile(f"[{_WIDE}]")


class Run(NamedTuple):
    """A piece of text in one style; a run that is just a newline breaks the line."""

    text: str
    style: Style


def room(text: str) -> int:
    """The cells that `text` takes: its width, or more if nearly all of its characters have none."""
    return max(cell_len(text), len(text) // CHARACTERS_PER_CELL)


@dataclass(slots=True)
class Line:
    """A wrapped line: its runs, its width in cells, and what is copied before the next line."""

    runs: list[Run] = field(default_factory=list)
    cells: int = 0
    joint: str = "\n"

    def add(self, runs: Iterable[Run]) -> None:
        """Append `runs`, merging those of one style: each run is written to the terminal with its colours."""
        line = self.runs
        for run in runs:
            if line and line[-1].style is run.style:
                line[-1] = Run(line[-1].text + run.text, run.style)
            else:
                line.append(run)

    def row(self) -> Row:
        """The line as a row, all of it copied."""
        return Row(tuple(starmap(Segment, self.runs)), joint=self.joint)


def wrap(runs: Iterable[Run], width: int) -> list[Line]:
    """Break `runs` into lines of at most `width` cells; at least one line."""
    width = max(MIN_WIDTH, width)
    lines: list[Line] = []
    part: list[Run] = []
    for run in runs:
        if "\n" not in run.text:
            part.append(run)
            continue
        for index, piece in enumerate(run.text.split("\n")):
            if index:
                lines.extend(_wrap_line(part, width))
                part = []
            if piece:
                part.append(Run(piece, run.style))
    lines.extend(_wrap_line(part, width))
    return lines


def _wrap_line(runs: Sequence[Run], width: int) -> list[Line]:
    lines: list[Line] = []
    line = Line()
    if (cells := sum([room(run.text) for run in runs])) <= width:
        line.add(runs)
        line.cells = cells
        return [line]
    for space, word, cells in _words(runs):
        gap = sum([len(run.text) for run in space])
        if line.cells + gap + cells <= width:
            line.add(space + word)
            line.cells += gap + cells
            continue
        if line.cells:
            line.joint = "".join([run.text for run in space])
            lines.append(line)
            line = Line()
        elif gap:  # keep the indent of a line if it leaves enough width
            line = Line([Run(" " * min(gap, width // 2), space[0].style)], min(gap, width // 2))
        if line.cells + cells <= width:
            line.add(word)
            line.cells += cells
        else:
            first, *others = chop(word, width - line.cells, width)
            line.add(first.runs)
            line.cells += first.cells
            for other in others:
                line.joint = ""
                lines.append(line)
                line = other
    lines.append(line)
    return lines


def _words(runs: Sequence[Run]) -> Iterable[tuple[list[Run], list[Run], int]]:
    """Split into unbreakable words: the preceding spaces, the runs, the cells."""
    space: list[Run] = []
    word: list[Run] = []
    cells = 0
    last = ""
    for text, style in runs:
        atoms = _atoms().findall(text) if len(text) <= AT_ONCE else (match[0] for match in _atoms().finditer(text))
        for atom in atoms:
            if atom[0] == " ":
                if word:
                    yield space, word, cells
                    space, word, cells = [], [], 0
                space.append(Run(atom, style))
                last = " "
                continue
            size = room(atom)
            if word and size and _may_break(last, atom[0]):
                yield space, word, cells
                space, word, cells = [], [], 0
            word.append(Run(atom, style))
            cells += size
            last = atom[-1]
    if word or space:
        yield space, word, cells


def _may_break(before: str, after: str) -> bool:
    if before in _NO_END or after in _NO_START:
        return False
    is_wide = _wide().match
    return bool(is_wide(before) or is_wide(after))


def chop(runs: Iterable[Run], first: int, others: int) -> Iterator[Line]:
    """Cut unbreakable text into lines of at most `first` cells, then `others`."""
    line, available = Line(), first
    for text, style in runs:
        position = 0
        while position < len(text):
            piece = first_piece(text, position, available)
            if not piece or (room(piece) > available and available < others):
                yield line
                line, available = Line(), others
                continue
            line.add([Run(piece, style)])
            line.cells += room(piece)
            available -= room(piece)
            position += len(piece)
    yield line


def first_piece(text: str, position: int, available: int) -> str:
    """The part of `text` from `position` on that fits into `available` cells; at least one grapheme.

    Inspects only the characters that may fit (some have no width), however long the text is.
    """
    if available <= 0:
        return ""
    near = text[position : position + 4 * available + 16]
    return next((piece for piece in chop_cells(near, available) if piece), near)


def plain_rows(text: str, style: Style, width: int) -> list[Row]:
    """Plain text as rows, keeping its line breaks. `text` must be clean."""
    return [line.row() for line in wrap([Run(text.expandtabs(4), style)], width)]

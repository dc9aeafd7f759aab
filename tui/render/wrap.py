"""Wraps styled text to a width in cells: at blanks, around wide characters, inside long words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style

from tui.render.rows import Row

MIN_WIDTH = 4
"""Cells; text is never wrapped to less."""

# Scripts without blanks: a line may break before and after each of these characters.
_WIDE = (
    "\u2e80-\u303f\u3041-\ua4cf\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\U00020000-\U0003fffd"
)
_NO_START = frozenset(
    "、。，．！？；：）」』】》〉〕％々ーぁぃぅぇぉっゃゅょァィゥェォッャュョ"
)  # JIS X 4051: not at a line's start
_NO_END = frozenset("（「『【《〈〔")  # nor at its end


@cache
def _atoms() -> re.Pattern[str]:
    """Blanks, single wide characters, everything else. Compiled on first use, since that takes as long as a small
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
        return Row(tuple([Segment(text, style) for text, style in self.runs]), joint=self.joint)


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
    if (cells := sum([cell_len(run.text) for run in runs])) <= width:
        line.add(runs)
        line.cells = cells
        return [line]
    for space, word, cells in _words(runs):
        gap = sum([len(run.text) for run in space])
        if line.cells + gap + cells <= width:
            line.add(space)
            line.add(word)
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
            line = _chop(word, width, line, lines)
    lines.append(line)
    return lines


def _words(runs: Sequence[Run]) -> Iterable[tuple[list[Run], list[Run], int]]:
    """Split into unbreakable words: the preceding blanks, the runs, the cells."""
    space: list[Run] = []
    word: list[Run] = []
    cells = 0
    last = ""
    for text, style in runs:
        for atom in _split(text):
            if atom[0] == " ":
                if word:
                    yield space, word, cells
                    space, word, cells = [], [], 0
                space.append(Run(atom, style))
                last = " "
                continue
            size = cell_len(atom)
            if word and size and _may_break(last, atom[0]):
                yield space, word, cells
                space, word, cells = [], [], 0
            word.append(Run(atom, style))
            cells += size
            last = atom[-1]
    if word or space:
        yield space, word, cells


def _split(text: str) -> Iterable[str]:
    if len(text) <= AT_ONCE:
        return _atoms().findall(text)
    return (match.group() for match in _atoms().finditer(text))


def _may_break(before: str, after: str) -> bool:
    if before in _NO_END or after in _NO_START:
        return False
    is_wide = _wide().match
    return bool(is_wide(before) or is_wide(after))


def _chop(word: Sequence[Run], width: int, line: Line, lines: list[Line]) -> Line:
    """Cut a word longer than a line; full lines go to `lines`, the rest is returned."""
    for text, style in word:
        position = 0
        while position < len(text):
            available = width - line.cells
            piece = first_piece(text, position, available)
            if not piece or cell_len(piece) > available:
                if not line.cells:  # a single grapheme wider than the line: let it overflow rather than loop
                    line.runs.append(Run(text[position:], style))
                    break
                line.joint = ""
                lines.append(line)
                line = Line()
                continue
            line.add([Run(piece, style)])
            line.cells += cell_len(piece)
            position += len(piece)
    return line


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

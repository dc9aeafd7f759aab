"""Tables: columns shrink to the width; if they would become too narrow, each row is drawn as a record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TypeAlias

from rich.cells import cell_len
from rich.segment import Segment

from tui.render.palette import Palette
from tui.render.rows import MIN_WIDTH, Line, Row, Run, blank_row, prefixed, text_row, wrap

Align: TypeAlias = Literal["left", "right", "center"]
Cell: TypeAlias = list[Run]


@dataclass(frozen=True, slots=True)
class Extents:
    """The preferred and the minimal width of each column, in cells."""

    preferred: tuple[int, ...]
    minimal: tuple[int, ...]

    def with_others(self, other: Extents) -> Extents:
        """The extents of both pieces of a table."""
        preferred = zip_longest(self.preferred, other.preferred, fillvalue=0)
        return Extents(
            tuple(map(max, preferred)), tuple(map(max, zip_longest(self.minimal, other.minimal, fillvalue=0)))
        )


GAP = 3
"""Spaces between columns; one less on narrow screens."""
_NARROW = 60
_MAX_WORD = 20  # cells; words longer than this may be broken


@dataclass(frozen=True, slots=True)
class Table:
    """A parsed table: header cells, body rows, the alignment of each column."""

    head: list[Cell]
    body: list[list[Cell]]
    aligns: list[Align]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is drawn at one width: cells for each column (none: as records), and blank lines between rows."""

    widths: tuple[int, ...]
    airy: bool


def table_layout(table: Table, extents: Extents, width: int, palette: Palette) -> Layout:
    """The layout for cells of these extents, including those of other pieces of the table."""
    widths = column_widths(extents, width)
    return Layout(widths, _airy(_cells_rows(cells, widths, table.aligns, 0, palette) for cells in table.body))


def table_rows(
    table: Table, width: int, palette: Palette, *, layout: Layout | None = None, head: bool = True
) -> list[Row]:
    """`table` in at most `width` cells.

    `layout` fixes the columns and `head` False omits the header: for a later piece of a streaming table.
    """
    widths = column_widths(measure(table), width) if layout is None else layout.widths
    if not widths:
        return _records(table, width, palette, head=head)
    gap = _gap(width)
    rows: list[Row] = []
    if head:
        rows += _cells_rows(table.head, widths, table.aligns, gap, palette)
        rows.append(text_row("─" * (sum(widths) + gap * (len(widths) - 1)), palette.faint))
    bodies = [_cells_rows(cells, widths, table.aligns, gap, palette) for cells in table.body]
    airy = _airy(bodies) if layout is None else layout.airy
    for number, body in enumerate(bodies):
        if airy and (number or not head):
            rows.append(blank_row())
        rows += body
    return rows


def _airy(bodies: Iterable[Sequence[Row]]) -> bool:
    """Whether blank lines separate the rows: if some have several lines."""
    return any(len(body) > 1 for body in bodies)


def _gap(width: int) -> int:
    return GAP if width >= _NARROW else GAP - 1


def measure(table: Table) -> Extents:
    """How wide the columns are."""
    preferred: list[int] = []
    minimal: list[int] = []
    for index in range(len(table.aligns)):
        cells = [row[index] for row in (table.head, *table.body) if index < len(row)]
        text = "\n".join(["".join([run.text for run in cell]) for cell in cells])
        preferred.append(max([MIN_WIDTH, *map(cell_len, text.split("\n"))]))
        words = max(map(cell_len, text.split()), default=0)
        minimal.append(max(MIN_WIDTH, min(words, _MAX_WORD)))
    return Extents(tuple(preferred), tuple(minimal))


def column_widths(extents: Extents, width: int) -> tuple[int, ...]:
    """Cells for each column; empty if the table does not fit into columns at this width."""
    available = width - _gap(width) * (len(extents.preferred) - 1)
    if sum(extents.preferred) <= available:
        return extents.preferred
    if sum(extents.minimal) > available:
        return ()
    return tuple(_shrink(extents.preferred, extents.minimal, available))


def _shrink(preferred: Sequence[int], minimal: Sequence[int], available: int) -> list[int]:
    """Narrow columns get their preferred width, the wide ones equal shares of the rest."""

    def at_share(share: int) -> list[int]:
        return [min(max(share, low), high) for low, high in zip(minimal, preferred, strict=True)]

    sizes = next(sizes for share in range(available, -1, -1) if sum(sizes := at_share(share)) <= available)
    spare = available - sum(sizes)
    for index in sorted(range(len(sizes)), key=lambda column: preferred[column] - sizes[column], reverse=True):
        extra = max(0, min(spare, preferred[index] - sizes[index]))
        sizes[index] += extra
        spare -= extra
    return sizes


def _cells_rows(
    cells: Sequence[Cell], sizes: Sequence[int], aligns: list[Align], gap: int, palette: Palette
) -> list[Row]:
    columns = [wrap(cells[index] if index < len(cells) else [], size) for index, size in enumerate(sizes)]
    rows: list[Row] = []
    for number in range(max(map(len, columns), default=0)):
        segments: list[Segment] = []
        for index, (column, size) in enumerate(zip(columns, sizes, strict=True)):
            if index:
                segments.append(Segment(" " * gap, palette.base))
            line = column[number] if number < len(column) else Line()
            segments += _aligned(line, size, aligns[index] if index < len(aligns) else "left", palette)
        text = "".join([segment.text for segment in segments])
        rows.append(Row(tuple(segments), 0, len(text.rstrip())))
    return rows


def _aligned(line: Line, size: int, align: Align, palette: Palette) -> list[Segment]:
    spare = max(0, size - line.cells)
    left = {"left": 0, "right": spare, "center": spare // 2}[align]
    segments = [Segment(text, style) for text, style in line.runs]
    if left:
        segments.insert(0, Segment(" " * left, palette.base))
    if spare > left:
        segments.append(Segment(" " * (spare - left), palette.base))
    return segments


def _records(table: Table, width: int, palette: Palette, *, head: bool) -> list[Row]:
    """Every row as a short list of `header: value` lines; for screens narrower than the table."""
    bar = (Segment("▏", palette.bullet),)
    rows: list[Row] = []
    for cells in filter(any, table.body):
        if rows or not head:
            rows.append(blank_row())
        for index, cell in enumerate(cells):
            if not cell:
                continue
            name = table.head[index] if index < len(table.head) else []
            label = [*name, Run(": ", palette.strong)] if name else []
            rows += prefixed([line.row() for line in wrap([*label, *cell], width - 1)], bar, bar)
    if not rows and head:  # a header without rows so far
        flat = [run for cell in table.head for run in (*cell, Run(" ", palette.base))]
        rows = [line.row() for line in wrap(flat, width)]
    return rows

"""From a row to the finished line of the view: gutter, cursor, search hits, selection, offsets for selecting."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip

from tui.render.palette import Palette
from tui.render.rows import Row, restyled
from tui.widgets.transcript.select import line_number

GUTTER = 2
"""Cells left of the text; the block cursor stands in the first."""


def paint_row(
    row: Row,
    place: tuple[int, int],
    width: int,
    palette: Palette,
    *,
    cursor: bool = False,
    spans: Sequence[tuple[int, int, bool]] = (),
    selected: tuple[int, int] | None = None,
) -> Strip:
    """The line for `row` at `place` (entry, row), `width` cells wide. Undecorated lines are kept in `row.strip`."""
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
    strip = strip.apply_offsets(-GUTTER, line_number(*place))
    if plain:
        row.strip = strip
    return strip


def paint_mark(strip: Strip, text: str, width: int, palette: Palette) -> Strip:
    """`strip` with a small mark at its right end."""
    mark = f" {text} "
    left = width - cell_len(mark)
    if left < 0:
        return strip
    return Strip([*strip.crop(0, left), Segment(mark, palette.selection)], width)

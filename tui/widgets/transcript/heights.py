"""Heights of the transcript's entries, and the entry at a line."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from math import ceil
from typing import TypeAlias

Place: TypeAlias = tuple[int, int]
"""An entry and a row in it."""


class Heights:
    """A list of heights in rows with their running sums.

    A change costs as much as there is below it, so growth at the end (a streaming reply) is free.
    """

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self._tops = [0]
        self._valid = 0  # tops are valid up to this index

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    def append(self, height: int) -> None:
        """Add an entry at the end."""
        self._heights.append(height)

    def pop(self) -> None:
        """Remove the last entry."""
        self._heights.pop()
        self._valid = min(self._valid, len(self._heights))
        del self._tops[len(self._heights) + 1 :]

    def set(self, index: int, height: int) -> int:
        """Change one height; returns the difference."""
        change = height - self._heights[index]
        if change:
            self._heights[index] = height
            self._valid = min(self._valid, index)
        return change

    def top(self, index: int) -> int:
        """The first line of entry `index`; for the index after the last one, the total."""
        if self._valid < len(self._heights):
            del self._tops[self._valid + 1 :]
            last = self._tops.pop()
            self._tops.extend(accumulate(self._heights[self._valid :], initial=last))
            self._valid = len(self._heights)
        return self._tops[index]

    @property
    def total(self) -> int:
        """All rows."""
        return self.top(len(self._heights))

    def find(self, line: int) -> int:
        """The entry at `line`; the first or the last one if it lies outside. -1 without entries."""
        self.top(0)
        return min(max(0, bisect_right(self._tops, line) - 1), len(self._heights) - 1)

    def place(self, line: int) -> Place:
        """The entry at `line`, and the row in it. There must be an entry."""
        index = self.find(line)
        return index, line - self.top(index)


def thumb_eighths(height: int, total: int, top: float) -> tuple[int, int, int]:
    """The scroll bar's thumb for a view of `height` cells: its height, and its start and end in eighths of a cell.

    As drawn by Textual's `ScrollBarRender.render_bar`.
    """
    cells = max(1.0, height * height / max(1, total))
    start = int(8 * (height - cells) * top / max(1, total - height))
    return height, start, start + ceil(8 * cells)

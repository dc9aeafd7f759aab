"""Printing of commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.cells import cell_len

from tui.text.cells import pad, plain


def write(text: str) -> None:
    """Print to standard output."""
    sys.stdout.write(text + "\n")


def table(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """Columns separated by two blanks; those in `right` are right-aligned. Removes control characters."""
    clean = [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*clean, strict=True)]
    lines = (
        "  ".join(
            " " * (width - cell_len(cell)) + cell if index in right else pad(cell, width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in clean
    )
    return "\n".join(lines)

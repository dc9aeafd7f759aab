"""The `chatctx` command line: exit codes, and how commands print. Imports only what the chosen command needs."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # see main.py
if TYPE_CHECKING:
    from collections.abc import Sequence

FAILED, BAD_USAGE, INTERRUPTED = 1, 2, 130
"""Exit codes beside 0: the request failed, bad usage, interrupted."""


def complain(text: str, code: int = FAILED) -> int:
    """Print one line on standard error, without keys; returns `code`."""
    from tui.providers.keys import redact

    sys.stderr.write(f"chatctx: {redact(' '.join(text.split()))}\n")
    return code


def write(text: str) -> None:
    """Print to standard output."""
    sys.stdout.write(text + "\n")


def table(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """Columns separated by two spaces; those in `right` are right-aligned. Removes control characters."""
    from rich.cells import cell_len

    from tui.text.cells import pad, plain

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

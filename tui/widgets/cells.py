"""Text cut and padded by terminal cells, with nothing in it that a terminal would act on."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size


def plain(text: str) -> str:
    """One line without control characters: titles, names and paths come from outside."""
    return "".join(char if char.isprintable() else " " for char in text)


def clip(text: str, width: int) -> str:
    """At most `width` cells, with an ellipsis where something is missing."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1) + "…" if width > 0 else ""


def pad(text: str, width: int) -> str:
    """Exactly `width` cells: clipped, or filled up with blanks."""
    return set_cell_size(clip(text, width), max(0, width))

"""Text cut and padded by terminal cells, with nothing in it that a terminal would act on."""

from __future__ import annotations

from unicodedata import category

from rich.cells import cell_len, set_cell_size

_JOINERS = "\u200c\u200d"
"""Without width and harmless: emoji of several people and Persian words fall apart without them."""


def plain(text: str) -> str:
    """One line without control characters: titles, names and paths come from outside."""
    return text if text.isprintable() else "".join(map(_plain, text))


def _plain(char: str) -> str:
    if char.isprintable() or char in _JOINERS:
        return char
    return "" if category(char) == "Cf" else " "  # what only directs other characters leaves no gap


def clip(text: str, width: int) -> str:
    """At most `width` cells, with an ellipsis where something is missing."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1) + "…" if width > 0 else ""


def pad(text: str, width: int) -> str:
    """Exactly `width` cells: clipped, or filled up with blanks."""
    return set_cell_size(clip(text, width), max(0, width))

"""Text clipped and padded by terminal cells, without control characters."""

from __future__ import annotations

from unicodedata import category

from rich.cells import cell_len, set_cell_size

CHARACTERS_PER_CELL = 8
"""The most that a cell shows: a family of emoji has eleven in two. Marks without end would make a row without end."""

_JOINERS = "\u200c\u200d"
"""Without width and harmless: combined emoji and Persian words fall apart without them."""


def plain(text: str) -> str:
    """One line without control characters: titles, names and paths are untrusted."""
    return text if text.isprintable() else "".join(map(_plain, text))


def _plain(char: str) -> str:
    if char.isprintable() or char in _JOINERS:
        return char
    return "" if category(char) == "Cf" else " "  # characters that only direct others leave no gap


def clip(text: str, width: int) -> str:
    """At most `width` cells, with an ellipsis if something was cut off."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 0 else ""


def pad(text: str, width: int) -> str:
    """Exactly `width` cells: clipped, or padded with blanks."""
    return set_cell_size(clip(text, width), max(0, width))


_CLUSTER_REACH = 200
"""Characters examined on one side of a position: no grapheme cluster is as long."""


def cluster_start(text: str, index: int) -> int:
    """The start of the grapheme cluster (Unicode, UAX 29) before `index`."""
    if index <= 1 or text[index - 2 : index].isascii():
        return max(0, index - 1)
    near = text[max(0, index - _CLUSTER_REACH) : index]
    return index - len(_clusters(near)[-1])


def cluster_end(text: str, index: int) -> int:
    """The end of the grapheme cluster that begins at `index`."""
    if index >= len(text) - 1 or text[index : index + 2].isascii():
        return min(len(text), index + 1)
    return index + len(_clusters(text[index : index + _CLUSTER_REACH])[0])


def cluster_boundary(text: str, index: int) -> int:
    """`index`, or the start of the grapheme cluster that it lies in."""
    if not 0 < index < len(text) or text[index - 1 : index + 1].isascii():
        return index
    first = max(0, index - _CLUSTER_REACH)
    position = first
    for cluster in _clusters(text[first : index + _CLUSTER_REACH]):
        if position + len(cluster) > index:
            return position
        position += len(cluster)
    return index


def _clusters(text: str) -> list[str]:
    import regex  # not before the first frame

    clusters: list[str] = regex.findall(r"\X", text)
    return clusters


def eighths(filled: float) -> str:
    """A cell of a chart, filled from below by a share from 0 to 1."""
    return " ▁▂▃▄▅▆▇█"[min(8, max(0, round(filled * 8)))]

"""The window drawn: a band with a segment for each category, and the small bar of the status line.

Pure: `ContextUsage` in, lines of `Content` out. Colours are theme variables (`$context-system`), so themes can change
without redrawing; without colour the glyphs tell the categories apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from tui.text.numbers import share

if TYPE_CHECKING:
    from tui.context.usage.usage import ContextUsage


@dataclass(frozen=True, slots=True)
class Category:
    """The look of a category: a cell, a theme variable `context-<colour>`, and its short label in the band."""

    glyph: str
    colour: str
    label: str


CATEGORIES: dict[str, Category] = {
    "system": Category("█", "system", "system"),
    "memory": Category("▙", "memory", "memory"),
    "instructions": Category("░", "instructions", "MCP"),
    "tools": Category("▓", "tools", "tools"),
    "hidden": Category("▗", "hidden", "server"),
    "user": Category("▒", "user", "you"),
    "assistant": Category("▟", "assistant", "assistant"),
    "reasoning": Category("▛", "reasoning", "reasoning"),
    "tool_calls": Category("▀", "calls", "calls"),
    "tool_results": Category("▄", "results", "tool results"),
    "attachments": Category("▌", "attachments", "files"),
    "summaries": Category("▐", "summaries", "summary"),
    "unattributed": Category("▜", "other", "other"),
    "free": Category("·", "free", "free"),
    "buffer": Category("▚", "buffer", "buffer"),
    "reserve": Category("▞", "reserve", "reserve"),
}
"""The glyphs are block elements: they are one cell wide in every terminal font."""

COLOURS = tuple(category.colour for category in CATEGORIES.values())


def segments_of(usage: ContextUsage) -> list[tuple[str, int]]:
    """The band's segments, each a key of `CATEGORIES` and its tokens, in the order of the table, without empty ones."""
    space = usage.space
    parts = [(row.key, row.tokens) for row in usage.rows]
    parts += [("free", space.free or 0), ("buffer", space.buffer or 0), ("reserve", space.reserve or 0)]
    return [(key, tokens) for key, tokens in parts if tokens > 0]


def cells(sizes: Sequence[int], width: int) -> list[int]:
    """Divide `width` cells by size: largest remainders, at least one cell for each, in sum exactly `width`.

    Sizes are positive. If there are more sizes than cells, the smallest get none.
    """
    total = sum(sizes)
    if width <= 0 or total <= 0:
        return [0] * len(sizes)
    ideal = [size * width / total for size in sizes]
    result = [max(1, int(part)) for part in ideal]
    by_remainder = sorted(range(len(sizes)), key=lambda i: ideal[i] - int(ideal[i]), reverse=True)
    for index in by_remainder:
        if sum(result) >= width:
            break
        result[index] += 1
    while sum(result) > width:
        largest = max(range(len(sizes)), key=lambda i: (result[i] > 1, result[i] - ideal[i], -sizes[i]))
        result[largest] -= 1
    return result


def picture_lines(usage: ContextUsage, width: int, rows: int = 3) -> list[Content]:
    """The band, `rows` lines of `width` cells. With three rows, wide segments have their label in the middle one.

    If the request is larger than the window, a further line marks the end of the window. An empty window is one segment
    of free cells.
    """
    parts = segments_of(usage) or [("free", 1)]
    sizes = [tokens for _, tokens in parts]
    whole, widths = sum(sizes), cells(sizes, width)
    labelled = rows // 2 if rows >= 3 else -1
    lines = []
    for row in range(rows):
        pieces = [
            _stretch(key, tokens, count, whole if row == labelled else 0)
            for (key, tokens), count in zip(parts, widths, strict=True)
            if count
        ]
        lines.append(Content.assemble(*pieces))
    if usage.space.over and usage.limits.context:
        lines.append(_window_end(width, usage.limits.context / whole))
    return lines


def _stretch(key: str, tokens: int, count: int, whole: int) -> tuple[str, str]:
    look = CATEGORIES[key]
    style = f"$context-{look.colour} on $context-{look.colour}-back"
    if whole and key != "free":
        label = f" {look.label} {share(tokens, whole, digits=0)} "
        if len(label) > count:
            label = f" {look.label} "
        if len(label) <= count:
            return label.center(count), f"$foreground on $context-{look.colour}-back"
    return look.glyph * count, style


def _window_end(width: int, at: float) -> Content:
    column = min(width - 1, max(0, int(at * width)))
    text = "▲ the window ends here"
    if column + len(text) > width:
        text = "the window ends here ▲"
        column = max(0, column - len(text) + 1)
    return Content.assemble(" " * column, (text[:width], "bold $text-error"))


# --- the bar of the status line


def context_bar(usage: ContextUsage | None, width: int) -> Content:
    """A bar of exactly `width` cells: heavy for the input, thin elsewhere, dotted if the window is unknown.

    Always between empty and full. The upright mark is where compaction starts.
    """
    width = max(0, width)
    window = usage.limits.context if usage is not None else None
    if usage is None or not window or window < 0:
        return Content.styled("┄" * width, "$text-muted")
    halves = filled_halves(usage.total, window, width)
    full, half = divmod(halves, 2)
    text = "━" * full + "╸" * half + "─" * (width - full - half)
    bar = Content(text).stylize(urgency(usage) or "$primary", 0, full + half).stylize("$border", full + half, width)
    at = usage.budget.compaction_at
    if at is not None and 0 < at <= window and width > 2:
        tick = min(width - 1, int(at * width / window))
        style = urgency(usage) or "$primary" if tick < full else "$text-muted"
        bar = Content.assemble(bar[:tick], ("╋" if tick < full else "┼", style), bar[tick + 1 :])
    return bar


def filled_halves(used: int, window: int, width: int) -> int:
    """Half cells of a bar of `width` cells: at least one if anything is used, full only if all is."""
    if window <= 0 or width <= 0 or used <= 0:
        return 0
    halves = int(2 * width * used / window)
    return max(1, min(halves, 2 * width - (1 if used < window else 0)))


def urgency(usage: ContextUsage) -> str:
    """The theme colour for nearing a compaction, a trim or a refusal: amber from 75 %, red from 90 %, else "".

    In percent of the size at which compaction starts, or of the input budget if there is none.
    """
    limit = usage.budget.max_input if usage.budget.compaction_at is None else usage.budget.compaction_at
    fullness = 100 * usage.total / limit if limit else 0  # unknown
    return "$text-error" if fullness >= 90 else "$text-warning" if fullness >= 75 else ""


def alarm(usage: ContextUsage) -> str:
    """ " !" if `urgency` is red: readable without colour."""
    return " !" if urgency(usage) == "$text-error" else ""

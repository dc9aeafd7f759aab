"""The fill level of the window for the status line: a small bar, a sign and a colour. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

if TYPE_CHECKING:
    from tui.context.usage.usage import ContextUsage


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
    """The theme colour for nearing a compaction, a trim or a refusal: amber from 75 %, red from 90 %, else ""."""
    match fullness(usage):
        case None:
            return ""
        case value if value >= 90:
            return "$text-error"
        case value if value >= 75:
            return "$text-warning"
    return ""


def alarm(usage: ContextUsage) -> str:
    """ " !" if `urgency` is red: readable without colour."""
    share = fullness(usage)
    return " !" if share is not None and share >= 90 else ""


def fullness(usage: ContextUsage) -> float | None:
    """The next request in percent of the compaction threshold, or of the input budget if there is none.

    None if the window is unknown.
    """
    limit = usage.budget.max_input if usage.budget.compaction_at is None else usage.budget.compaction_at
    return 100 * usage.total / limit if limit else None

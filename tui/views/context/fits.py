"""The "fits where?" view of `/context`: this conversation in other models' windows. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from tui.context.usage.limits import BudgetSettings, ModelLimits, make_budget
from tui.text.cells import pad, plain
from tui.text.numbers import percent, tokens_exact, tokens_short

if TYPE_CHECKING:
    from tui.context.usage.usage import ContextUsage


@dataclass(frozen=True, slots=True)
class Fit:
    """A model and this conversation in it. `too_much` is the excess in tokens; None if unknown.

    `sure`: the tokens are this model's own, and measured.
    """

    name: str
    window: int | None
    percent: float | None
    too_much: int | None
    current: bool = False
    sure: bool = False


def fits(usage: ContextUsage, models: Iterable[tuple[str, ModelLimits | None]]) -> list[Fit]:
    """This conversation in each model ("provider/model", limits), largest window first, unknown ones last.

    Tokens are those of the current model: another tokenizer may count some percent more or less.
    """
    present = f"{usage.provider}/{usage.model}"
    all_limits = {**dict(models), present: usage.limits}
    result = []
    for name, limits in all_limits.items():
        window = limits.context if limits is not None else None
        if limits is None or not window:
            result.append(Fit(name, None, None, None, name == present))
            continue
        budget = usage.budget if name == present else make_budget(limits, BudgetSettings())
        over = max(0, usage.total - budget.max_input) if budget.max_input is not None else None
        sure = name == present and usage.source == "exact"
        result.append(Fit(name, window, 100 * usage.total / window, over, name == present, sure))
    return sorted(result, key=lambda fit: (fit.window is None, fit.percent or 0.0, fit.name))


def fit_line(fit: Fit, width: int) -> Content:
    """One line: name, window, percentage, and the excess."""
    wide = width >= 64
    room = max(8, width - (2 + 9 + 8 + (30 if wide else 2)))
    about = "" if fit.sure else "~"
    share = f"{about}{percent(fit.percent)}" if fit.percent is not None else "?"
    if fit.too_much is None:
        verdict, style, sign = "window unknown", "$text-muted", "?"
    elif fit.too_much:
        verdict, style, sign = f"{about}{tokens_exact(fit.too_much)} would have to go", "$text-error", "✗"
    else:
        verdict, style, sign = "fits", "$text-success", "✓"
    return Content.assemble(
        ("● " if fit.current else "  ", "$primary"),
        (pad(plain(fit.name), room), "$foreground"),
        (f"{tokens_short(fit.window, strip=True):>9}", "$text-muted"),
        (f"{share:>8}", "$foreground"),
        (f"  {verdict}" if wide else f" {sign}", style),
    ).truncate(width, ellipsis=True)

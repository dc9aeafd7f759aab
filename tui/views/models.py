"""Models to choose from, what is known about them, and whether a conversation fits them. Unknown is "?"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from tui.context.usage.limits import BudgetSettings, ModelLimits, make_budget
from tui.text.cells import pad, plain
from tui.text.numbers import percent, price_per_million, tokens_exact, tokens_short
from tui.views.view import Menu, Option, matching

if TYPE_CHECKING:
    from tui.chat.model_list import ListedModel, ModelList
    from tui.chat.turn.session import ChatSession
    from tui.context.usage.limits import ModelLimits
    from tui.context.usage.usage import ContextUsage
    from tui.providers.base import Capabilities, ModelInfo


_THOUGHTS = {
    "always": "reasoning is sent back",
    "tool_loop": "reasoning is sent back between tool steps",
    "never": "reasoning is not sent back",
}

_COUNTING = {True: "the server counts exactly", False: "no counting endpoint", None: "counting endpoint: ?"}


def window_text(limits: ModelLimits | None) -> str:
    """ "200k", "?"."""
    return tokens_short(limits.context if limits else None, strip=True)


def price_text(price: tuple[float, float] | None) -> str:
    """Dollars per million tokens of input and of output: "$3/$15", "free", "?"."""
    if price is None:
        return "?"
    return f"${price_per_million(price[0])}/${price_per_million(price[1])}" if any(price) else "free"


def effort_text(effort: str | None, sent: str | None) -> str:
    """The line of `/thinking`: the requested effort and the one that is `sent`."""
    if effort is None:
        return "Reasoning effort: provider default."
    if sent == effort:
        return f"Reasoning effort: {effort}."
    if sent is None:
        return f"Reasoning effort: {effort}, but this model takes none: provider default."
    return f"Reasoning effort: {effort}. This model does not take it: {sent} is sent."


def about_model(info: ModelInfo, able: Capabilities, used: str) -> str:
    """One line on what the model accepts and how it is counted."""
    kinds = (("images", info.images), ("PDFs", info.pdfs), ("tools", info.tools))
    takes = [name for name, supported in kinds if supported]
    lacks = [name for name, supported in kinds if supported is False]
    unknown = [name for name, supported in kinds if supported is None]
    longest = info.limits.output if info.limits else None
    words = (
        info.name,
        takes and f"takes {', '.join(takes)}",
        lacks and f"takes no {' or '.join(lacks)}",
        unknown and f"{', '.join(unknown)}: ?",
        _THOUGHTS[able.reasoning_return],
        _COUNTING[able.count_endpoint],
        longest and f"answers up to {tokens_short(longest, strip=True)}",
        used,
    )
    return " · ".join(str(word) for word in words if word)


@dataclass(frozen=True, kw_only=True)
class ModelMenu(Menu):
    """The models to choose from."""

    models: ModelList
    present: str  # full name of the current one


def model_menu(models: ModelList, session: ChatSession) -> ModelMenu:
    """Every model with its window and price, as the servers report them now."""
    present = f"{session.provider}/{session.model}"

    async def source(query: str) -> Sequence[Option]:
        return model_options((await models.ask()).models, query, present)

    return ModelMenu(
        title="Models and their windows",
        source=source,
        usage="/model NAME",
        placeholder="search models",
        models=models,
        present=present,
    )


def model_options(models: Iterable[ListedModel], query: str, present: str) -> list[Option]:
    """The models that match `query`, best first; among equals the last used first."""
    return [
        Option(
            model.full_name,
            model.full_name,
            f"{window_text(model.limits):>6}  {price_text(model.info.price):>12}   {model.limits.detail}",
            model.full_name == present,
            f"{window_text(model.limits):>5} {price_text(model.info.price)}",
        )
        for model in matching(query, models, lambda model: f"{model.full_name} {model.info.name or ''}")
    ]


def fit_lines(usage: ContextUsage, models: Iterable[tuple[str, ModelLimits | None]], width: int) -> list[Content]:
    """This conversation in the current model, then in each other ("provider/model", limits), the largest window first.

    A line has the name, the window, the percentage and the excess. Tokens are those of the current model: another
    tokenizer may count some percent more or less.
    """
    present = f"{usage.provider}/{usage.model}"
    limits = {**dict(models), present: usage.limits}
    windows = {name: (known.context or 0) if known is not None else 0 for name, known in limits.items()}
    names = sorted(limits, key=lambda name: (name != present, -windows[name], name))
    return [_fit_line(usage, name, limits[name], width, current=name == present) for name in names]


def _fit_line(usage: ContextUsage, name: str, limits: ModelLimits | None, width: int, *, current: bool) -> Content:
    sure = current and usage.source == "exact"  # the tokens are this model's own, and measured
    share, verdict, style, sign = "?", "window unknown", "$text-muted", "?"
    window = limits.context if limits is not None else None
    if limits is not None and window:
        share = f"{'' if sure else '~'}{percent(100 * usage.total / window)}"
        budget = usage.budget if current else make_budget(limits, BudgetSettings())
        if budget.max_input is not None and (over := usage.total - budget.max_input) > 0:
            tokens = tokens_exact(over, "exact" if sure else "estimated")
            verdict, style, sign = f"{tokens} would have to go", "$text-error", "✗"
        elif budget.max_input is not None:
            verdict, style, sign = "fits", "$text-success", "✓"
    wide = width >= 64
    available = max(8, width - (2 + 9 + 8 + (30 if wide else 2)))
    return Content.assemble(
        ("● " if current else "  ", "$primary"),
        (pad(plain(name), available), "$foreground"),
        (f"{tokens_short(window or None, strip=True):>9}", "$text-muted"),
        (f"{share:>8}", "$foreground"),
        (f"  {verdict}" if wide else f" {sign}", style),
    ).truncate(width, ellipsis=True)

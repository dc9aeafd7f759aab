"""Models to choose from, what is known about them, and whether a conversation fits them. Unknown is "?"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
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
    "always": "its thoughts go back to it",
    "tool_loop": "its thoughts go back between tool steps",
    "never": "its thoughts do not go back",
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
    """Those that match `query`, best first, among equals the last used first."""
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
    present, wide = f"{usage.provider}/{usage.model}", width >= 64
    available = max(8, width - (2 + 9 + 8 + (30 if wide else 2)))
    lines = []
    for name, limits in {**dict(models), present: usage.limits}.items():
        current, window = name == present, (limits.context if limits is not None else None) or None
        source = usage.source if current and usage.source == "exact" else "estimated"
        used, share, over = 0.0, "?", None
        if limits is not None and window:
            used = 100 * usage.total / window
            share = f"{'' if source == 'exact' else '~'}{percent(used)}"
            most = (usage.budget if current else make_budget(limits, BudgetSettings())).max_input
            over = max(0, usage.total - most) if most is not None else None
        if over is None:
            verdict, style, sign = "window unknown", "$text-muted", "?"
        elif over:
            verdict, style, sign = f"{tokens_exact(over, source)} would have to go", "$text-error", "✗"
        else:
            verdict, style, sign = "fits", "$text-success", "✓"
        line = Content.assemble(
            ("● " if current else "  ", "$primary"),
            (pad(plain(name), available), "$foreground"),
            (f"{tokens_short(window, strip=True):>9}", "$text-muted"),
            (f"{share:>8}", "$foreground"),
            (f"  {verdict}" if wide else f" {sign}", style),
        )
        lines.append(((not current, window is None, used, name), line.truncate(width, ellipsis=True)))
    return [line for _, line in sorted(lines, key=itemgetter(0))]

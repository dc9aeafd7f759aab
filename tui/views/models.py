"""Models to choose from, and what is known about them. Unknown is "?"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui.text.match import match
from tui.text.numbers import list_price, tokens_short
from tui.views.view import Menu, Option

if TYPE_CHECKING:  # not before the first frame
    from tui.chat.models.model_list import ListedModel, ModelList
    from tui.chat.turn.session import ChatSession
    from tui.context.usage.limits import ModelLimits
    from tui.providers.base import Capabilities, ModelInfo

_THOUGHTS = {
    "always": "its thoughts go back to it",
    "tool_loop": "its thoughts go back between tool steps",
    "never": "its thoughts do not go back",
}


def window_text(limits: ModelLimits | None) -> str:
    """ "200k", "?"."""
    return tokens_short(limits.context if limits else None, strip=True)


def price_text(price: tuple[float, float] | None) -> str:
    """Dollars per million tokens of input and of output: "$3/$15", "free", "?"."""
    if price is None:
        return "?"
    return f"${list_price(price[0])}/${list_price(price[1])}" if any(price) else "free"


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
    words = [
        *([info.name] if info.name else []),
        *([f"takes {', '.join(takes)}"] if takes else []),
        *([f"takes no {' or '.join(lacks)}"] if lacks else []),
        *([f"{', '.join(unknown)}: ?"] if unknown else []),
        _THOUGHTS[able.reasoning_return],
        "the server counts exactly" if able.count_endpoint else "no counting endpoint",
        *(
            [f"answers up to {tokens_short(info.limits.output, strip=True)}"]
            if info.limits and info.limits.output
            else []
        ),
        *([used] if used else []),
    ]
    return " · ".join(words)


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
    scored = [(match(query, f"{model.full_name} {model.info.name or ''}"), model) for model in models]
    ranked = sorted((pair for pair in scored if pair[0] > 0), key=lambda pair: -pair[0])
    return [
        Option(
            model.full_name,
            model.full_name,
            f"{window_text(model.limits):>6}  {price_text(model.info.price):>12}   {model.limits.detail}",
            model.full_name == present,
            f"{window_text(model.limits):>5} {price_text(model.info.price)}",
        )
        for _, model in ranked
    ]

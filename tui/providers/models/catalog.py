"""What is known of models without their server: a small table of limits, and `genai-prices` for windows and prices.

`genai-prices` is offline data inside its package; loading it takes half a second, so call `price` and `prices_limits`
off the event loop.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from tui.context.usage.limits import UNKNOWN_LIMITS, ModelLimits
from tui.messages import BilledPass, Usage
from tui.providers.base import Provider, ProviderError

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

# (name, window, input limit, longest answer), in tokens; the first match counts. Only models whose input limit is not
# the window, or whose longest answer matters. On OpenAI's models with an input limit it holds however short an answer
# is asked for: it is the window less the longest answer.
_TABLE: tuple[tuple[re.Pattern[str], int, int | None, int], ...] = tuple(
    (re.compile(pattern), context, given, output)
    for pattern, context, given, output in (
        (r"gpt-5(\.\d+)?-chat", 128_000, None, 16_384),
        (r"gpt-5\.[4-9].*(mini|nano)", 400_000, 272_000, 128_000),
        (r"gpt-(5\.[4-9]|6)", 1_050_000, 922_000, 128_000),
        (r"gpt-5", 400_000, 272_000, 128_000),
        (r"gpt-4\.1", 1_047_576, None, 32_768),
        (r"gpt-4o", 128_000, None, 16_384),
        (r"o1-(mini|preview)", 128_000, None, 65_536),
        (r"o[134](-|$)", 200_000, None, 100_000),
        (r"deepseek-(v4|flash)", 1_000_000, None, 384_000),
    )
)

# Our provider names where `genai-prices` has another.
_PRICE_IDS: Mapping[str, str] = {"gemini": "google", "xai": "x-ai", "moonshot": "moonshotai"}
_FREE = frozenset({"local", "demo", "llamacpp", "lmstudio", "vllm", "ollama"})


def table_limits(model: str) -> ModelLimits | None:
    """The built-in limits of a model, also behind a vendor prefix; None for models that are not in the table."""
    name = model.lower().rpartition("/")[2]
    for pattern, context, given, output in _TABLE:
        if pattern.match(name):
            return ModelLimits(context, given, output, "table", "built-in table")
    return None


def prices_limits(provider: str, model: str) -> ModelLimits | None:
    """The window as `genai-prices` has it; None where it has none. Slow at first use."""
    found = _find(provider, model)
    if found is None or not found.context_window:
        return None
    return ModelLimits(found.context_window, source="prices", detail=f"genai-prices, {found.id}")


def price(usage: Usage, provider: str, model: str) -> Decimal | None:
    """What a call cost in US dollars, cached tokens at their own price; None where usage or price is unknown.

    Of a call with several passes each is priced by itself: tiers and models may differ. Models on this machine cost
    nothing. Slow at first use.
    """
    if provider in _FREE and "cloud" not in model:
        return Decimal(0)
    if usage.passes:
        each = [price(_alone(one), provider, one.model or model) for one in usage.passes]
        known = [cost for cost in each if cost is not None]
        return sum(known, Decimal(0)) if len(known) == len(each) else None
    if usage.input_total is None or usage.output_total is None:
        return None
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    counted = PricedUsage(
        input_tokens=usage.input_total,
        output_tokens=usage.output_total,
        cache_read_tokens=usage.input_cached or None,
        cache_write_tokens=usage.input_cache_write or None,
    )
    try:
        return calc_price(counted, model, provider_id=_price_id(provider)).total_price
    except (LookupError, ValueError):  # not listed, or counts that cannot be
        return None


def _alone(one: BilledPass) -> Usage:
    return Usage(one.input_total, one.output_total, one.input_cached, one.input_cache_write)


def dollars(usage: Usage, provider: str, model: str) -> float | None:
    """`price` as it is stored with a call."""
    cost = price(usage, provider, model)
    return None if cost is None else float(cost)


def list_price(provider: str, model: str) -> tuple[Decimal, Decimal] | None:
    """US dollars for a million tokens of input and of output, at the lowest tier; None where unknown.

    Slow at first use.
    """
    given = price(Usage(1000, 0), provider, model)
    output = price(Usage(0, 1000), provider, model)
    return None if given is None or output is None else (given * 1000, output * 1000)


def _price_id(provider: str) -> str:
    return _PRICE_IDS.get(provider, provider)


def _find(provider: str, model: str) -> ModelInfo | None:
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(model, None, _price_id(provider), None)
    except LookupError:
        return None
    return found


def known_limits(provider: str, model: str) -> ModelLimits:
    """The limits by the table or the price data, or unknown: what is known without a server. Slow at first use."""
    found = table_limits(model)
    if found is None and provider not in _FREE:
        found = prices_limits(provider, model)
    return found or UNKNOWN_LIMITS


async def resolve_limits(provider: Provider, model: str) -> ModelLimits:
    """The limits of `model`, in tokens: by the live server, the table, the price data, or unknown.

    What a person set and what a refusal taught goes before all of these (`chat.windows`). A window from one source
    keeps the input and output limits another one knows of the same window. A server that can't be asked is passed by.
    """
    try:
        found = await provider.limits(model)
    except ProviderError:
        found = None
    table = table_limits(model)
    limits = found or table
    if limits is None:
        limits = await asyncio.to_thread(known_limits, provider.name, model)
    if table is not None and table.context == limits.context:
        limits = replace(limits, input=limits.input or table.input, output=limits.output or table.output)
    return limits

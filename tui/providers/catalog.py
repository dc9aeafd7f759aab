"""Prices, and the limits of models, from `genai-prices` and the table in `windows.py`: without asking a server.

`genai-prices` is offline data inside its package; loading it takes half a second, so call `price` and `known_limits`
off the event loop.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping
from dataclasses import replace

from tui.context.usage.limits import UNKNOWN_LIMITS, ModelLimits
from tui.messages import Usage
from tui.providers.windows import TABLE_DATE, table_window

# Our provider names that differ from those of `genai-prices`.
_PRICE_IDS: Mapping[str, str] = {"gemini": "google", "xai": "x-ai", "moonshot": "moonshotai"}
# Words in the provider names that `genai-prices` knows: reading it takes a tenth of a second and 27 MB, for nothing
# where a person's own server has another name.
_LISTED = (
    "amazon", "anthropic", "arcee", "avian", "aws", "azure", "baseten", "bedrock", "cerebras", "cloudflare", "cohere",
    "copilot", "cursor", "databricks", "deepseek", "doubleword", "elevenlabs", "fireworks", "gemini", "google", "groq",
    "huggingface", "litellm", "meta", "minimax", "mistral", "modal", "moonshot", "novita", "openai", "openrouter",
    "ovhcloud", "perplexity", "quicksilverpro", "together", "typesafe", "vertex", "voyage", "x-ai", "xai", "zai",
    "zhipuai",
)  # fmt: skip
# Models missing in `genai-prices`, and models of the same price (OpenAI's pages of both, November 2026).
_PRICED_AS: Mapping[str, str] = {"gpt-6.2-sol": "gpt-6.1-sol", "openai/gpt-6.2-sol": "openai/gpt-6.1-sol"}
# (provider, models, terms, factor of the list price): OpenAI's pages of prices and of fast mode, Anthropic's of prices
# and of fast mode, November 2026. OpenAI calls the same tier "priority" and "fast".
_FACTORS = (
    ("openai", r".*", "flex batch", 0.5),
    ("openai", r"gpt-5\.5.*", "priority fast", 2.5),
    ("openai", r"gpt-5(\.[1246])?(-codex|-mini|-sol|-terra|-luna)?|gpt-6.*", "priority fast", 2),
    ("anthropic", r".*", "batch", 0.5),
    ("anthropic", r".*", "us", 1.1),
    ("anthropic", r"claude-opus-4-[67].*", "fast", 6),
    ("anthropic", r"claude-opus-(4-8|5).*|claude-fable-5-2.*", "fast", 2),
)
_FREE = frozenset({"local", "demo", "llamacpp", "lmstudio", "vllm", "ollama"})


def table_limits(model: str) -> ModelLimits | None:
    """The built-in limits of a model; None if it is not in the table."""
    if (row := table_window(model)) is None:
        return None
    context, output, limited = row
    most_input = context - output if limited else None
    return ModelLimits(context, most_input, output, "table", f"built-in table of {TABLE_DATE}")


def known_limits(provider: str, model: str) -> ModelLimits:
    """Limits known without a server: by the table, by `genai-prices`, or unknown. Slow at first use."""
    if (limits := table_limits(model)) is not None or not is_listed(provider):
        return limits or UNKNOWN_LIMITS
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, listed = get_snapshot().find_provider_model(model, None, _PRICE_IDS.get(provider, provider), None)
    except LookupError:
        return UNKNOWN_LIMITS
    window = listed.context_window
    return ModelLimits(window, source="prices", detail=f"genai-prices, {listed.id}") if window else UNKNOWN_LIMITS


def price(usage: Usage, provider: str, model: str) -> float | None:
    """The cost of a call in US dollars; None if usage or price is unknown.

    Billed figures take precedence over list prices: cached tokens by the lifetime of what was written, and web
    searches. The passes of a call are priced separately, since tiers and models may differ. Models on this machine cost
    nothing. Slow at first use.
    """
    if usage.cost is not None:
        return usage.cost
    if provider in _FREE and "cloud" not in model:
        return 0.0
    if usage.passes:
        costs = []
        for index, one in enumerate(usage.passes):
            billed = Usage(
                one.input_total,
                one.output_total,
                one.input_cached,
                one.input_cache_write,
                cache_write_1h=one.cache_write_1h,
                searches=usage.searches if index == 0 else None,  # reported for the whole call
                terms=usage.terms,
            )
            costs.append(price(billed, provider, one.model or model))
        return None if None in costs else sum(cost or 0.0 for cost in costs)
    if usage.input_total is None or usage.output_total is None or not is_listed(provider):
        return None
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    counted = PricedUsage(
        input_tokens=usage.input_total,
        output_tokens=usage.output_total,
        cache_read_tokens=usage.input_cached or None,
        cache_write_tokens=usage.input_cache_write or None,
        cache_write_1h_tokens=usage.cache_write_1h or None,
        web_searches=usage.searches or None,
    )
    try:
        listed = calc_price(
            counted, _PRICED_AS.get(model, model), provider_id=_PRICE_IDS.get(provider, provider)
        ).total_price
    except (LookupError, ValueError):  # not listed, or impossible counts
        return None
    if unpriced_terms(usage, provider, model):
        return float(listed)
    return float(listed) * math.prod(_factor(provider, model, term) or 1 for term in usage.terms)


def unpriced_terms(usage: Usage, provider: str, model: str) -> str:
    """The terms of a call for which `price` has no factor, so that it is the list price; "" for none."""
    if usage.cost is not None or all(_factor(provider, model, term) is not None for term in usage.terms):
        return ""
    return ", ".join(usage.terms)


def _factor(provider: str, model: str, term: str) -> float | None:
    """The factor of a term on the list price of a model; None if unknown."""
    for of_provider, models, terms, factor in _FACTORS:
        if of_provider == provider and term in terms.split() and re.fullmatch(models, model):
            return factor
    return None


def list_price(provider: str, model: str) -> tuple[float, float] | None:
    """US dollars per million tokens of input and of output, at the lowest tier; None if unknown.

    Slow at first use.
    """
    input_price, output_price = (price(usage, provider, model) for usage in (Usage(1000, 0), Usage(0, 1000)))
    if input_price is None or output_price is None:
        return None
    return round(input_price * 1000, 6), round(output_price * 1000, 6)


def is_listed(provider: str) -> bool:
    """Whether `genai-prices` may know a provider of this name."""
    return any(word in provider.lower() for word in _LISTED)


async def resolve_limits(provider: str, model: str, stated: ModelLimits | None) -> ModelLimits:
    """The limits of `model`, in tokens: those `stated` by the running server, the table, the price data, or unknown.

    A person's setting and limits learned from refusals take precedence over all of these (`ModelFacts`). A window
    from one source keeps the input and output limits that another source has for the same window.
    """
    limits = await asyncio.to_thread(known_limits, provider, model) if stated is None else stated
    table = table_limits(model)
    if table is not None and table.context == limits.context:
        limits = replace(limits, input=limits.input or table.input, output=limits.output or table.output)
    return limits

"""Reads the usage of every dialect into a `Usage`. Pure.

What the numbers include:
- Chat Completions and Responses: the input includes cached tokens, the output includes reasoning. Gemini's and xAI's
  Chat endpoints leave reasoning out of `completion_tokens`; the total shows it.
- Anthropic and Bedrock: the input excludes tokens read from and written to the cache.
- Gemini's own format: thoughts are separate from the candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from tui.messages import BilledPass, Usage
from tui.providers.wire import Json, find_count, object_of, objects_of, text_of

Body: TypeAlias = Mapping[str, Any]


# The fields of all formats, in the order in which they are looked for (see `find_count`).
_INPUT = ("inputTokens", "prompt_eval_count", "prompt_tokens", "input_tokens")  # Bedrock, Ollama, Chat, the others
_OUTPUT = ("outputTokens", "eval_count", "completion_tokens", "output_tokens")
_CACHED = (
    "prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens", "prompt_cache_hit_tokens",
    "cached_tokens", "cache_read_input_tokens", "cacheReadInputTokens",
)  # fmt: skip
_WRITTEN = (
    "prompt_tokens_details.cache_write_tokens", "prompt_tokens_details.cache_creation_tokens",
    "input_tokens_details.cache_write_tokens", "cache_creation_input_tokens", "cacheWriteInputTokens",
)  # fmt: skip
_WRITTEN_1H = "cache_creation.ephemeral_1h_input_tokens"  # the part with a lifetime of an hour
_REASONING = (
    "completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens",
    "output_tokens_details.thinking_tokens", "reasoning_tokens",
)  # fmt: skip
# The input excludes cached tokens in the formats of Bedrock and Anthropic, which have one of these, but not in Chat's.
_BESIDE = {"inputTokens", "outputTokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation"}
_INSIDE = {"prompt_tokens", "completion_tokens"}


def read_usage(body: object) -> Usage | None:
    """The usage reported by a provider, in tokens; None if it reported nothing (or only zeros)."""
    if not isinstance(body, Mapping):
        return None
    if body.keys() & {"promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount"}:
        usage = _gemini(body)
    elif body.keys() & {*_INPUT, *_OUTPUT}:
        passes = objects_of(body.get("iterations"))  # Anthropic's; the numbers beside them add up all passes
        reading = [one for one in passes if one.get("type") in ("message", "fallback_message")]  # the conversation
        usage = replace(_counts(reading[-1] if reading else body), passes=_passes(passes))
    else:
        tokens = body.get("tokens") or body.get("billed_units")  # Cohere's; billed_units exclude the template
        usage = replace(_counts(object_of(tokens)), input_cached=find_count(body, "cached_tokens"))
    if not usage.input_total and not usage.output_total:
        return None
    searches = find_count(body, "server_tool_use.web_search_requests", "num_search_queries")  # the latter: Perplexity
    return replace(usage, cost=_cost(body), searches=searches, terms=read_terms(body))


def read_terms(body: object) -> tuple[str, ...]:
    """The terms of a call, if they are not the usual ones.

    OpenAI: `service_tier`; Anthropic: that, `speed` and `inference_geo`.
    """
    if not isinstance(body, Mapping):
        return ()
    values = (body.get(name) for name in ("service_tier", "speed", "inference_geo"))
    return tuple(value for value in values if isinstance(value, str) and value.lower() not in _USUAL_TERMS)


_USUAL_TERMS = ("", "default", "standard", "auto", "global", "not_available")


def merged_usage(before: Usage | None, after: Usage) -> Usage:
    """What two usage reports of one call say together: the best of each field, `after` being the later one.

    Streams report usage more than once, some of them a placeholder or only what is new. The input becomes much smaller
    only if the later report says why: the server cleared content, or worked in several passes.
    """
    if before is None:
        return after
    later = replace(
        after,
        searches=_most(before.searches, after.searches),
        cost=_first(after.cost, before.cost),
        terms=after.terms or before.terms,
    )
    if after.passes or after.cleared:
        return later
    # What is cached belongs to an input: that of the report with the larger one, or of the later one if the first may
    # have been a guess. Ollama begins its answers in Anthropic's dialect with a quarter of the bytes.
    least = (before.input_total or 0) / (1 if before.input_cached or before.input_cache_write else GUESS)
    chosen, other = (after, before) if (after.input_total or 0) >= least else (before, after)
    return replace(
        later,
        input_total=_first(chosen.input_total, other.input_total),
        output_total=_most(before.output_total, after.output_total),
        input_cached=_first(chosen.input_cached, other.input_cached),
        input_cache_write=_first(chosen.input_cache_write, other.input_cache_write),
        cache_write_1h=_first(chosen.cache_write_1h, other.cache_write_1h),
        reasoning=_most(before.reasoning, after.reasoning),
        cleared=before.cleared,
        cleared_uses=before.cleared_uses,
        passes=before.passes,
    )


GUESS = 4  # times the real input that a guess before an answer may be: characters are taken for tokens

T = TypeVar("T")


def _first(one: T | None, other: T | None) -> T | None:
    return other if one is None else one


def _most(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _cost(body: Body) -> float | None:
    """The cost in US dollars, if the provider reports it (OpenRouter, Perplexity).

    If OpenRouter used another provider's key, that provider's bill is included.
    """
    cost = body.get("cost")
    if isinstance(cost, Mapping):  # Perplexity
        cost = cost.get("total_cost")
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < 1e6:
        return None
    details = body.get("cost_details")
    upstream = details.get("upstream_inference_cost") if isinstance(details, Mapping) else None
    own_key = body.get("is_byok") is True and isinstance(upstream, int | float) and not isinstance(upstream, bool)
    return float(cost) + (float(upstream) if own_key and upstream is not None else 0.0)


def _counts(body: Body) -> Usage:
    usage = Usage(
        find_count(body, *_INPUT),
        find_count(body, *_OUTPUT),
        find_count(body, *_CACHED),
        _written(body),
        find_count(body, *_REASONING),
        cache_write_1h=find_count(body, _WRITTEN_1H),
    )
    beside = _INSIDE.isdisjoint(body) and not _BESIDE.isdisjoint(body)
    apart = "reasoning_tokens" in body  # Perplexity: in no other number
    return _whole(usage, find_count(body, "total_tokens"), beside=beside, apart=apart)


def _written(body: Body) -> int | None:
    """Tokens written to the cache: a server may list them by lifetime alone."""
    written = find_count(body, *_WRITTEN)
    if written is None:
        lifetimes = [find_count(body, "cache_creation.ephemeral_5m_input_tokens"), find_count(body, _WRITTEN_1H)]
        written = sum(filter(None, lifetimes)) if lifetimes != [None, None] else None
    return written


def _whole(usage: Usage, total: int | None, *, beside: bool, apart: bool) -> Usage:
    """`usage` with the cached tokens inside the input and the reasoning inside the output.

    By the dialect, cached tokens stand `beside` the input and reasoning `apart` from the output, unless the numbers
    prove otherwise: the server's `total`, or more cached tokens than input, which were never inside.
    """
    prompt, cache = usage.input_total, (usage.input_cached or 0) + (usage.input_cache_write or 0)
    usage = _with_reasoning_inside(usage, total, cache, apart=apart)
    if prompt is None:
        return replace(usage, input_total=cache or None if beside else None)
    output = usage.output_total
    if cache > prompt:
        beside = True
    elif cache and total is not None and output is not None:
        outputs = (output, output + (usage.reasoning or 0))
        if total - prompt in outputs:
            beside = False
        elif total - prompt - cache in outputs:
            beside = True
    whole = prompt + cache if beside else prompt
    beyond = 0 if total is None else total - whole - (output or 0)
    if beyond <= 0:
        return replace(usage, input_total=whole)
    # Gemini's Chat endpoint shows thoughts in the total alone.
    reasoning = beyond if usage.reasoning is None and output is not None else usage.reasoning
    return replace(usage, input_total=whole, output_total=(output or 0) + beyond, reasoning=reasoning)


def _with_reasoning_inside(usage: Usage, total: int | None, cache: int, *, apart: bool) -> Usage:
    """`usage` with an output that includes its reasoning: more reasoning than output stands beside it.

    Unless it is a detail of the output and the total has no place for it: LiteLLM counts it by another tokenizer.
    """
    output, reasoning = usage.output_total, usage.reasoning or 0
    if output is None or reasoning <= output:
        return usage
    if apart or total is None or total > (usage.input_total or 0) + cache + output:
        return replace(usage, output_total=output + reasoning)
    return replace(usage, reasoning=output)


def _passes(entries: list[Json]) -> tuple[BilledPass, ...]:
    """The passes of a call with more than one (Anthropic: server tools, compaction, an advisor); all are billed."""
    passes = []
    for entry in entries:
        uncached, cached = find_count(entry, "input_tokens"), find_count(entry, "cache_read_input_tokens")
        written = _written(entry)
        passes.append(
            BilledPass(
                input_total=(uncached or 0) + (cached or 0) + (written or 0),
                output_total=find_count(entry, "output_tokens") or 0,
                input_cached=cached or 0,
                input_cache_write=written or 0,
                cache_write_1h=find_count(entry, _WRITTEN_1H) or 0,
                model=text_of(entry.get("model")),
                reasoning=find_count(entry, *_REASONING),
            )
        )
    return tuple(passes) if len(passes) > 1 else ()


def read_edits(context_management: object) -> tuple[int, int] | None:
    """What Anthropic's context editing cleared from the prompt: (tokens, tool uses); None for nothing."""
    applied = objects_of(object_of(context_management).get("applied_edits"))
    tokens = sum(find_count(edit, "cleared_input_tokens") or 0 for edit in applied)
    return (tokens, sum(find_count(edit, "cleared_tool_uses") or 0 for edit in applied)) if tokens else None


def _gemini(body: Body) -> Usage:
    prompt, tool_prompt = find_count(body, "promptTokenCount"), find_count(body, "toolUsePromptTokenCount")
    candidates, thoughts = find_count(body, "candidatesTokenCount"), find_count(body, "thoughtsTokenCount")
    total = None if prompt is None else prompt + (tool_prompt or 0)
    output = None if candidates is None and thoughts is None else (candidates or 0) + (thoughts or 0)
    return Usage(total, output, find_count(body, "cachedContentTokenCount"), None, thoughts)

"""Limits by the order of truth, and prices with the cache taken into account."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from genai_prices.data_snapshot import get_snapshot

from tui.context.usage.limits import ModelLimits
from tui.messages import BilledPass, Usage
from tui.providers.catalog import (
    is_listed,
    known_limits,
    list_price,
    price,
    resolve_limits,
    table_limits,
    unpriced_terms,
)
from tui.providers.windows import TABLE_DATE

PROBED = ModelLimits(131_072, source="probe", detail="the server's model list")


@pytest.mark.parametrize(
    ("provider", "stated", "model", "context", "most_input", "output", "source"),
    [
        ("openai", PROBED, "gpt-5", 131_072, None, None, "probe"),
        ("openai", None, "gpt-5", 400_000, 272_000, 128_000, "table"),
        ("openai", None, "gpt-4o", 128_000, None, 16_384, "table"),
        ("anthropic", None, "claude-sonnet-4-5", 200_000, None, None, "prices"),
        ("somewhere", None, "own-model", None, None, None, "unknown"),
        ("ollama", None, "qwen3", None, None, None, "unknown"),
    ],
)
async def test_order_of_truth(
    provider: str,
    stated: ModelLimits | None,
    model: str,
    context: int | None,
    most_input: int | None,
    output: int | None,
    source: str,
) -> None:
    limits = await resolve_limits(provider, model, stated)
    assert (limits.context, limits.input, limits.output, limits.source) == (context, most_input, output, source)


@pytest.mark.parametrize(
    ("model", "context", "most_input"),
    [
        ("gpt-5.6", 1_050_000, 922_000),
        ("gpt-6.2-sol", 1_050_000, 922_000),
        ("openai/gpt-5-mini", 400_000, 272_000),
        ("GPT-5.4-nano", 400_000, 272_000),
        ("gpt-5-chat-latest", 128_000, None),
        ("o4-mini", 200_000, None),
    ],
)
def test_the_input_limit_is_not_the_window(model: str, context: int, most_input: int | None) -> None:
    limits = table_limits(model)
    assert limits is not None
    assert (limits.context, limits.input) == (context, most_input)
    if limits.input is not None and limits.context is not None and limits.output is not None:
        assert limits.input == limits.context - limits.output


@pytest.mark.parametrize(
    ("model", "context"),
    [
        ("gemini-2.5-pro", 1_048_576),
        ("models/gemini-3-pro-preview", 1_048_576),
        ("gemini-3.1-pro-preview", 1_048_576),
        ("glm-5", 200_000),
        ("z-ai/glm-5.1:free", 200_000),
        ("glm-4.7", 200_000),
        ("gpt-5.3-codex-spark", 128_000),
        ("gpt-5-2025-08-07", 400_000),
    ],
)
def test_windows_that_the_price_data_lacks(model: str, context: int) -> None:
    limits = table_limits(model)
    assert limits is not None and limits.context == context
    assert TABLE_DATE in limits.detail


def test_no_name_has_a_larger_window_by_the_table_than_is_known_of_it() -> None:
    """A pattern that takes in a smaller neighbour is worse than none. The price data rounds by up to 5 %."""
    from genai_prices.data_snapshot import get_snapshot

    windows = [
        (model.id, model.context_window)
        for provider in get_snapshot().providers
        if provider.id in ("openai", "deepseek", "google", "zai", "zhipuai", "openrouter", "azure")
        for model in provider.models
        if model.context_window
    ]
    assert len(windows) > 400
    for name, window in windows:
        limits = table_limits(name)
        assert limits is None or limits.context is None or limits.context <= window * 1.051, name


@pytest.mark.parametrize(
    "model",
    [
        *("claude-opus-5", "llama3", "my-gpt-5-clone", "ogre-3", "o200", "gpt-5.3", "gpt-5-search-api"),
        *("gpt-4o-realtime-preview", "gpt-4o-transcribe", "gpt-5.7", "gpt-7-nova", "gpt-5.4-image-2", "glm-5.9"),
    ],
)
def test_other_models_are_not_in_the_table(model: str) -> None:
    assert table_limits(model) is None


def test_no_provider_of_the_price_data_is_passed_over() -> None:
    def may_be_listed(clause: object) -> bool:
        """Whether a name that `clause` matches has one of the words."""
        if parts := getattr(clause, "or_", None):
            return all(map(may_be_listed, parts))
        if parts := getattr(clause, "and_", None):
            return any(map(may_be_listed, parts))
        return is_listed(str(next(iter(vars(clause).values()))))

    for provider in get_snapshot().providers:
        assert is_listed(provider.id), provider.id
        assert provider.provider_match is None or may_be_listed(provider.provider_match), provider.id


def test_a_server_of_another_name_is_not_looked_for_in_the_price_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    assert known_limits("home", "some-model").context is None
    assert price(Usage(1_000, 10), "home", "some-model") is None


def test_prices_know_windows_and_admit_what_they_do_not_know() -> None:
    limits = known_limits("anthropic", "claude-haiku-4-5")
    assert (limits.context, limits.source) == (200_000, "prices")
    assert known_limits("anthropic", "claude-does-not-exist").context is None
    assert known_limits("my-server", "llama3").context is None


def test_cached_tokens_cost_less_and_written_ones_more() -> None:
    plain = price(Usage(1_000_000, 0), "anthropic", "claude-sonnet-4-5")
    cached = price(Usage(1_000_000, 0, input_cached=1_000_000), "anthropic", "claude-sonnet-4-5")
    written = price(Usage(1_000_000, 0, input_cache_write=1_000_000), "anthropic", "claude-sonnet-4-5")
    assert plain is not None
    assert cached == pytest.approx(plain / 10)
    assert written == pytest.approx(plain * 1.25)


@pytest.mark.parametrize(
    ("usage", "provider", "model", "cost"),
    [
        (Usage(100, 100), "somewhere", "own-model", None),
        (Usage(None, 100), "openai", "gpt-4o", None),
        (Usage(100, None), "openai", "gpt-4o", None),
        (Usage(100, 100), "local", "smollm2-135m", 0.0),
        (Usage(100, 100), "ollama", "qwen3", 0.0),
        (Usage(100, 100), "ollama", "gpt-oss:120b-cloud", None),
        (Usage(10, 10, input_cached=50), "anthropic", "claude-sonnet-4-5", None),
    ],
)
def test_what_is_unknown_has_no_price(usage: Usage, provider: str, model: str, cost: float | None) -> None:
    assert price(usage, provider, model) == cost


def test_each_pass_of_a_call_is_priced_by_itself() -> None:
    """A long context has a price of its own: two passes of 150k are not one of 300k; an advisor is another model."""
    one, model = BilledPass(150_000, 1_000), "claude-sonnet-4-5"
    single = price(Usage(150_000, 1_000), "anthropic", model)
    whole = price(Usage(300_000, 2_000), "anthropic", model)
    twice = price(Usage(150_000, 1_000, passes=(one, one)), "anthropic", model)
    assert single is not None and whole is not None
    assert twice == 2 * single < whole
    advised = replace(one, model="claude-opus-4-5")
    advice = price(Usage(150_000, 1_000), "anthropic", "claude-opus-4-5")
    assert advice is not None and advice != single
    assert price(Usage(150_000, 1_000, passes=(one, advised)), "anthropic", model) == pytest.approx(single + advice)
    unknown = replace(one, model="claude-nobody-knows")
    assert price(Usage(150_000, 1_000, passes=(one, unknown)), "anthropic", model) is None


@pytest.mark.parametrize(
    "conditions",
    [Usage(0, 0, terms=("fast",)), Usage(0, 0, searches=3), Usage(0, 0, terms=("batch", "us"), searches=2)],
    ids=str,
)
def test_what_is_billed_of_one_pass_is_billed_of_several(conditions: Usage) -> None:
    model = "claude-opus-5"
    half = BilledPass(1_000, 500, input_cache_write=400, cache_write_1h=300)
    whole = replace(conditions, input_total=2_000, output_total=1_000, input_cache_write=800, cache_write_1h=600)
    cost = price(whole, "anthropic", model)
    assert cost is not None
    assert price(replace(conditions, passes=(half, half)), "anthropic", model) == pytest.approx(cost)


def test_list_prices() -> None:
    assert list_price("openai", "gpt-5") == (1.25, 10.0)
    assert list_price("local", "smollm2-135m") == (0.0, 0.0)
    assert list_price("somewhere", "own-model") is None


def test_the_bill_of_the_provider_goes_before_list_prices() -> None:
    assert price(Usage(100, 100, cost=0.0125), "openrouter", "openrouter/auto") == 0.0125
    assert price(Usage(None, None, cost=0.5), "somewhere", "own-model") == 0.5
    assert price(Usage(100, 100), "openrouter", "openrouter/auto") is None


def test_what_is_written_for_an_hour_and_what_is_searched_for_has_its_own_price() -> None:
    model = "claude-opus-5"
    short = price(Usage(1_000_000, 0, input_cache_write=1_000_000), "anthropic", model)
    long = price(Usage(1_000_000, 0, input_cache_write=1_000_000, cache_write_1h=1_000_000), "anthropic", model)
    assert (short, long) == (6.25, 10.0)
    plain, searched = (price(Usage(1000, 0, searches=count), "anthropic", model) for count in (None, 3))
    assert plain is not None and searched is not None and searched - plain == pytest.approx(0.03)


@pytest.mark.parametrize(
    ("provider", "model", "terms", "factor", "left_out"),
    [
        ("openai", "gpt-5", (), 1, ""),
        ("openai", "gpt-5", ("flex",), 0.5, ""),
        ("openai", "gpt-6.1-sol", ("batch",), 0.5, ""),
        ("openai", "gpt-5", ("priority",), 2, ""),
        ("openai", "gpt-5.5", ("fast",), 2.5, ""),
        ("openai", "gpt-4o", ("priority",), 1, "priority"),
        ("openai", "gpt-5", ("us",), 1, "us"),
        ("anthropic", "claude-opus-5", ("us",), 1.1, ""),
        ("anthropic", "claude-opus-5", ("fast",), 2, ""),
        ("anthropic", "claude-opus-5", ("batch", "us"), 0.55, ""),
        ("anthropic", "claude-opus-5", ("priority", "us"), 1, "priority, us"),
        ("anthropic", "claude-sonnet-5", ("flex",), 1, "flex"),
    ],
)
def test_terms_change_the_price_or_it_is_called_the_list_price(
    provider: str, model: str, terms: tuple[str, ...], factor: float, left_out: str
) -> None:
    plain = price(Usage(1000, 1000), provider, model)
    usage = Usage(1000, 1000, terms=terms)
    assert plain is not None and price(usage, provider, model) == pytest.approx(plain * factor)
    assert unpriced_terms(usage, provider, model) == left_out
    assert unpriced_terms(replace(usage, cost=1.0), provider, model) == ""


def test_a_model_that_is_too_new_for_the_price_data_has_the_price_of_its_page() -> None:
    usage = Usage(100_000, 1_000, input_cached=50_000)
    assert price(usage, "openai", "gpt-6.2-sol") == pytest.approx(0.115)

"""The readings behind failures of other clients, one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.messages import BilledPass, Usage
from tui.providers.usage_reading import GUESS, merged_usage, read_usage


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        pytest.param(
            {
                "input_tokens": 8,
                "output_tokens": 1,
                "cache_read_input_tokens": 102_000,
                "cache_creation_input_tokens": 0,
            },
            Usage(102_008, 1, 102_000, 0),
            id="anthropic leaves the cache out",
        ),
        pytest.param(
            {
                "input_tokens": 10,
                "cache_creation_input_tokens": 48_000,
                "cache_read_input_tokens": 0,
                "output_tokens": 5,
            },
            Usage(48_010, 5, 0, 48_000),
            id="what is written to the cache is input too",
        ),
        pytest.param(
            {"inputTokens": 20_000, "outputTokens": 7, "cacheReadInputTokens": 580_000, "cacheWriteInputTokens": 0},
            Usage(600_000, 7, 580_000, 0),
            id="bedrock",
        ),
        pytest.param(
            {"prompt_tokens": 100_000, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 90_000}},
            Usage(100_000, 5, 90_000),
            id="openai has the cache inside",
        ),
        pytest.param(
            {"prompt_tokens": 26, "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 2}},
            Usage(26, 3, reasoning=2),
            id="reasoning is a part of the output",
        ),
        pytest.param(
            {"promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 100, "totalTokenCount": 115},
            Usage(10, 105, reasoning=100),
            id="gemini thoughts stand beside",
        ),
        pytest.param(
            {"prompt_tokens": 20, "completion_tokens": 198, "total_tokens": 623},
            Usage(20, 603, reasoning=405),
            id="gemini's chat endpoint hides thoughts in the total",
        ),
        pytest.param(
            {
                "prompt_tokens": 12,
                "completion_tokens": 8,
                "total_tokens": 320,
                "completion_tokens_details": {"reasoning_tokens": 300},
            },
            Usage(12, 308, reasoning=300),
            id="xai",
        ),
        pytest.param(
            {"prompt_tokens": 12, "completion_tokens": 8, "total_tokens": 20, "reasoning_tokens": 300},
            Usage(12, 308, reasoning=300),
            id="perplexity bills reasoning that is in no other number",
        ),
        pytest.param(
            {
                "prompt_tokens": 12,
                "completion_tokens": 310,
                "total_tokens": 322,
                "completion_tokens_details": {"reasoning_tokens": 318},
            },
            Usage(12, 310, reasoning=310),
            id="litellm counts reasoning by another tokenizer",
        ),
        pytest.param(
            {"prompt_tokens": 50, "completion_tokens": 8, "prompt_tokens_details": {"cached_tokens": 200}},
            Usage(250, 8, 200),
            id="more cached than prompt: it was left out",
        ),
        pytest.param(
            {
                "prompt_tokens": 100,
                "completion_tokens": 9,
                "prompt_cache_hit_tokens": 64,
                "prompt_cache_miss_tokens": 36,
            },
            Usage(100, 9, 64),
            id="deepseek",
        ),
        pytest.param({"prompt_eval_count": 26, "eval_count": 298}, Usage(26, 298), id="ollama"),
        pytest.param({"prompt_tokens": "26", "completion_tokens": 3.0}, Usage(26, 3), id="numbers as text and floats"),
        pytest.param({"input_tokens": 5, "output_tokens": 6}, Usage(5, 6), id="responses names without details"),
        pytest.param(
            {
                "input_tokens": 180_100,
                "output_tokens": 950,
                "cache_read_input_tokens": 0,
                "iterations": [
                    {"type": "compaction", "input_tokens": 180_000, "output_tokens": 900},
                    {
                        "type": "message",
                        "input_tokens": 100,
                        "cache_read_input_tokens": 900,
                        "output_tokens": 50,
                        "output_tokens_details": {"thinking_tokens": 20},
                    },
                    {
                        "type": "advisor_message",
                        "input_tokens": 7_000,
                        "output_tokens": 9,
                        "model": "big",
                        "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 30},
                    },
                ],
            },
            Usage(
                1_000,
                50,
                900,
                reasoning=20,
                passes=(
                    BilledPass(180_000, 900),
                    BilledPass(1_000, 50, 900, reasoning=20),
                    BilledPass(7_050, 9, 0, 50, 30, "big"),
                ),
            ),
            id="the context is the last pass that saw it",
        ),
        pytest.param(
            {
                "prompt_tokens": 10_430,
                "completion_tokens": 9,
                "total_tokens": 10_439,
                "prompt_tokens_details": {"cached_tokens": 10_404},
            },
            Usage(10_430, 9, 10_404),
            id="by the total the cache is inside",
        ),
        pytest.param(
            {
                "prompt_tokens": 4_000,
                "completion_tokens": 9,
                "total_tokens": 7_009,
                "prompt_tokens_details": {"cached_tokens": 3_000},
            },
            Usage(7_000, 9, 3_000),
            id="by the total the cache stands beside a larger prompt",
        ),
        pytest.param(
            {
                "prompt_tokens": 4_000,
                "completion_tokens": 9,
                "total_tokens": 7_309,
                "prompt_tokens_details": {"cached_tokens": 3_000},
                "completion_tokens_details": {"reasoning_tokens": 300},
            },
            Usage(7_000, 309, 3_000, reasoning=300),
            id="by the total cache and reasoning stand beside",
        ),
        pytest.param(
            {
                "input_tokens": 4_000,
                "output_tokens": 9,
                "total_tokens": 7_009,
                "input_tokens_details": {"cached_tokens": 2_500, "cache_write_tokens": 500},
            },
            Usage(7_000, 9, 2_500, 500),
            id="responses: by the total the cache stands beside",
        ),
        pytest.param(
            {"input_tokens": 26, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 10_404}},
            Usage(10_430, 9, 10_404),
            id="responses: more cached than input",
        ),
        pytest.param(
            {"input_tokens": 26, "output_tokens": 9, "total_tokens": 131, "input_tokens_details": {}},
            Usage(26, 105, reasoning=96),
            id="responses: a total that holds more has reasoning",
        ),
        pytest.param(
            {
                "input_tokens": 10_430,
                "output_tokens": 9,
                "total_tokens": 10_439,
                "cache_read_input_tokens": 10_404,
                "cache_creation_input_tokens": 0,
            },
            Usage(10_430, 9, 10_404, 0),
            id="anthropic: by the total the cache is inside",
        ),
        pytest.param(
            {"input_tokens": 26, "output_tokens": 9, "total_tokens": 35, "cache_read_input_tokens": 10_404},
            Usage(10_430, 9, 10_404),
            id="anthropic: a total without the cache, which is larger, says nothing",
        ),
        pytest.param({}, None, id="empty"),
        pytest.param(None, None, id="null"),
        pytest.param({"total_tokens": 9}, None, id="a total alone says nothing"),
        pytest.param(
            {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, None, id="nothing but zeros is nothing"
        ),
        pytest.param({"prompt_tokens": None, "completion_tokens": True}, None, id="no numbers"),
    ],
)
def test_reading(body: Any, usage: Usage | None) -> None:
    assert read_usage(body) == usage


counts = st.none() | st.integers(0, 10**7)


FIELDS = ("input_tokens", "output_tokens", "prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens")
CACHE_FIELDS = ("cached_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@given(
    st.dictionaries(st.sampled_from(FIELDS + CACHE_FIELDS), counts),
    st.dictionaries(st.sampled_from(["cached_tokens", "cache_write_tokens"]), counts),
)
def test_no_reading_is_negative_and_the_parts_fit_the_whole(body: dict[str, Any], details: dict[str, Any]) -> None:
    usage = read_usage(body | {"prompt_tokens_details": details, "input_tokens_details": details})
    if usage is not None:
        assert usage.input_total is None or usage.input_total >= (usage.input_cached or 0) >= 0
        assert usage.output_total is None or usage.output_total >= (usage.reasoning or 0)
        if usage.input_total is not None:
            assert (usage.input_cached or 0) + (usage.input_cache_write or 0) <= usage.input_total


@pytest.mark.parametrize(
    ("extra", "usage"),
    [
        ({"cost": 0.0125}, Usage(9, 2, cost=0.0125)),
        ({"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.02}}, Usage(9, 2, cost=0.021)),
        ({"cost": 0.001, "cost_details": {"upstream_inference_cost": 0.02}}, Usage(9, 2, cost=0.001)),
        ({"cost": {"total_cost": 0.006}}, Usage(9, 2, cost=0.006)),
        ({"cost": True}, Usage(9, 2)),
        ({"cost": -1}, Usage(9, 2)),
        ({"server_tool_use": {"web_search_requests": 3}}, Usage(9, 2, searches=3)),
        ({"service_tier": "flex"}, Usage(9, 2, terms=("flex",))),
        ({"service_tier": "standard", "speed": "fast", "inference_geo": "us"}, Usage(9, 2, terms=("fast", "us"))),
        ({"service_tier": "default", "inference_geo": "not_available"}, Usage(9, 2)),
    ],
)
@pytest.mark.parametrize("dialect", ["chat", "anthropic"])
def test_what_changes_the_bill(extra: dict[str, Any], usage: Usage, dialect: str) -> None:
    body = (
        {"prompt_tokens": 9, "completion_tokens": 2} if dialect == "chat" else {"input_tokens": 9, "output_tokens": 2}
    )
    assert read_usage(body | extra) == usage


def test_cache_writes_are_told_apart_by_their_lifetime() -> None:
    body = {"input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 0}
    split = {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20}
    read = read_usage(body | {"cache_creation": split})
    assert read == Usage(31, 2, 0, 30, cache_write_1h=20)
    del body["cache_creation_input_tokens"]  # listed by lifetime alone
    assert read_usage(body | {"cache_creation": split}) == read
    assert read_usage(body | {"cache_creation": {"ephemeral_5m_input_tokens": 30}}) == Usage(31, 2, 0, 30)
    passes = [{"type": "message", **body, "cache_creation": split}] * 2
    read = read_usage(body | {"iterations": passes})
    assert read is not None and [one.input_cache_write for one in read.passes] == [30, 30]


@pytest.mark.parametrize(
    ("parts", "usage"),
    [
        pytest.param([Usage(10_430, 1, 10_404), Usage(26, 9)], Usage(10_430, 9, 10_404), id="a poorer one later"),
        pytest.param([Usage(1_000, 50, reasoning=9), Usage(1, 1)], Usage(1_000, 50, reasoning=9), id="worse later"),
        pytest.param([Usage(100, 1), Usage(5_000, 9)], Usage(5_000, 9), id="a placeholder first"),
        pytest.param([Usage(2_000, 0), Usage(1_400, 9)], Usage(1_400, 9), id="a guess first"),
        pytest.param([Usage(2_000, 0), Usage(1_400, 9, 900)], Usage(1_400, 9, 900), id="a guess, then the cache"),
        pytest.param([Usage(2_000, 0, 1_500), Usage(500, 9)], Usage(2_000, 9, 1_500), id="the rest of the cache later"),
        pytest.param([Usage(5_000, None), Usage(None, 9)], Usage(5_000, 9), id="each a half"),
        pytest.param([Usage(26, 1), Usage(10_430, 9, 10_404, 0)], Usage(10_430, 9, 10_404, 0), id="the cache later"),
        pytest.param([Usage(900, 9), Usage(900, 9, cost=0.5)], Usage(900, 9, cost=0.5), id="the bill later"),
        pytest.param([Usage(900, 9, terms=("us",)), Usage(900, 10)], Usage(900, 10, terms=("us",)), id="the terms"),
        pytest.param(
            [Usage(9_000, 1), Usage(4_000, 9, cleared=5_000, cleared_uses=2)],
            Usage(4_000, 9, cleared=5_000, cleared_uses=2),
            id="cleared content is a correction",
        ),
        pytest.param(
            [Usage(9_000, 90), Usage(4_000, 9, passes=(BilledPass(9_000, 90), BilledPass(4_000, 9)))],
            Usage(4_000, 9, passes=(BilledPass(9_000, 90), BilledPass(4_000, 9))),
            id="another pass is a correction",
        ),
    ],
)  # fmt: skip
def test_of_all_parts_of_a_call_the_best_of_each_field_counts(parts: list[Usage], usage: Usage) -> None:
    merged: Usage | None = None
    for part in parts:
        merged = merged_usage(merged, part)
    assert merged == usage


amounts = st.none() | st.integers(0, 10**6)


@given(st.lists(st.builds(Usage, amounts, amounts, amounts, amounts, amounts), min_size=1))
def test_no_later_part_takes_anything_away(parts: list[Usage]) -> None:
    merged: Usage | None = None
    for part in parts:
        merged = merged_usage(merged, part)
    assert merged is not None
    for name in ("output_total", "reasoning"):
        values = [value for part in parts if (value := getattr(part, name)) is not None]
        assert getattr(merged, name) == max(values, default=None)
    inputs = [part.input_total for part in parts if part.input_total is not None]
    assert merged.input_total in inputs or (merged.input_total is None and not inputs)
    assert (merged.input_total or 0) * GUESS ** (len(parts) - 1) >= max(inputs, default=0)

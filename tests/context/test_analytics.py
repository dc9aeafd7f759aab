from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from tui.context.analytics import CallRecord, accuracy_over_time, by_day, by_model, by_provider, totals
from tui.messages import Usage

DAY = 86_400.0
CALLS = [
    CallRecord("openai", "gpt-5", 0.0, "success", 1_010, "estimated", Usage(1_000, 50, 200, reasoning=10), 2.0, 0.01),
    CallRecord("openai", "gpt-5", DAY, "success", 990, "delta", Usage(1_000, 70), 4.0, 0.02),
    CallRecord("openai", "gpt-6", DAY, "failed", 500, "delta", None, 9.0),
    CallRecord("local", "smollm2", DAY + 3_600 * 23, "success", 100, "delta", Usage(None, 20)),
    CallRecord("local", "smollm2", 2 * DAY, "pending", 100, "delta"),
]


def test_unknown_is_left_out_and_never_zero() -> None:
    whole = totals(CALLS)
    assert (whole.calls, whole.pending, whole.failed) == (5, 1, 1)
    assert (whole.input_tokens, whole.cached_tokens, whole.output_tokens, whole.reasoning_tokens) == (
        2_000,
        200,
        140,
        10,
    )
    assert whole.cost == pytest.approx(0.03)
    assert whole.median_seconds == 3.0
    local = by_provider(CALLS)["local"]
    assert (local.input_tokens, local.cost, local.median_abs_error_percent, local.median_seconds) == (None,) * 4


def test_groups() -> None:
    assert list(by_provider(CALLS)) == ["openai", "local"]
    assert {name: found.calls for name, found in by_model(CALLS).items()} == {
        "local/smollm2": 2,
        "openai/gpt-5": 2,
        "openai/gpt-6": 1,
    }
    assert [(day, found.calls) for day, found in by_day(CALLS).items()] == [
        ("1970-01-01", 1),
        ("1970-01-02", 3),
        ("1970-01-03", 1),
    ]
    east = timezone(timedelta(hours=2))
    assert [found.calls for found in by_day(CALLS, east).values()] == [1, 2, 2]


def test_errors_over_time() -> None:
    assert totals(CALLS).bias_percent == pytest.approx(0.0)
    assert totals(CALLS).median_abs_error_percent == pytest.approx(1.0)
    points = accuracy_over_time(reversed(CALLS), window=1)
    assert [(point.at, point.error_percent) for point in points] == [(0.0, 1.0), (DAY, -1.0)]


def test_an_estimated_usage_is_no_actual() -> None:
    guess = CallRecord("p", "m", 0.0, "success", 5, "delta", Usage(5, 5, source="estimated"))
    assert guess.actual is None
    assert guess.error_percent is None
    assert CallRecord("p", "m", 0.0, "success", 5, "delta", Usage(0, 0)).actual is None

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.context.usage.limits import (
    UNKNOWN_LIMITS,
    BudgetSettings,
    ModelLimits,
    Percent,
    Tokens,
    make_budget,
)
from tui.context.usage.usage import divide

some = st.none() | st.integers(-10, 2_000_000)
limits = st.builds(ModelLimits, context=some, input=some, output=some)
settings = st.builds(
    BudgetSettings,
    reserve_output=st.integers(-5, 200_000),
    compaction=st.none() | st.floats(-10, 150, allow_nan=False).map(Percent) | st.integers(-10, 3_000_000).map(Tokens),
    rolling=st.booleans(),
)


@given(limits, settings, st.integers(0, 3_000_000), some)
def test_the_window_is_shared_out_without_rest(
    window: ModelLimits, chosen: BudgetSettings, total: int, max_output: int | None
) -> None:
    budget = make_budget(window, chosen, max_output)
    space = divide(total, budget)
    if budget.context is None:
        assert (space.free, space.over, space.reserve, space.buffer, space.until_compaction) == (None,) * 5
        return
    numbers = (space.reserve, space.buffer, space.free, space.over)
    assert all(number is not None and number >= 0 for number in numbers)
    reserve, buffer, free, over = (number or 0 for number in numbers)
    assert total + reserve + buffer + free - over == budget.context
    assert budget.max_input is not None
    assert (over > 0) == (total > budget.max_input) == (not budget.fits(total))
    assert budget.context - budget.max_input == budget.reserved_output
    if budget.compaction_at is not None:
        assert 0 <= budget.compaction_at <= budget.max_input


@pytest.mark.parametrize(
    ("window", "chosen", "most", "threshold"),
    [
        (ModelLimits(200_000), BudgetSettings(), 184_000, 156_400),
        (ModelLimits(400_000, input=272_000, output=128_000), BudgetSettings(), 272_000, 231_200),
        (ModelLimits(16_384), BudgetSettings(reserve_output=32_000), 12_288, 10_444),
        (ModelLimits(65_536, output=4_096), BudgetSettings(), 61_440, 52_224),
        (ModelLimits(200_000), BudgetSettings(compaction=Percent(70.0)), 184_000, 128_800),
        (ModelLimits(200_000), BudgetSettings(compaction=Tokens(50_000)), 184_000, 50_000),
        (ModelLimits(200_000), BudgetSettings(compaction=None), 184_000, None),
        (ModelLimits(200_000), BudgetSettings(rolling=True), 184_000, None),
    ],
)
def test_budgets(window: ModelLimits, chosen: BudgetSettings, most: int, threshold: int | None) -> None:
    budget = make_budget(window, chosen)
    assert (budget.max_input, budget.compaction_at) == (most, threshold)


def test_an_unknown_window_is_unknown_and_everything_fits() -> None:
    budget = make_budget(UNKNOWN_LIMITS, BudgetSettings())
    assert budget.max_input is None and budget.fits(10**9)


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_the_check_before_sending(tokens: int, context: int) -> None:
    budget = make_budget(ModelLimits(context), BudgetSettings())
    assert budget.fits(tokens) == (tokens <= (budget.max_input or 0))

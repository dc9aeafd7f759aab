"""Numbers as a person reads them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.text.numbers import age, bytes_short, duration, money, percent, share, spent, tokens_exact, tokens_short


@pytest.mark.parametrize(
    ("tokens", "short", "stripped"),
    [
        (None, "?", "?"),
        (0, "0", "0"),
        (840, "840", "840"),
        (1_000, "1.0k", "1k"),
        (52_100, "52.1k", "52.1k"),
        (99_949, "99.9k", "99.9k"),
        (99_950, "100k", "100k"),
        (200_000, "200k", "200k"),
        (999_500, "1.00M", "1M"),
        (1_048_576, "1.05M", "1.05M"),
        (12_000_000, "12M", "12M"),
        (-31_000, "-31.0k", "-31k"),
    ],
)
def test_tokens_in_short(tokens: int | None, short: str, stripped: str) -> None:
    assert tokens_short(tokens) == short
    assert tokens_short(tokens, strip=True) == stripped


@given(st.integers(0, 99_000_000))
def test_a_short_figure_takes_at_most_five_cells(tokens: int) -> None:
    assert len(tokens_short(tokens)) <= 5


def test_exact_tokens_have_separators_and_unknown_is_a_question_mark() -> None:
    assert tokens_exact(52_100) == "52,100"
    assert tokens_exact(None) == "?"


@pytest.mark.parametrize(
    ("value", "text"),
    [(26.05, "26 %"), (99.7, "99 %"), (100.0, "100 %"), (247.4, "247 %"), (None, "?"), (math.nan, "?"), (-3.0, "0 %")],
)
def test_percentages(value: float | None, text: str) -> None:
    assert percent(value) == text


def test_a_share_of_nothing_is_no_figure() -> None:
    assert share(10, None) == ""
    assert share(10, 0) == ""
    assert share(40_100, 200_000) == "20.1 %"


def test_money_shows_small_change() -> None:
    assert [money(value) for value in (None, math.inf, 0.0, 0.42, 0.0031)] == ["", "", "$0.00", "$0.42", "$0.0031"]


def test_of_a_cost_that_is_not_known_in_full_what_is_known_is_said() -> None:
    assert [spent(0.0, 0.0), spent(0.42, 0.42), spent(None, 0.42), spent(None, 0.0)] == [
        "$0.00",
        "$0.42",
        "$0.42+?",
        "?",
    ]


def test_times_and_sizes() -> None:
    assert [duration(seconds) for seconds in (6.9, 65, 7_800)] == ["6 s", "1 m 05 s", "2 h 10 m"]
    gaps = (5, 300, 10_800, 172_800, 3_700_000)
    assert [age(10_000_000 - gap, 10_000_000) for gap in gaps] == ["now", "5 m", "3 h", "2 d", "6 w"]
    assert age(0, 100) == ""
    assert [bytes_short(size) for size in (900, 12_400, 1_048_576)] == ["900 B", "12 kB", "1.0 MB"]

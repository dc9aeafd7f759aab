"""Numbers as a person reads them."""

from __future__ import annotations

import math
import re
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.text.numbers import (
    Cost,
    age,
    change_percent,
    clock_time,
    duration,
    money,
    percent,
    plural,
    price_per_million,
    share,
    signed_percent,
    size_text,
    spent,
    timestamp,
    tokens_exact,
    tokens_labelled,
    tokens_short,
    total_of,
)

_UNITS = {"": 1, "k": 1e3, "M": 1e6, "B": 1e9}
_BYTES = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_SECONDS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}


def read_tokens(text: str) -> float:
    written = re.fullmatch(r"([\d.]+)([kMB]?)", text)
    assert written is not None
    return float(written[1]) * _UNITS[written[2]]


def read_size(text: str) -> float:
    number, unit = text.split(" ")
    return float(number) * _BYTES[unit]


def read_duration(text: str) -> int:
    words = text.split(" ")
    return sum(int(count) * _SECONDS[unit] for count, unit in zip(words[::2], words[1::2], strict=True))


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
        (1_050_000, "1.05M", "1.05M"),
        (12_000_000, "12.0M", "12M"),
        (123_400_000, "123M", "123M"),
        (999_500_000, "1.00B", "1B"),
        (-31_000, "-31.0k", "-31k"),
    ],
)
def test_tokens_in_short(tokens: int | None, short: str, stripped: str) -> None:
    assert tokens_short(tokens) == short
    assert tokens_short(tokens, strip=True) == stripped


@given(st.integers(0, 99_000_000_000))
def test_a_short_figure_takes_at_most_five_cells_and_reads_back_within_its_rounding(tokens: int) -> None:
    text = tokens_short(tokens)
    assert len(text) <= 5
    assert abs(read_tokens(text) - tokens) <= 0.051 * max(tokens, 1)
    assert read_tokens(tokens_short(tokens, strip=True)) == read_tokens(text)
    if tokens >= 10_000:
        assert abs(read_tokens(text) - tokens) <= 0.0051 * tokens


@given(st.lists(st.integers(0, 99_000_000_000) | st.integers(990, 1_100_000), min_size=2))
def test_more_is_never_written_as_less(numbers: list[int]) -> None:
    numbers.sort()
    for read, write in ((read_tokens, tokens_short), (read_size, size_text), (read_duration, duration)):
        values = [read(write(number)) for number in numbers]
        assert values == sorted(values)
    ages = [0.0, *(60.0 * number for number in numbers)]
    units = ["now", "min", "h", "d", "wk"]
    ranks = [units.index(age(1e12, 1e12 + gap).split(" ")[-1]) for gap in ages]
    assert ranks == sorted(ranks)


def test_exact_tokens_have_separators_and_unknown_is_a_question_mark() -> None:
    assert tokens_exact(52_100) == "52,100"
    assert tokens_exact(None) == "?"


def test_a_count_says_when_it_was_not_measured() -> None:
    assert tokens_labelled((2_345, "measured")) == tokens_labelled((2_345, "counted")) == "2.3k tok"
    assert tokens_labelled((2_345, "estimated")) == "~2.3k tok"
    assert tokens_labelled((None, "estimated")) == tokens_labelled(None) == ""
    assert tokens_labelled((0, "measured")) == "0 tok"
    sources = ("exact", "measured", "counted", "derived", "delta", "estimated", "mixed")
    assert [tokens_exact(1_000, source)[:-5] for source in sources] == ["", "", "", "", "~", "~", "~"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(26.05, "26 %"), (99.7, "99 %"), (100.0, "100 %"), (247.4, "247 %"), (None, "?"), (math.nan, "?"), (-3.0, "0 %")],
)
def test_percentages(value: float | None, text: str) -> None:
    assert percent(value) == text


@given(st.floats(0, 99.99999), st.integers(0, 3))
def test_what_is_below_100_percent_is_never_written_as_100(value: float, digits: int) -> None:
    assert float(percent(value, digits=digits).removesuffix(" %")) < 100


def test_a_share_of_nothing_is_no_figure() -> None:
    assert share(10, None) == ""
    assert share(10, 0) == ""
    assert share(40_100, 200_000) == "20.1 %"
    assert share(199_999, 200_000) == "99.9 %"


def test_differences_have_a_sign_and_zero_has_no_minus() -> None:
    assert change_percent(121_400, 18_300) == "-85 %"
    assert change_percent(0, 10) == ""
    texts = [signed_percent(value, digits=digits) for value, digits in ((0.12, 1), (-84.7, 0), (-0.01, 1), (0.0, 0))]
    assert texts == ["+0.1 %", "-85 %", "+0.0 %", "+0 %"]


def test_money_shows_small_change() -> None:
    values = (None, math.inf, 0.0, 0.42, 0.0031, 0.00999, 0.00001, 1_234.5)
    assert [money(value) for value in values] == [
        "", "", "$0.00", "$0.42", "$0.0031", "$0.01", "<$0.0001", "$1,234.50"
    ]  # fmt: skip


@pytest.mark.slow
@given(st.floats(1e-12, 1e9))
def test_a_cost_is_never_written_as_nothing(dollars: float) -> None:
    assert any(digit in "123456789" for digit in money(dollars))
    assert any(digit in "123456789" for digit in price_per_million(dollars))


def test_list_prices_are_short_and_never_in_powers_of_ten() -> None:
    texts = [price_per_million(price) for price in (0, 3.0, 0.25, 0.00001, 12_345.0)]
    assert texts == ["free", "3", "0.25", "<0.0001", "12,345"]


def test_of_a_cost_that_is_not_known_in_full_what_is_known_is_said() -> None:
    costs = (Cost(0.0, 0.0), Cost(0.42, 0.42), Cost(None, 0.42), Cost(None, 0.0))
    assert [spent(cost) for cost in costs] == ["$0.00", "$0.42", "$0.42+?", "?"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.2, "<1 s"),
        (6.9, "6 s"),
        (59.9, "59 s"),
        (61, "1 min 1 s"),
        (300, "5 min"),
        (3_601, "1 h"),
        (7_800, "2 h 10 min"),
        (2 * 86_400 + 3_600, "2 d 1 h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_what_takes_less_than_a_minute_can_have_a_decimal() -> None:
    spans = (0, 0.42, 12.3, 59.96, 60, 75.3)
    texts = ["0.0 s", "0.4 s", "12.3 s", "59.9 s", "1 min", "1 min 15 s"]
    assert [duration(seconds, tenths=True) for seconds in spans] == texts


@given(st.integers(0, 10_000_000))
def test_a_duration_reads_back_within_its_smaller_unit(seconds: int) -> None:
    lost = seconds - read_duration(duration(seconds))
    assert 0 <= lost < (1 if seconds < 3_600 else 60 if seconds < 2 * 86_400 else 3_600)


def test_ages() -> None:
    gaps = (-5, 5, 300, 10_800, 172_800, 3_700_000)
    assert [age(10_000_000 - gap, 10_000_000) for gap in gaps] == ["now", "now", "5 min", "3 h", "2 d", "6 wk"]
    assert age(0, 100) == ""


def test_times_get_shorter_the_nearer_they_are() -> None:
    now = datetime(2026, 11, 27, 15, 0).timestamp()
    times = [datetime(2026, 11, 27, 9, 5), datetime(2026, 11, 3, 9, 5), datetime(2025, 11, 3, 9, 5)]
    assert [clock_time(at.timestamp(), now) for at in times] == ["09:05", "3 Nov 09:05", "3 Nov 2025"]
    assert clock_time(0.0, now) == ""
    assert timestamp(times[1].timestamp()) == "2026-11-03 09:05"


def test_sizes() -> None:
    sizes = (12, 999, 4_213, 9_949, 9_950, 42_130, 999_499, 999_600, 1_048_576, 999_500_000, 2_500_000_000_000)
    assert [size_text(size) for size in sizes] == [
        "12 B", "999 B", "4.2 kB", "9.9 kB", "10 kB", "42 kB", "999 kB", "1.0 MB", "1.0 MB", "1.0 GB", "2.5 TB"
    ]  # fmt: skip


@given(st.integers(0, 10**15))
def test_a_size_is_never_a_thousand_of_a_unit_that_has_a_larger_one(size: int) -> None:
    text = size_text(size)
    assert not text.startswith("1000") or text.endswith("TB")
    assert abs(read_size(text) - size) <= 0.051 * size


def test_plurals() -> None:
    assert (plural(1, "line"), plural(0, "line"), plural(2_100, "line")) == ("1 line", "0 lines", "2,100 lines")


def test_a_total_with_an_unknown_part_is_unknown() -> None:
    assert total_of([]) == 0
    assert total_of([1, 2]) == 3
    assert total_of([1, None]) is None
    assert tokens_exact(None, "estimated") == tokens_short(None, "estimated") == "?"

"""The ledger of requests."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat.test_usage_report import CALL, NOON
from tui.chat.store.calls import CallRow
from tui.text.numbers import clock_time
from tui.views.ledger import (
    HEADS,
    accuracy_line,
    ledger_entry,
    ledger_rows,
    request_details,
    request_head,
    request_line,
    verdict_text,
)

DOUBTED = replace(
    CALL,
    verdict="doubted",
    verdict_reason="100 tokens again, although about 900 were added",
    window=64_000,
    left_out=38_400,
    answered_by="x-2026-11-01",
)


def test_a_line_has_what_was_predicted_reported_and_why_it_is_not_believed() -> None:
    heads, line = ledger_rows([DOUBTED])
    assert heads == HEADS
    assert line[1:] == (
        *("1,010", "1,100", "1,000", "", "64,000", "38,400", "anthropic/x-2026-11-01"),
        "not believed: 100 tokens again, although about 900 were added",
    )
    entry = ledger_entry(DOUBTED)
    assert (entry["predicted"], entry["reported"], entry["verdict"]) == (1_010, 1_000, "doubted")
    assert (entry["left_out"], entry["answered_by"], entry["error_percent"]) == (38_400, "x-2026-11-01", None)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (replace(CALL, verdict="confirmed"), "believed"),
        (replace(CALL, verdict="believed"), "believed, not confirmed yet"),
        (
            replace(CALL, verdict="hidden", verdict_reason="the server adds about 700 tokens of its own"),
            "believed: the server adds about 700 tokens of its own",
        ),
        (
            replace(CALL, verdict="cut", verdict_reason="the server read 3,000 of about 4,550 tokens"),
            "not believed: the server read 3,000 of about 4,550 tokens",
        ),
        (replace(CALL, kind="compaction"), "compaction: its own call"),
        (replace(CALL, status="pending", usage_source=None), "not answered yet"),
        (replace(CALL, status="failed", usage_source=None, error="refused"), "failed: refused"),
        (replace(CALL, status="failed", usage_source="estimated", error="cancelled"), "stopped by you: estimated"),
        (replace(CALL, usage_source="estimated"), "nothing reported: estimated"),
        (CALL, "believed"),
    ],
)
def test_the_verdict_on_a_report(row: CallRow, text: str) -> None:
    assert verdict_text(row) == text


def test_what_was_not_reported_is_unknown() -> None:
    _, line = ledger_rows([replace(CALL, usage_source="estimated", verdict=None)])
    assert line[3:5] == ("?", "")


def test_a_line_at_100_and_at_40_columns() -> None:
    row = replace(CALL, verdict="confirmed", left_out=0)
    when = clock_time(NOON, NOON)
    wide = request_line(127, row, 100, NOON).plain
    assert wide == f" 127   {when}      1,010 ±90           1,000   +1.0 %   believed · 800 from the cache · $0.25"
    later = request_line(127, row, 100, NOON + 3 * 86_400).plain
    assert later.startswith(" 127  20 Nov      1,010 ±90           1,000")
    assert request_line(127, row, 40, NOON).plain == " 127      1,000   +1.0 %   believed · 8…"
    assert request_head(100).plain.index("reported") == wide.index("1,000") - 3


@given(
    st.integers(1, 10**4 - 1),
    st.integers(0, 10**8),
    st.none() | st.integers(0, 10**8),
    st.integers(30, 130),
    st.booleans(),
)
def test_no_line_is_wider_than_its_list(
    number: int, predicted: int, reported: int | None, width: int, cut: bool
) -> None:
    row = replace(
        CALL, predicted=predicted, upper_bound=predicted + 9, input_total=reported, verdict="cut" if cut else None
    )
    assert request_line(number, row, width, NOON).cell_length <= width
    assert request_head(width).cell_length <= width


def test_first_calls_and_following_ones_are_scored_apart() -> None:
    first = replace(CALL, source="estimated", predicted=1_031)
    rows = [first, CALL, replace(CALL, predicted=1_004), DOUBTED]
    assert accuracy_line(rows) == (
        "following calls: 95 % within 1.0 %   ·   first calls: 95 % within 3.1 %   ·   1 of 4 requests not believed"
    )
    assert accuracy_line([]) == ""


def test_the_details_of_a_request() -> None:
    text = request_details(DOUBTED)
    for part in (
        "1,010 tokens, at most 1,100",
        "1,000 of them measured, 10 estimated",
        "1,000 tokens of input",
        "800 from the cache, 0 written to it",
        "200 tokens, 50 of them reasoning",
        "not believed: 100 tokens again",
        "38,400 tokens, by rolling context",
        "$0.25",
    ):
        assert part in text

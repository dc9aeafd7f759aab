"""The ledger of requests."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat.test_usage_report import CALL, NOON
from tests.messages import assistant, measured, tool, user
from tests.usages import make_usage
from tui.chat.store.calls import CallRow
from tui.context.usage.rows import MessageTokens
from tui.messages import Attachment, Message, Reasoning, ToolCall, ToolResult
from tui.text.numbers import clock_time
from tui.views.context_lists import (
    CALL_HEADS,
    Call,
    accuracy_line,
    calls_of,
    chart_lines,
    ledger_entry,
    ledger_rows,
    legend,
    listed,
    message_line,
    message_lines,
    preview,
    request_details,
    request_head,
    request_line,
    verdict_text,
    why_not,
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
    assert heads == CALL_HEADS
    assert line[1:] == (
        *("~1,010", "1,100", "1,000", "", "64,000", "~38,400", "anthropic/x-2026-11-01"),
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
    assert wide == f" 127   {when}     ~1,010 ±90           1,000   +1.0 %   believed · 800 from the cache · $0.25"
    later = request_line(127, row, 100, NOON + 3 * 86_400).plain
    assert later.startswith(" 127  20 Nov     ~1,010 ±90           1,000")
    assert request_line(127, row, 40, NOON).plain == " 127      1,000   +1.0 %   believed"
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
        "~1,010 tokens, at most 1,100",
        "1,000 of them measured, ~10 estimated",
        "1,000 tokens of input",
        "800 from the cache, 0 written to it",
        "200 tokens, 50 of them reasoning",
        "not believed: 100 tokens again",
        "~38,400 tokens, by rolling context",
        "$0.25",
    ):
        assert part in text


def test_a_request_that_nobody_measured_has_no_number_without_a_mark() -> None:
    stopped = replace(CALL, usage_source="estimated", error="cancelled", input_cached=None, reasoning=None)
    text = request_details(stopped)
    assert "predicted   ~1,010 tokens" in text
    assert "reported    ? tokens of input" in text
    assert "output      ~200 tokens, ? of them reasoning" in text
    assert "~$0.25" in text and "~$0.25" in request_line(1, stopped, 100, NOON).plain
    assert ledger_entry(stopped)["usage_source"] == "estimated"
    assert ledger_rows([replace(stopped, source="exact")])[1][1] == "1,010"


USAGE = make_usage(1_550, messages={"m1": MessageTokens(900, "derived"), "m2": MessageTokens(150, "estimated")})


@pytest.mark.parametrize(("left_out", "says"), [("trimmed", "Rolling context"), ("compacted", "A summary"), ("", "")])
def test_why_a_message_cannot_be_pinned_or_left_out(left_out: str, says: str) -> None:
    assert why_not(left_out, pin=False).startswith(says)
    assert bool(why_not(left_out, pin=True)) == bool(says)
    assert not why_not("excluded", pin=False)  # x includes it again


def test_what_is_not_sent_costs_nothing_and_says_why() -> None:
    messages = [user("hi", id="m1"), measured("ho", id="m2"), user("gone", id="m3")]
    lines = message_lines(messages, USAGE, not_sent={"m1": "excluded", "m2": "trimmed"})
    assert [(line.tokens, line.left_out) for line in lines] == [(None, "excluded"), (150, "trimmed"), (None, "")]
    assert listed(lines) == "3, 2 not sent any more"
    by_size = message_lines(messages, USAGE, not_sent={}, by_size=True)
    assert [line.key for line in by_size] == ["m1", "m2", "m3"]


@pytest.mark.parametrize("width", [36, 60, 110])
def test_a_line_fits_and_marks_what_is_estimated(width: int) -> None:
    message = measured("a long answer " * 40, id="m2")
    line = message_lines([message], USAGE, not_sent={}, pinned={"m2"})[0]
    text = message_line(line, width, 100_000.0).plain
    assert len(text) <= width
    assert "◆" in text and "~150" in text


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (user("two\nlines"), "two lines"),
        (tool(ToolResult("c", "read_file", "text\x1b[31m")), "read_file: text [31m"),
        (assistant(" ", ToolCall("c", "read_file", '{"a":1}')), 'calls read_file {"a":1}'),
        (assistant(Reasoning("hmm")), "thought: hmm"),
        (user(Attachment("image", "cat.png", "image/png", "0", 1)), "cat.png"),
        (assistant(status="cancelled"), "(cancelled)"),
        (user(), "(empty)"),
    ],
)
def test_the_beginning_of_a_message(message: Message, text: str) -> None:
    assert preview(message) == text


def test_calls_are_read_from_the_answers() -> None:
    messages = [
        user("q"),
        measured("a", tokens=(1_000, 100), id="a"),
        measured("b", tokens=(2_000, 100), id="b"),
        user("s", kind="summary"),
        measured("c", tokens=(500, 50), id="c"),
        measured("d", tokens=(300, 50), id="d"),
        assistant("no usage"),
    ]
    calls = calls_of(messages)
    assert [call.tokens for call in calls] == [1_100, 2_100, 550, 350]
    assert [call.event for call in calls] == ["", "", "compacted", "trimmed"]
    believed = calls_of(messages, [replace(DOUBTED, message=messages[-2].id, predicted=900)])
    assert believed[-1:] == [Call(950, source="estimated")]
    assert legend(calls, 8_000) == "4 calls   now 350, most 2.1k   window 8k   ▼ compacted   ▽ trimmed"


@pytest.mark.parametrize("count", [1, 3, 80, 2_000])
@pytest.mark.parametrize("width", [20, 100])
def test_the_chart_keeps_its_size_and_its_peak(count: int, width: int) -> None:
    calls = [Call(100 + 10 * (n % 7), "compacted" if n == count // 2 else "") for n in range(count)]
    lines = chart_lines(calls, width, 8, window=None)
    assert len(lines) == 8
    assert all(line.cell_length <= width for line in lines)
    assert "▼" in lines[-1].plain
    assert any("█" in line.plain for line in lines)


def test_the_scale_is_the_window_where_a_fair_part_is_used() -> None:
    assert chart_lines([Call(90_000)], 60, 8, window=200_000)[0].plain.lstrip().startswith("200k ┤")
    assert chart_lines([Call(900)], 60, 8, window=200_000)[0].plain.lstrip().startswith("1k ┤")

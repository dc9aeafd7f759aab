"""What each message costs, listed."""

from __future__ import annotations

import pytest

from tests.usages import assistant, make_usage, user
from tui.context.usage.rows import MessageTokens
from tui.messages import Attachment, Message, Reasoning, Text, ToolCall, ToolResult
from tui.views.context_messages import listed, message_line, message_lines, preview, why_not
from tui.views.ledger import Call, calls_of, chart_lines, legend

USAGE = make_usage(1_550, messages={"m1": MessageTokens(900, "derived"), "m2": MessageTokens(150, "estimated")})


@pytest.mark.parametrize(("left_out", "says"), [("trimmed", "Rolling context"), ("compacted", "A summary"), ("", "")])
def test_why_a_message_cannot_be_pinned_or_left_out(left_out: str, says: str) -> None:
    assert why_not(left_out, pin=False).startswith(says)
    assert bool(why_not(left_out, pin=True)) == bool(says)
    assert not why_not("excluded", pin=False)  # x includes it again


def test_what_is_not_sent_costs_nothing_and_says_why() -> None:
    messages = [user("hi", "m1"), assistant("ho", "m2"), user("gone", "m3")]
    lines = message_lines(messages, USAGE, not_sent={"m1": "excluded", "m2": "trimmed"})
    assert [(line.tokens, line.left_out) for line in lines] == [(None, "excluded"), (150, "trimmed"), (None, "")]
    assert listed(lines) == "3 messages, 2 not sent any more"
    by_size = message_lines(messages, USAGE, not_sent={}, by_size=True)
    assert [line.id for line in by_size] == ["m1", "m2", "m3"]


@pytest.mark.parametrize("width", [36, 60, 110])
def test_a_line_fits_and_marks_what_is_estimated(width: int) -> None:
    message = assistant("a long answer " * 40, "m2")
    line = message_lines([message], USAGE, not_sent={}, pinned={"m2"})[0]
    text = message_line(line, width, 100_000.0).plain
    assert len(text) <= width
    assert "◆" in text and "~150" in text


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (user("two\nlines"), "two lines"),
        (Message("tool", (ToolResult("c", "read_file", "text\x1b[31m"),)), "read_file: text [31m"),
        (Message("assistant", (Text(" "), ToolCall("c", "read_file", '{"a":1}'))), 'calls read_file {"a":1}'),
        (Message("assistant", (Reasoning("hmm"),)), "thought: hmm"),
        (Message("user", (Attachment("image", "cat.png", "image/png", "0", 1),)), "cat.png"),
        (Message("assistant", (), status="cancelled"), "(cancelled)"),
        (Message("user", ()), "(empty)"),
    ],
)
def test_the_beginning_of_a_message(message: Message, text: str) -> None:
    assert preview(message) == text


def test_calls_are_read_from_the_answers() -> None:
    messages = [
        user("q"),
        assistant("a", tokens=(1_000, 100)),
        assistant("b", tokens=(2_000, 100)),
        Message("user", (Text("s"),), kind="summary"),
        assistant("c", tokens=(500, 50)),
        assistant("d", tokens=(300, 50)),
        Message("assistant", (Text("no usage"),)),
    ]
    calls = calls_of(messages)
    assert [call.tokens for call in calls] == [1_100, 2_100, 550, 350]
    assert [call.event for call in calls] == ["", "", "compacted", "trimmed"]
    believed = calls_of(messages, {messages[-2].id: 900})
    assert believed[-1:] == [Call(950)]
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

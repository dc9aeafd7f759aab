from __future__ import annotations

import json
from dataclasses import replace
from math import isfinite

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.context.helpers import MODEL, BrokenTokenizer, call, estimator, registered, request, result, thinking
from tests.messages import assistant, user
from tui.context.estimate.calibration import Calibration
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.usage.limits import UNKNOWN_LIMITS, BudgetSettings, ModelLimits
from tui.context.usage.usage import (
    ContextUsage,
    LeftOut,
    Space,
    calculate_context_usage,
    usage_to_json,
)
from tui.messages import Attachment, Message, Request, SystemSection, ToolSchema, Usage
from tui.text.labels import ROW_NAMES
from tui.text.numbers import apportion

WINDOW = ModelLimits(200_000, source="probe")


pytestmark = pytest.mark.usefixtures("word_tokenizer")


def usage_of(
    outgoing: Request,
    hybrid: HybridTokenEstimator | None = None,
    limits: ModelLimits = WINDOW,
    settings: BudgetSettings | None = None,
) -> ContextUsage:
    return calculate_context_usage(
        outgoing, estimator=hybrid or estimator(), limits=limits, settings=settings or BudgetSettings()
    )


def everything() -> Request:
    """A request with something in every row."""
    messages = (
        user("summary of before " * 9, kind="summary", id="0"),
        user("look at this please", id="1"),
        user(Attachment("image", "a.png", "image/png", "0" * 64, 9, 640, 480), "here", id="2"),
        replace(thinking("let me think about it", "I will look"), id="3"),
        assistant("looking", call("c", "look", '{"at": "it"}'), id="4"),
        replace(result("c", "what was found " * 20), id="5"),
    )
    system = (SystemSection("system", "prompt", "be kind " * 30), SystemSection("memory", "NOTES.md", "a note " * 12))
    tools = (
        ToolSchema("search", "find things", "{}", "files"),
        ToolSchema("look", "look at things", '{"type":"object"}'),
        ToolSchema("read", "read things", "{}", "files"),
    )
    return Request("p", MODEL, messages, system, tools, session="s")


def check(usage: ContextUsage) -> None:
    """The invariants of `ContextUsage`."""
    assert sum(row.tokens for row in usage.rows) == usage.total
    for row in usage.rows:
        assert row.tokens >= 0
        assert all(item.tokens >= 0 for item in row.items)
        if row.items:
            assert sum(item.tokens for item in row.items) == row.tokens
    assert usage.upper_bound >= usage.total >= 0
    if usage.limits.context:
        spaces = (usage.space.reserve, usage.space.buffer, usage.space.free, usage.space.over)
        reserve, buffer, free, over = (space if space is not None else -1 for space in spaces)
        assert min(reserve, buffer, free, over) >= 0
        assert usage.total + reserve + buffer + free - over == usage.limits.context
    else:
        assert usage.percent is None and usage.space == Space()


def test_every_kind_of_content_has_its_row() -> None:
    usage = usage_of(everything())
    check(usage)
    assert [row.key for row in usage.rows] == [
        *("system", "memory", "tools", "user", "assistant", "reasoning", "tool_calls", "tool_results"),
        *("attachments", "summaries"),
    ]
    assert usage.source == "estimated"
    assert {row.source for row in usage.rows} == {"estimated"}
    tools = next(row for row in usage.rows if row.key == "tools")
    assert [(item.name, item.group) for item in tools.items] == [
        ("look", "built-in"),
        ("search", "files"),
        ("read", "files"),
    ]
    assert [item.ref for item in next(row for row in usage.rows if row.key == "user").items] == ["1", "2"]


def test_measured_messages_are_shown_as_such() -> None:
    hybrid = estimator()
    outgoing = everything()
    hybrid.record(outgoing, assistant("done", id="6"), Usage(3_000, 20), learn=True, at=0.0)
    grown = replace(outgoing, messages=(*outgoing.messages, assistant("done", id="6"), user("thanks", id="7")))
    usage = usage_of(grown, hybrid)
    check(usage)
    rows = {row.key: row for row in usage.rows}
    assert {item.ref: item.source for item in rows["assistant"].items}["6"] == "measured"
    assert rows["unattributed"].tokens > 0.01 * usage.total  # 3,000 is more than all that is seen
    assert (usage.basis.last_input, usage.basis.last_output, usage.basis.new_message_count) == (3_000, 20, 1)
    assert usage.basis.new_messages == usage.total - 3_020


def test_estimates_larger_than_the_total_are_scaled_down_and_said() -> None:
    hybrid = estimator()
    outgoing = request(user("hi"), system="word " * 5_000)
    hybrid.record(outgoing, assistant("a"), Usage(1_000, 4), learn=False, at=0.0)
    usage = usage_of(outgoing, hybrid)
    check(usage)
    assert usage.total == 1_000
    assert [row.key for row in usage.rows] == ["system", "user"]
    assert all(row.tokens > 0 for row in usage.rows)
    assert len(usage.warnings) == 1
    assert "scaled down" in usage.warnings[0]


def test_an_unknown_window_shows_tokens_and_nothing_made_up() -> None:
    for context in (None, 0, -1):
        usage = usage_of(everything(), limits=replace(UNKNOWN_LIMITS, context=context))
        assert usage.total > 0
        assert (
            usage.percent,
            usage.space.free,
            usage.space.over,
            usage.space.reserve,
            usage.space.until_compaction,
        ) == (None,) * 5


def test_looking_changes_nothing() -> None:
    hybrid = estimator()
    outgoing = everything()
    hybrid.record(outgoing, assistant("done"), Usage(3_000, 40), learn=True, at=0.0)
    first = usage_to_json(usage_of(outgoing, hybrid))
    assert all(usage_to_json(usage_of(outgoing, hybrid)) == first for _ in range(10))


def test_the_json_is_as_fixed() -> None:
    usage = usage_of(everything(), settings=BudgetSettings(rolling=True))
    data = usage_to_json(replace(usage, left_out=LeftOut(2, 900), warnings=("odd",)))
    assert list(data) == [
        *("session", "provider", "model", "window", "budget", "rolling"),
        *("total", "upper_bound", "source", "percent", "basis", "rows"),
        *("output_reserve", "compaction_buffer", "free", "over", "until_compaction", "left_out", "warnings"),
    ]
    assert data["left_out"] == {"messages": 2, "tokens": 900}
    assert (data["rolling"], data["warnings"]) == (True, ["odd"])
    assert data["budget"] == {"max_input": 184_000, "reserved_output": 16_000, "compaction_at": None}
    assert json.loads(json.dumps(data)) == data
    window, basis, rows = data["window"], data["basis"], data["rows"]
    assert window == {"context": 200_000, "input": None, "output": None, "source": "probe", "detail": ""}
    assert isinstance(basis, dict)
    assert list(basis) == [
        *("last_input", "last_output", "last_output_sent_back", "new_messages", "new_message_count"),
        *("counted", "cleared", "compactions", "compaction_saved"),
        *("last_error_percent", "error_p95_percent", "measured_calls", "factor", "classes"),
    ]
    assert isinstance(rows, list)
    assert [row["key"] for row in rows] == [key for key in ROW_NAMES if key in {row["key"] for row in rows}]
    assert all(list(row) == ["key", "name", "tokens", "source", "items"] for row in rows)
    tools = next(row["items"] for row in rows if row["key"] == "tools")
    assert {item["name"]: item["server"] for item in tools} == {"look": None, "search": "files", "read": "files"}
    assert sum(row["tokens"] for row in rows) == data["total"]
    assert all(sum(item["tokens"] for item in row["items"]) == row["tokens"] for row in rows if row["items"])


def test_items_asked_for_later_still_add_up() -> None:
    hybrid = estimator()
    first = usage_of(request(user("one two"), assistant("three"), user("four five six")), hybrid)
    usage_of(request(user("something else")), hybrid)
    usage_of(request(user("one two"), assistant("three"), user("four five six"), assistant("seven")), hybrid)
    check(first)
    assert first == usage_of(request(user("one two"), assistant("three"), user("four five six")))


def test_a_failed_count_is_shown_not_zero() -> None:
    with registered("broken-1", BrokenTokenizer()):
        usage = usage_of(replace(everything(), model="broken-1"))
    check(usage)
    assert all(row.tokens > 0 for row in usage.rows)


@given(st.integers(0, 10**9), st.lists(st.floats(0, 1e9, allow_nan=False), min_size=1, max_size=50))
@example(5, [0.0, 0.0])
def test_sharing_out_is_exact_and_fair(total: int, weights: list[float]) -> None:
    shares = apportion(total, weights)
    assert (sum(shares), len(shares)) == (total, len(weights))
    assert all(share >= 0 for share in shares)
    whole = sum(weights)
    if whole > 0:
        assert all(abs(s - total * w / whole) <= 1 + 1e-6 * total for s, w in zip(shares, weights, strict=True))


texts = st.text(alphabet="ab \n", max_size=40)
messages = st.one_of(
    texts.map(user),
    texts.map(assistant),
    st.builds(lambda text: assistant(text, call("1", "look", text)), texts),
    st.builds(lambda text: result("1", text), texts),
    st.builds(thinking, texts, texts),
    st.builds(lambda text: user(text, kind="summary"), texts),
)


@given(
    st.lists(messages, max_size=6),
    st.text(alphabet="ab ", max_size=60),
    st.integers(0, 3),
    st.integers(0, 400),
    st.integers(0, 200),
    st.sampled_from([None, 10, 300, 4_000]),
    st.sampled_from([BudgetSettings(), BudgetSettings(rolling=True), BudgetSettings(compaction=None)]),
)
def test_rows_always_add_up(
    conversation: list[Message],
    system: str,
    tools: int,
    measured: int,
    output: int,
    context: int | None,
    settings: BudgetSettings,
) -> None:
    hybrid = estimator()
    offered = tuple(ToolSchema(f"t{n}", "a b c", "{}") for n in range(tools))
    outgoing = request(*conversation, system=system, tools=offered)
    check(usage_of(outgoing, hybrid, ModelLimits(context), settings))
    hybrid.record(outgoing, assistant("reply"), Usage(measured, output), learn=True, at=0.0)
    for messages_then in (
        conversation,
        [*conversation, assistant("reply")],
        [*conversation, assistant("reply"), user("more of it")],
        conversation[1:],
    ):
        check(usage_of(request(*messages_then, system=system, tools=offered), hybrid, ModelLimits(context), settings))


@given(
    st.lists(messages, max_size=4),
    st.integers(0, 4_000),
    st.integers(0, 3_000),
    st.none() | st.lists(st.integers(0, 900), min_size=5, max_size=5).map(sorted),
    st.booleans(),
)
def test_rows_add_up_whatever_was_learned_and_counted(
    conversation: list[Message], measured: int, hidden: int, counts: list[int] | None, agreed: bool
) -> None:
    hybrid = estimator()
    outgoing = request(*conversation, system="a b c d", tools=(ToolSchema("t", "a b c", "{}"),))
    if counts is not None:
        hybrid.note_parts(outgoing, counts)
    hybrid.calibrations.put("p", MODEL, Calibration().learn_excess(hidden, sure=agreed))
    check(usage_of(outgoing, hybrid))
    for session in ("one", "two"):
        again = replace(outgoing, session=session, messages=(*outgoing.messages, user(session)))
        hybrid.record(again, assistant("reply"), Usage(measured, 9), learn=True, at=0.0)
        usage = usage_of(again, hybrid)
        check(usage)
        assert all(isfinite(row.tokens) for row in usage.rows)
        assert {row.key for row in usage.rows} <= set(ROW_NAMES)


def test_the_text_of_a_number_makes_no_items() -> None:
    """asyncio makes a text of every result: with thousands of messages that took longer than the number."""
    usage = usage_of(request(user("one two"), assistant("three")))
    assert "LazyItems()" in repr(usage)
    assert len(next(row.items for row in usage.rows if row.key == "user")) == 1
    assert "one two" in repr(usage)

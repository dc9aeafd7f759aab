from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.chat.store.codec import PartsBuilder, dump_events, load_events
from tui.messages import Reasoning, Refusal, Text, ToolCall, Usage
from tui.providers.base import (
    ReasoningDelta,
    ReasoningMeta,
    RefusalDelta,
    StreamEnd,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)


def build(*events: StreamEvent) -> PartsBuilder:
    builder = PartsBuilder("p", "m")
    for event in events:
        builder.apply(event)
    return builder


def test_interleaved_blocks_stay_apart_and_in_order_of_their_start() -> None:
    builder = build(
        ReasoningDelta("a", 0),
        TextDelta("t"),
        ToolCallDelta(2, "c", "read", "{"),
        ReasoningDelta("b", 0),
        ToolCallDelta(2, arguments="}"),
        ReasoningMeta(0, signature="s"),
    )
    assert builder.parts() == (Reasoning("ab", "p", "m", signature="s"), Text("t"), ToolCall("c", "read", "{}"))


def test_reasoning_that_only_its_closing_tag_tells_is_told_apart_from_the_answer() -> None:
    text = TextDelta("Let me see.\n</think>\n\nYes.")
    assert build(text).parts() == (Reasoning("Let me see.", "p", "m"), Text("Yes."))
    assert build(TextDelta("\n</think>\nYes.")).parts() == (Text("Yes."),)
    assert build(ReasoningDelta("Hm", 0), text).parts()[1] == Text(text.text)  # the server separates it


def test_text_blocks_open_together_are_told_apart() -> None:
    builder = build(TextDelta("a", 0), TextDelta("x", 1), TextDelta("b", 0), TextDelta("y", 1))
    assert builder.parts() == (Text("ab"), Text("xy"))


def test_redacted_block_without_text_is_kept() -> None:
    assert build(ReasoningMeta(1, redacted="data")).parts() == (Reasoning("", "p", "m", redacted="data"),)


def test_empty_text_and_nameless_calls_are_left_out_and_a_missing_id_is_made() -> None:
    assert build(TextDelta(""), ToolCallDelta(0, arguments="{}")).parts() == ()
    assert build(ToolCallDelta(3, name="f")).parts() == (ToolCall("call_3", "f", ""),)


def test_refusal() -> None:
    assert build(RefusalDelta("I "), RefusalDelta("won't")).parts() == (Refusal("I won't"),)
    assert build(RefusalDelta("I ", "cyber"), RefusalDelta("won't")).parts() == (Refusal("I won't", "cyber"),)


def test_usage_is_overwritten_never_added() -> None:
    builder = build(*(UsageUpdate(Usage(n, n)) for n in range(1, 101)))
    assert builder.usage == Usage(100, 100)


def test_reasoning_tokens_are_shared_out_by_length_and_add_up() -> None:
    builder = build(
        ReasoningDelta("x" * 30, 0),
        ReasoningDelta("y" * 10, 1),
        ReasoningMeta(2, redacted="r"),
        UsageUpdate(Usage(1, 50, reasoning=7)),
    )
    tokens = [part.tokens for part in builder.parts() if isinstance(part, Reasoning)]
    assert sum(t or 0 for t in tokens) == 7
    assert tokens[0] == 5


def test_hidden_reasoning_tokens_go_to_the_first_block() -> None:
    builder = build(
        ReasoningMeta(0, signature="s"), ReasoningMeta(1, redacted="r"), UsageUpdate(Usage(1, 9, reasoning=8))
    )
    assert [part.tokens for part in builder.parts() if isinstance(part, Reasoning)] == [8, 0]
    builder = build(ReasoningDelta("", 0), ReasoningMeta(1, signature="s"), UsageUpdate(Usage(1, 9, reasoning=8)))
    assert [part.tokens for part in builder.parts() if isinstance(part, Reasoning)] == [8]  # an empty block is no part


EVENTS = st.one_of(
    st.builds(TextDelta, st.text(), st.none() | st.integers(0, 2)),
    st.builds(RefusalDelta, st.text()),
    st.builds(ReasoningDelta, st.text(), st.integers(0, 2)),
    st.builds(ReasoningMeta, st.integers(0, 2), signature=st.none() | st.text()),
    st.builds(ToolCallDelta, st.integers(0, 2), st.none() | st.just("id"), st.none() | st.just("f"), st.text()),
    st.builds(UsageUpdate, st.builds(Usage, st.none() | st.integers(0), st.none() | st.integers(0))),
    st.builds(StreamEnd, st.just("stop"), st.text()),
)


@given(st.lists(EVENTS), st.integers(1, 5))
def test_stored_events_rebuild_the_same_message(events: list[StreamEvent], step: int) -> None:
    stored: list[StreamEvent] = []
    for start in range(0, len(events), step):
        stored += load_events(dump_events(events[start : start + step]))
    whole, rebuilt = build(*events), build(*stored)
    assert (rebuilt.parts(), rebuilt.usage, rebuilt.end) == (whole.parts(), whole.usage, whole.end)

"""What rolling context promises for every conversation: pairing, size, pins, identity, stickiness, a stable prefix."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.context.conversations import budget, count, estimate, histories, problems, request, size
from tui.context.reduction.records import NO_TRIM, TrimState, apply_trim
from tui.context.reduction.rolling import ContextOverflowError, PromptResult, Trimmer, build_final_prompt
from tui.messages import Message, Reasoning

windows = st.integers(200, 30_000)


def build(messages: list[Message], max_input: int, **more: Any) -> PromptResult:
    return build_final_prompt(request(messages), estimate, count=count, budget=budget(max_input), **more)


def built(messages: list[Message], max_input: int, **more: Any) -> PromptResult:
    try:
        return build(messages, max_input, **more)
    except ContextOverflowError:
        assume(False)
        raise


@pytest.mark.slow
@given(histories(), windows, st.booleans())
def test_never_over_and_never_unpaired(messages: list[Message], max_input: int, bound: bool) -> None:
    result = built(messages, max_input, prefix_bound=bound)
    sent = result.request.messages
    assert estimate(result.request) == result.tokens <= max_input
    assert problems(sent) == []
    assert sent[-1].id == messages[-1].id


@pytest.mark.slow
@given(histories(), windows)
def test_a_refusal_means_that_the_least_request_does_not_fit_either(messages: list[Message], max_input: int) -> None:
    try:
        build(messages, max_input)
    except ContextOverflowError as error:
        begun = max(i for i, m in enumerate(messages) if m.role == "user")
        last_step = max((i for i, m in enumerate(messages) if m.role == "assistant" and i > begun), default=None)
        least = [messages[begun]] if last_step is None else [messages[begun], messages[last_step]]
        results = sum(len(m.parts) for m in messages[begun:] if m.role == "tool")
        assert size(least) + results * 60 > max_input
        assert error.max_tokens == max_input < error.current_tokens


@pytest.mark.slow
@given(histories(), windows)
def test_untouched_messages_are_the_same_objects(messages: list[Message], max_input: int) -> None:
    result = built(messages, max_input)
    originals = {m.id: m for m in messages}
    for sent in result.request.messages:
        touched = any(cut.message_id == sent.id for cut in result.state.cuts)
        assert touched or sent is originals[sent.id]


@pytest.mark.slow
@given(histories(), windows)
def test_building_again_changes_nothing(messages: list[Message], max_input: int) -> None:
    first = built(messages, max_input)
    again = build(messages, max_input, state=first.state)
    assert again.state is first.state
    assert again.request.messages == first.request.messages
    assert not again.trimmed and not again.untrimmed


@pytest.mark.slow
@given(histories(), windows)
def test_what_is_trimmed_stays_trimmed_as_the_conversation_grows(messages: list[Message], max_input: int) -> None:
    """Only a new trim changes the prefix; each one only adds to what is left out."""
    ends = [i for i, m in enumerate(messages) if m.role in ("user", "tool")]
    state, before = NO_TRIM, tuple[Message, ...]()
    for end in ends:
        if messages[end + 1 : end + 2] and messages[end + 1].role == "tool":
            continue
        try:
            result = build(messages[: end + 1], max_input, state=state)
        except ContextOverflowError:
            continue
        assert state.dropped <= result.state.dropped
        assert {(c.message_id, c.call_id) for c in state.cuts} <= {(c.message_id, c.call_id) for c in result.state.cuts}
        if not result.trimmed:
            assert result.request.messages[: len(before)] == before
        state, before = result.state, result.request.messages


@pytest.mark.slow
@given(histories(), windows, st.data())
def test_pinned_messages_go_out_whole(messages: list[Message], max_input: int, data: st.DataObject) -> None:
    pinned = data.draw(st.sets(st.sampled_from([m.id for m in messages]), max_size=3))
    result = built(messages, max_input, pinned=frozenset(pinned))
    originals = {m.id: m for m in messages}
    sent = {m.id: m for m in result.request.messages}
    assert all(sent[i] is originals[i] for i in pinned)
    assert problems(result.request.messages) == []


@pytest.mark.slow
@given(histories(), windows)
def test_the_last_four_turns_and_their_words_stay_while_they_fit(messages: list[Message], max_input: int) -> None:
    result = built(messages, max_input)
    begins = [i for i, m in enumerate(messages) if m.role == "user"]
    recent = messages[begins[-4] if len(begins) >= 4 else 0 :]
    if size(recent) > max_input:
        return
    assert "last resort" not in result.passes
    assert [m.id for m in result.request.messages if m.id >= recent[0].id] == [m.id for m in recent]


@pytest.mark.slow
@given(histories(), windows)
def test_a_trim_goes_down_to_the_target_or_to_what_is_protected(messages: list[Message], max_input: int) -> None:
    result = built(messages, max_input)
    if result.trimmed and result.tokens > 0.6 * max_input:
        again = Trimmer(messages, count, result.state).trim(result.tokens, max_input)
        assert "last resort" in result.passes or not again


@pytest.mark.slow
@given(histories(), st.sets(st.integers(0, 60)), st.integers(0, 3))
def test_any_state_leaves_the_pairs_whole(messages: list[Message], dropped: set[int], shift: int) -> None:
    """Also one made for another history: of a fork, or of a longer one."""
    ids = frozenset(f"m{i:06d}" for i in dropped)
    shown = apply_trim(messages, TrimState(dropped=ids))
    assert [p for p in problems(shown) if "first message" not in p] == []


@pytest.mark.slow
@given(histories(), windows)
def test_bound_reasoning_never_follows_a_change_it_was_not_made_after(messages: list[Message], max_input: int) -> None:
    result = built(messages, max_input, prefix_bound=True)
    if result.trimmed:
        assert not any(isinstance(p, Reasoning) for m in result.request.messages for p in m.parts)
    else:
        assert result.request.messages == tuple(messages)


@pytest.mark.slow
@given(histories(), windows)
def test_the_state_survives_json(messages: list[Message], max_input: int) -> None:
    state = built(messages, max_input).state
    assert TrimState.from_json(json.loads(json.dumps(state.to_json()))) == state


@settings(max_examples=25)
@given(histories(), windows, st.floats(0.5, 2.0))
def test_counts_that_are_off_still_end_in_a_request_that_fits(
    messages: list[Message], max_input: int, factor: float
) -> None:
    try:
        result = build_final_prompt(
            request(messages),
            lambda r: int(estimate(r) * factor),
            count=count,
            budget=budget(max_input),
        )
    except ContextOverflowError:
        return
    assert int(estimate(result.request) * factor) <= max_input

"""Rolling context where two of its rules meet: what was cut before, what is void already, what is about to be read."""

from __future__ import annotations

from dataclasses import replace

from tests.context.conversations import Talk, budget, count, estimate, request, size
from tui.context.reduction.rolling import Trimmer, build_final_prompt
from tui.context.reduction.trimming import NO_TRIM, Cut, TrimState, apply_trim
from tui.messages import Text, ToolResult


def test_a_result_that_was_cut_to_its_ends_becomes_a_marker_once_it_is_old() -> None:
    talk = Talk()
    talk.user()
    _, (owner,) = talk.step(9_000)
    part = talk.messages[-1].parts[0]
    assert isinstance(part, ToolResult)
    ends = Cut(owner, part.call_id, "\n[cut]\n", head=4_000, tail=4_000)
    for _ in range(7):
        talk.step(1_000)
    cut = TrimState((ends,), frontier=owner)
    tokens = size(apply_trim(talk.messages, cut))
    result = build_final_prompt(request(talk.messages), estimate, count=count, budget=budget(tokens - 500), state=cut)
    [now] = [c for c in result.state.cuts if c.message_id == owner]
    assert (now.head, now.tail) == (0, 0)
    assert now.marker == "[content truncated - 7 steps ago, 9,004 tokens]"
    assert result.freed_tokens == tokens - size(apply_trim(talk.messages, result.state))


def test_reasoning_that_is_void_already_is_not_freed_a_second_time() -> None:
    talk = Talk()
    for _ in range(20):
        talk.user(100)
        talk.assistant(100, reasoning=200)
    talk.user()
    void = replace(NO_TRIM, frontier=talk.messages[-1].id)
    tokens = size(apply_trim(talk.messages, void, prefix_bound=True))
    trimmer = Trimmer(talk.messages, count, void, prefix_bound=True)
    trimmer.trim(tokens, 3_000)
    left = size(apply_trim(talk.messages, trimmer.state(), prefix_bound=True))
    assert left <= 1_800  # the target: were it counted twice, too little would have left


def test_the_step_that_is_about_to_be_read_stays_though_something_stands_behind_it() -> None:
    talk = Talk()
    talk.user()
    for _ in range(6):
        talk.step(800)
    asked, (answered,) = talk.step(900)
    talk.add("user", Text("the date changed"), kind="injected")
    result = build_final_prompt(
        request(talk.messages),
        lambda sent: estimate(sent) + 1_000,  # the rest of the request
        count=count,
        budget=budget(2_100),
    )
    shown = [m.id for m in result.request.messages]
    assert {asked, answered} <= set(shown)
    assert 4 in result.passes


def test_it_goes_on_until_the_next_turns_have_room() -> None:
    """Where leaving out saves less than was thought, one round is not enough to keep the prefix for a while."""
    talk = Talk()
    for _ in range(40):
        talk.turn(user=100, assistant=100)
    limit = 6_000
    result = build_final_prompt(
        request(talk.messages), lambda sent: 3_000 + estimate(sent) // 2, count=count, budget=budget(limit)
    )
    assert result.tokens <= 0.8 * limit


def test_what_can_not_be_made_smaller_goes_out_where_the_estimate_fits_and_only_the_bound_does_not() -> None:
    talk = Talk()
    talk.user(900)
    result = build_final_prompt(
        request(talk.messages), estimate, bound=lambda sent: estimate(sent) + 200, count=count, budget=budget(1_000)
    )
    assert result.request.messages == tuple(talk.messages)
    assert result.tokens == size(talk.messages) <= 1_000


def test_it_does_not_come_back_on_an_estimate_that_forgets_what_left() -> None:
    """The sizes that were noted when it left speak against a guess that all of it is small."""
    talk = Talk()
    for _ in range(12):
        talk.step(1_000)
    small = build_final_prompt(request(talk.messages), estimate, count=count, budget=budget(9_000))
    assert small.trimmed
    again = build_final_prompt(
        request(talk.messages), lambda _: 5_000, count=count, budget=budget(9_000), state=small.state
    )
    assert not again.untrimmed
    assert again.state is small.state


def test_what_was_left_out_is_told_by_the_estimate_not_by_the_most_it_may_be() -> None:
    talk = Talk()
    for _ in range(12):
        talk.step(1_000)
    result = build_final_prompt(
        request(talk.messages), estimate, bound=lambda sent: 2 * estimate(sent), count=count, budget=budget(9_000)
    )
    assert result.trimmed
    assert result.freed_tokens == size(talk.messages) - size(result.request.messages)

"""Rolling context by example: each pass, what it leaves alone, and when it gives up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.context.conversations import HistoryBuilder, budget, count, estimate, problems, request, size
from tui.context.reduction.records import NO_TRIM, Cut, TrimState, apply_trim
from tui.context.reduction.rolling import ContextOverflowError, PromptResult, Trimmer, build_final_prompt
from tui.context.usage.limits import Budget
from tui.messages import Message, Reasoning, Request, Text, ToolCall, ToolResult


def trim(builder: HistoryBuilder, max_input: int, pinned: frozenset[str] = frozenset()) -> PromptResult:
    return build_final_prompt(request(builder.messages), estimate, count=count, budget=budget(max_input), pinned=pinned)


def result_texts(messages: tuple[Message, ...]) -> list[str]:
    return [part.text for m in messages for part in m.parts if isinstance(part, ToolResult)]


def agent(*results: int) -> HistoryBuilder:
    builder = HistoryBuilder()
    builder.user()
    for tokens in results:
        builder.step(tokens)
    return builder


def test_nothing_happens_while_it_fits() -> None:
    builder = agent(*[500] * 10)
    result = trim(builder, size(builder.messages))
    assert (result.state, result.freed_tokens, result.passes) == (NO_TRIM, 0, ())
    assert all(a is b for a, b in zip(apply_trim(builder.messages, NO_TRIM), builder.messages, strict=True))


def test_nothing_happens_where_the_window_is_unknown() -> None:
    builder = agent(*[5000] * 10)
    unknown = Budget(None, None, None, None)
    result = build_final_prompt(request(builder.messages), estimate, count=count, budget=unknown)
    assert result.request.messages == tuple(builder.messages)
    assert result.max_tokens is None


def test_results_older_than_five_steps_become_a_marker_with_age_and_size() -> None:
    builder = agent(*[2300] * 12)
    result = trim(builder, 24_000)
    texts = result_texts(apply_trim(builder.messages, result.state))
    assert texts[0] == "[content truncated - 11 steps ago, 2,304 tokens]"
    assert texts[5] == "[content truncated - 6 steps ago, 2,304 tokens]"
    assert [t for t in texts[6:] if t.startswith("[content")] == []  # five steps ago is not older than five steps
    assert result.passes == ("old results",)


def test_the_marker_never_changes_afterwards() -> None:
    builder = agent(*[2300] * 9)
    first = trim(builder, 16_000)
    before = apply_trim(builder.messages, first.state)
    builder.step(10)
    after = apply_trim(builder.messages, first.state)
    assert after[: len(before)] == before


def test_small_results_and_errors_stay_but_a_large_old_error_is_capped() -> None:
    builder = HistoryBuilder()
    builder.user()
    builder.step(90)
    builder.step(1500, failed=True)
    builder.step(9000, failed=True)
    for _ in range(7):
        builder.step(1000)
    result = trim(builder, 17_000)
    shown = apply_trim(builder.messages, result.state)
    texts = result_texts(shown)
    assert len(texts[0]) == 360
    assert len(texts[1]) == 6000
    assert texts[2].startswith("tttt") and texts[2].endswith("tttt") and "9,004 tokens]" in texts[2]
    assert len(texts[2]) // 4 <= 2000


def test_large_old_arguments_are_capped_and_still_json() -> None:
    builder = HistoryBuilder()
    builder.user()
    builder.step(10, arguments=60_000)
    for _ in range(6):
        builder.step(10)
    result = trim(builder, 10_000)
    shown = apply_trim(builder.messages, result.state)
    assert size(shown) < 1_000
    assert problems(shown) == []  # loads every argument


def test_the_second_pass_takes_younger_results_oldest_first_and_stops_at_the_target() -> None:
    builder = agent(*[2000] * 5)
    result = trim(builder, 8_000)
    texts = result_texts(apply_trim(builder.messages, result.state))
    assert [t.startswith("[content") for t in texts] == [True, True, True, False, False]
    assert result.passes == ("results",)


def test_the_results_the_model_is_about_to_read_stay_whole() -> None:
    builder = agent(2000, 2000, 2000)
    builder.step(1500, 1500)
    result = trim(builder, 5_500)
    texts = result_texts(apply_trim(builder.messages, result.state))
    assert [len(t) for t in texts[3:]] == [6000, 6000]


def test_the_third_pass_takes_whole_turns_and_leaves_the_last_four() -> None:
    builder = HistoryBuilder()
    for _ in range(20):
        builder.turn(user=50, assistant=250)
    builder.user()
    total = size(builder.messages)
    result = trim(builder, total - 100)
    shown = apply_trim(builder.messages, result.state)
    assert result.passes == ("old turns",)
    assert size(shown) <= 0.6 * (total - 100) < size(shown) + 2 * 308
    assert sum(result.state.left_out.values()) == total - size(shown)
    assert shown[-1] is builder.messages[-1]
    tight = trim(builder, 1500)
    recent = apply_trim(builder.messages, tight.state)
    assert sum(m.role == "user" for m in recent) == 4
    assert tight.passes == ("old turns",)


@pytest.mark.parametrize("limit", [950, 1_000, 1_100, 1_200])
def test_recent_turns_that_fit_stay_though_they_are_larger_than_the_target(limit: int) -> None:
    builder = HistoryBuilder()
    for _ in range(20):
        builder.turn(user=50, assistant=250)
    builder.user()
    recent = [m.id for m in builder.messages[-7:]]  # 948 tokens
    result = build_final_prompt(request(builder.messages), estimate, count=count, budget=budget(limit))
    assert [m.id for m in result.request.messages] == recent
    assert result.passes == ("old turns",)


def test_a_message_that_was_refused_leaves_before_older_turns() -> None:
    builder = HistoryBuilder()
    for _ in range(3):
        builder.user(300)
        builder.assistant(300)
    huge = builder.user(20_000)
    builder.user(20)
    result = trim(builder, 4_000)
    assert [m.id for m in result.request.messages] == [m.id for m in builder.messages if m.id != huge]


def test_the_last_turn_is_sent_though_it_was_dropped_when_others_followed() -> None:
    builder = HistoryBuilder()
    for _ in range(4):
        builder.turn(user=50, assistant=600)
    dropped = {m.id: 50 for m in builder.messages[:6]}
    state = TrimState(dropped=frozenset(dropped), left_out=dropped)
    asked_again = builder.messages[:5]  # the last turn is left out by hand, and the answer before it set aside
    result = build_final_prompt(request(asked_again), estimate, count=count, budget=budget(500), state=state)
    assert [m.id for m in result.request.messages if m.id] == [asked_again[-1].id]
    assert asked_again[-1].id not in {*result.state.dropped, *result.state.left_out}


def test_a_turn_leaves_with_its_tool_groups() -> None:
    builder = HistoryBuilder()
    for _ in range(8):
        builder.user(200)
        builder.step(90, 90, apart=True)
        builder.assistant(200)
    builder.user()
    result = trim(builder, 3000)
    shown = apply_trim(builder.messages, result.state)
    assert problems(shown) == []
    assert len(result.state.dropped) == len(builder.messages) - len(shown) > 0


def test_pinned_messages_stay_with_their_group_and_the_beginning_of_their_turn() -> None:
    builder = HistoryBuilder()
    first = builder.user(100)
    builder.assistant(100)
    begun = builder.user(100)
    call, results = builder.step(900)
    builder.assistant(100)
    for _ in range(12):
        builder.turn(user=100, assistant=200)
    builder.user()
    result = trim(builder, 3_000, pinned=frozenset({first, *results}))
    shown = apply_trim(builder.messages, result.state)
    ids = [m.id for m in shown]
    assert ids[:4] == [first, begun, call, results[0]]
    assert len(result_texts(shown)[0]) == 3600  # not shortened either
    assert problems(shown) == []


def test_recent_turns_yield_before_a_conversation_is_refused() -> None:
    builder = HistoryBuilder()
    for _ in range(5):
        builder.turn(user=300, assistant=300)
    builder.user(300)
    result = trim(builder, 1_400)
    shown = apply_trim(builder.messages, result.state)
    assert size(shown) <= 1_400
    assert shown[-1] is builder.messages[-1]
    assert "last resort" in result.passes


def test_a_long_running_turn_loses_its_oldest_steps_last() -> None:
    builder = HistoryBuilder()
    begun = builder.user(100)
    for _ in range(60):
        builder.step(60, arguments=60)
    result = build_final_prompt(request(builder.messages), estimate, count=count, budget=budget(4_000))
    shown = result.request.messages
    assert shown[0].id == begun
    assert shown[-1] is builder.messages[-1]
    assert problems(shown) == []
    assert result.tokens <= 4_000


def test_a_result_larger_than_the_window_is_cut_to_what_fits() -> None:
    builder = HistoryBuilder()
    builder.turn()
    builder.user()
    builder.step(50_000)
    result = build_final_prompt(request(builder.messages), estimate, count=count, budget=budget(3_000))
    assert result.tokens <= 3_000
    text = result_texts(result.request.messages)[-1]
    assert "content truncated - 0 steps ago, 50,004 tokens" in text
    assert len(text) > 2_000
    assert problems(result.request.messages) == []


@pytest.mark.parametrize("factor", [1.2, 1.6, 2.4])
def test_results_of_the_running_step_are_cut_until_the_estimate_fits_too(factor: float) -> None:
    builder = HistoryBuilder()
    for _ in range(6):
        builder.turn(user=200, assistant=400)
    builder.user()
    builder.step(13_000, 4_000, 4_000)

    def larger(prompt: Request) -> int:
        return 9_000 + int(estimate(prompt) * factor)

    result = build_final_prompt(request(builder.messages), larger, count=count, budget=budget(12_000))
    assert result.tokens <= 12_000


def test_a_message_larger_than_the_window_is_refused_with_sizes_and_what_to_do() -> None:
    builder = HistoryBuilder()
    for _ in range(6):
        builder.turn()
    builder.user(5_000)
    with pytest.raises(ContextOverflowError) as caught:
        build_final_prompt(request(builder.messages), estimate, count=count, budget=budget(3_000))
    assert caught.value.max_tokens == 3_000
    assert caught.value.current_tokens >= 5_000
    assert "shortened as much as possible" in str(caught.value)
    assert "3,000" in str(caught.value)
    assert "/model" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_pins_that_fill_the_window_are_refused_not_broken() -> None:
    builder = HistoryBuilder()
    pins = frozenset({builder.user(1_000), builder.assistant(1_000), builder.user(1_000)})
    builder.user()
    with pytest.raises(ContextOverflowError):
        build_final_prompt(request(builder.messages), estimate, count=count, budget=budget(2_500), pinned=pins)


def test_a_summary_outlives_the_turns() -> None:
    builder = HistoryBuilder()
    summary = builder.add("user", Text("s" * 800), kind="summary")
    for _ in range(10):
        builder.turn(user=100, assistant=100)
    builder.user()
    result = trim(builder, 1_500)
    assert apply_trim(builder.messages, result.state)[0].id == summary


def test_it_trims_again_when_the_estimate_saves_less_than_the_counts_said() -> None:
    builder = agent(*[900] * 40)
    calls: list[int] = []

    def sceptical(prompt: Request) -> int:
        calls.append(1)
        return int(estimate(prompt) * 1.6)

    result = build_final_prompt(request(builder.messages), sceptical, count=count, budget=budget(20_000))
    assert result.tokens <= 20_000
    assert len(calls) <= 9


def test_it_looks_again_when_leaving_out_freed_less_than_the_counts_said() -> None:
    builder = agent(*[900] * 60)
    result = build_final_prompt(
        request(builder.messages),
        lambda prompt: 15_000 + int(estimate(prompt) * 0.4),
        count=count,
        budget=budget(20_000),
    )
    assert result.tokens <= 20_000


def test_it_stays_trimmed_until_all_fits_with_room_to_spare() -> None:
    builder = agent(*[1000] * 12)
    small = build_final_prompt(request(builder.messages), estimate, count=count, budget=budget(9_000))
    assert small.trimmed and not small.state.empty
    for max_input, comes_back in ((13_000, False), (14_000, False), (16_000, True)):
        later = build_final_prompt(
            request(builder.messages), estimate, count=count, budget=budget(max_input), state=small.state
        )
        assert later.untrimmed is comes_back
        assert later.state.empty is comes_back
        assert not later.trimmed


def test_reasoning_bound_to_what_left_goes_with_it_and_later_reasoning_stays() -> None:
    builder = HistoryBuilder()
    for _ in range(12):
        builder.user(100)
        builder.assistant(100, reasoning=60)
    builder.user()
    result = build_final_prompt(
        request(builder.messages), estimate, count=count, budget=budget(2_500), prefix_bound=True
    )
    assert not any(isinstance(p, Reasoning) for m in result.request.messages for p in m.parts)
    builder.assistant(50, reasoning=60)
    builder.user()
    later = build_final_prompt(
        request(builder.messages), estimate, count=count, budget=budget(2_500), state=result.state, prefix_bound=True
    )
    thoughtful = [m for m in later.request.messages if any(isinstance(p, Reasoning) for p in m.parts)]
    assert [m.id for m in thoughtful] == [builder.messages[-2].id]


def test_reasoning_stays_void_after_everything_came_back() -> None:
    builder = HistoryBuilder()
    for _ in range(8):
        builder.user(100)
        builder.assistant(100, reasoning=60)
    small = build_final_prompt(
        request(builder.messages), estimate, count=count, budget=budget(1_500), prefix_bound=True
    )
    back = build_final_prompt(
        request(builder.messages), estimate, count=count, budget=budget(9_000), state=small.state, prefix_bound=True
    )
    assert back.untrimmed
    assert not any(isinstance(p, Reasoning) for m in back.request.messages for p in m.parts)


def test_unbound_reasoning_is_left_alone() -> None:
    builder = HistoryBuilder()
    for _ in range(12):
        builder.user(100)
        builder.assistant(100, reasoning=60)
    builder.user()
    result = build_final_prompt(request(builder.messages), estimate, count=count, budget=budget(2_500))
    answers = [m for m in result.request.messages if m.role == "assistant"]
    assert answers and all(isinstance(m.parts[0], Reasoning) for m in answers)


def test_a_trim_says_which_messages_and_how_many_tokens() -> None:
    builder = agent(*[2300] * 12)
    result = build_final_prompt(request(builder.messages), estimate, count=count, budget=budget(24_000))
    assert result.message_ids == tuple(m.id for m in builder.messages[2:14:2])
    assert result.freed_tokens == size(builder.messages) - result.tokens


# -- where two rules meet: what was cut before, what is void already, what is about to be read -----------------------


def test_a_result_that_was_cut_to_its_ends_becomes_a_marker_once_it_is_old() -> None:
    builder = HistoryBuilder()
    builder.user()
    _, (owner,) = builder.step(9_000)
    part = builder.messages[-1].parts[0]
    assert isinstance(part, ToolResult)
    ends = Cut(owner, part.call_id, "\n[cut]\n", head=4_000, tail=4_000)
    for _ in range(7):
        builder.step(1_000)
    cut = TrimState((ends,), frontier=owner)
    tokens = size(apply_trim(builder.messages, cut))
    result = build_final_prompt(
        request(builder.messages), estimate, count=count, budget=budget(tokens - 500), state=cut
    )
    [now] = [c for c in result.state.cuts if c.message_id == owner]
    assert (now.head, now.tail) == (0, 0)
    assert now.marker == "[content truncated - 7 steps ago, 9,004 tokens]"
    assert result.freed_tokens == tokens - size(apply_trim(builder.messages, result.state))


def test_reasoning_that_is_void_already_is_not_freed_a_second_time() -> None:
    builder = HistoryBuilder()
    for _ in range(20):
        builder.user(100)
        builder.assistant(100, reasoning=200)
    builder.user()
    void = replace(NO_TRIM, frontier=builder.messages[-1].id)
    tokens = size(apply_trim(builder.messages, void, prefix_bound=True))
    trimmer = Trimmer(builder.messages, count, void, prefix_bound=True)
    trimmer.trim(tokens, 3_000)
    remaining = size(apply_trim(builder.messages, trimmer.state(), prefix_bound=True))
    assert remaining <= 1_800  # the target: were it counted twice, too little would have left


def test_the_step_that_is_about_to_be_read_stays_though_something_stands_behind_it() -> None:
    builder = HistoryBuilder()
    builder.user()
    for _ in range(6):
        builder.step(800)
    call, (answered,) = builder.step(900)
    builder.add("user", Text("the date changed"), kind="injected")
    result = build_final_prompt(
        request(builder.messages),
        lambda sent: estimate(sent) + 1_000,  # the rest of the request
        count=count,
        budget=budget(2_100),
    )
    shown = [m.id for m in result.request.messages]
    assert {call, answered} <= set(shown)
    assert "last resort" in result.passes


def test_it_goes_on_until_the_next_turns_have_room() -> None:
    """Where leaving out saves less than was thought, one round is not enough to keep the prefix for a while."""
    builder = HistoryBuilder()
    for _ in range(40):
        builder.turn(user=100, assistant=100)
    limit = 6_000
    result = build_final_prompt(
        request(builder.messages), lambda sent: 3_000 + estimate(sent) // 2, count=count, budget=budget(limit)
    )
    assert result.tokens <= 0.8 * limit


def test_what_can_not_be_made_smaller_goes_out_where_the_estimate_fits_and_only_the_bound_does_not() -> None:
    builder = HistoryBuilder()
    builder.user(900)
    result = build_final_prompt(
        request(builder.messages), estimate, bound=lambda sent: estimate(sent) + 200, count=count, budget=budget(1_000)
    )
    assert result.request.messages == tuple(builder.messages)
    assert result.tokens == size(builder.messages) <= 1_000


def test_it_does_not_come_back_on_an_estimate_that_forgets_what_left() -> None:
    """The sizes that were noted when it left speak against a guess that all of it is small."""
    builder = HistoryBuilder()
    for _ in range(12):
        builder.step(1_000)
    small = build_final_prompt(request(builder.messages), estimate, count=count, budget=budget(9_000))
    assert small.trimmed
    again = build_final_prompt(
        request(builder.messages), lambda _: 5_000, count=count, budget=budget(9_000), state=small.state
    )
    assert not again.untrimmed
    assert again.state is small.state


def test_what_was_left_out_is_told_by_the_estimate_not_by_the_most_it_may_be() -> None:
    builder = HistoryBuilder()
    for _ in range(12):
        builder.step(1_000)
    result = build_final_prompt(
        request(builder.messages), estimate, bound=lambda sent: 2 * estimate(sent), count=count, budget=budget(9_000)
    )
    assert result.trimmed
    assert result.freed_tokens == size(builder.messages) - size(result.request.messages)


def test_reasoning_is_freed_once_and_a_state_stays_as_it_was() -> None:
    builder = HistoryBuilder()
    for _ in range(6):
        builder.user(100)
        builder.assistant(100, reasoning=200)
    trimmer = Trimmer(builder.messages, count, NO_TRIM, prefix_bound=True)
    assert trimmer.trim(size(builder.messages), 2_100) == {"old results"}
    first = trimmer.state()
    assert first.left_out == {}
    assert trimmer.trim(1_300, 2_100) == {"old turns"}
    assert trimmer.state().left_out != first.left_out == {}


def test_the_running_step_is_cut_to_half_the_window_before_recent_turns_leave() -> None:
    builder = HistoryBuilder()
    for _ in range(3):
        builder.turn()
    builder.user()
    builder.step(50_000)
    result = build_final_prompt(request(builder.messages), estimate, count=count, budget=budget(3_000))
    assert [m.id for m in result.request.messages] == [m.id for m in builder.messages]
    assert result.tokens <= 1_800


def test_a_result_is_capped_by_its_tokens_not_by_its_characters() -> None:
    """The middle that is cut out has fewer tokens than the ends that stay."""
    builder = HistoryBuilder()
    builder.user()
    builder.add("assistant", ToolCall("c", "read_file", "{}"))
    dense = "\u754c" * 4_000
    builder.add("tool", ToolResult("c", "read_file", dense + " " * 60_000 + dense, is_error=True))
    for _ in range(7):
        builder.step(10)

    def tokens(message: Message) -> int:
        text = "".join(part.text for part in message.parts if isinstance(part, Text | ToolResult))
        return 4 + text.count("\u754c") + (len(text) - text.count("\u754c")) // 4

    trimmer = Trimmer(builder.messages, tokens, NO_TRIM)
    trimmer.trim(sum(map(tokens, builder.messages)), 20_000)
    shown = apply_trim(builder.messages, trimmer.state())
    assert 1_000 < tokens(shown[2]) <= 2_000

"""Compaction's decisions by example: when, what, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.context.conversations import MESSAGE_TOKENS, HistoryBuilder, budget, count, histories, problems, size
from tests.messages import user
from tui.context.reduction.compaction import (
    CompactionPlan,
    CompactionRefusedError,
    accept_compaction,
    accept_edit,
    compaction_report,
    plan_compaction,
    summary_allowance,
)
from tui.context.reduction.groups import answered_ids, call_ids
from tui.context.reduction.records import CLEARED, CompactionRecord, SummaryEdit, apply_compactions, clear_results
from tui.context.usage.limits import Budget, ModelLimits, Percent, Tokens
from tui.context.usage.rows import UsageRow
from tui.context.usage.usage import Basis, ContextUsage
from tui.messages import Message, Text, ToolCall, ToolResult


def usage(
    total: int, max_input: int | None = 10_000, *, fixed: int = 0, threshold: float | None = 0.85, upper: int = 0
) -> ContextUsage:
    limits = ModelLimits(None if max_input is None else max_input * 4 // 3)
    space = Budget(None, None, None, None) if max_input is None else budget(max_input, threshold)
    rows = (
        UsageRow("system", "system prompt", fixed // 2, "estimated"),
        UsageRow("tools", "tools", fixed - fixed // 2, "estimated"),
        UsageRow("user", "you", total - fixed, "estimated"),
    )
    return ContextUsage(
        session="s",
        provider="test",
        model="model",
        limits=limits,
        budget=space,
        total=total,
        upper_bound=max(upper, total),
        source="delta",
        basis=Basis(),
        rows=rows,
    )


def plan(messages: Sequence[Message], max_input: int, *, fixed: int = 0, **more: Any) -> CompactionPlan:
    return plan_compaction(messages, count, usage=usage(size(messages) + fixed, max_input, fixed=fixed), **more)


def record(plan: CompactionPlan, summary: str = "m999999") -> CompactionRecord:
    return CompactionRecord(
        id="c1",
        at=0.0,
        before=0,
        after=0,
        messages=len(plan.source),
        first=plan.first,
        last=plan.last,
        summary=summary,
        kept=plan.kept,
        cleared=plan.cleared,
    )


def compacted(messages: Sequence[Message], made: CompactionPlan) -> tuple[Message, ...]:
    summary = user("s" * 4 * made.allowance, id="m999999", kind="summary")
    return apply_compactions([*messages, summary], [record(made)])


# -- when ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total", "upper", "acts"), [(8_499, 0, False), (8_500, 0, True), (8_400, 10_001, True), (12_000, 0, True)]
)
def test_it_acts_at_the_threshold_of_the_shown_usage_or_when_the_bound_is_over(
    total: int, upper: int, acts: bool
) -> None:
    assert usage(total, upper=upper).needs_compaction is acts


def test_without_a_threshold_or_a_window_it_never_acts_by_itself() -> None:
    assert not usage(9_900, threshold=None).needs_compaction
    assert not usage(900_000, None).needs_compaction


@pytest.mark.parametrize(
    ("fixed", "last", "named"), [(29_000, 100, r"cannot hold.*29,000"), (200, 28_000, r"cannot hold.*28,000")]
)
def test_a_fixed_part_or_a_last_message_over_the_threshold_is_said_and_not_compacted(
    fixed: int, last: int, named: str
) -> None:
    """Rows 50 to 52: 29k of tools in a window of 32,768 with the trigger at 27.9k compacted for ever."""
    builder = HistoryBuilder()
    builder.turn()
    builder.turn()
    builder.user(last - MESSAGE_TOKENS)
    with pytest.raises(CompactionRefusedError, match=named):
        plan(builder.messages, 32_768, fixed=fixed)


# -- what ----------------------------------------------------------------------------------------------------------


def agent(steps: int, tokens: int) -> HistoryBuilder:
    builder = HistoryBuilder()
    builder.user()
    for _ in range(steps):
        builder.step(tokens)
    return builder


def test_clearing_old_results_is_tried_first_and_can_be_enough() -> None:
    builder = agent(30, 300)
    made = plan(builder.messages, 10_000)
    assert not made.source
    assert len(made.cleared) == 24  # not those of the last step and the five before it
    shown = clear_results(builder.messages, made.cleared)
    assert size(shown) == pytest.approx(made.expected, abs=2)
    assert [p.text for m in shown for p in m.parts if isinstance(p, ToolResult)].count(CLEARED) == 24


def test_errors_pins_and_small_results_are_not_cleared() -> None:
    builder = HistoryBuilder()
    builder.user()
    builder.step(500, failed=True)
    _, pinned = builder.step(500)
    builder.step(60)
    _, plain = builder.step(500)
    for _ in range(8):
        builder.step(300)
    made = plan(builder.messages, 8_000, pinned=frozenset(pinned))
    assert not made.source
    assert {owner for owner, _ in made.cleared} >= set(plain)
    assert not {owner for owner, _ in made.cleared} & set(pinned)
    assert len(made.cleared) == 3


def test_long_arguments_of_old_calls_are_cleared_with_the_results() -> None:
    builder = HistoryBuilder()
    builder.user()
    old, _ = builder.step(200, arguments=5_000)
    short, _ = builder.step(200, arguments=500)
    for _ in range(5):
        builder.step(100)
    recent, _ = builder.step(100, arguments=2_200)
    made = plan(builder.messages, 10_000)
    assert not made.source
    shown = {m.id: m for m in clear_results(builder.messages, made.cleared)}
    arguments = {
        m: [part.arguments for part in shown[m].parts if isinstance(part, ToolCall)] for m in (old, short, recent)
    }
    assert arguments[old] == ['{"cleared": "[Old arguments cleared]"}']
    assert all("yyy" in text for m in (short, recent) for text in arguments[m])
    assert problems(list(shown.values())) == []


def test_a_summary_where_clearing_is_not_enough() -> None:
    builder = HistoryBuilder()
    for _ in range(20):
        builder.turn(user=100, assistant=350)
    builder.user()
    made = plan(builder.messages, 10_000)
    assert made.source
    tail = [m for m in builder.messages if m.id > made.last]
    assert sum(m.role == "user" for m in tail) == 4
    assert tail[0].role == "user"
    assert made.first == builder.messages[0].id
    assert [m.id for m in made.source] == [m.id for m in builder.messages if m.id <= made.last]


def test_asked_for_by_hand_it_summarises_even_where_clearing_would_do() -> None:
    builder = agent(30, 300)
    made = plan(builder.messages, 10_000, summarise=True)
    assert made.source


def test_recent_turns_yield_when_they_alone_are_too_large() -> None:
    builder = HistoryBuilder()
    for _ in range(6):
        builder.turn(user=500, assistant=1_100)
    builder.user()
    made = plan(builder.messages, 10_000)
    assert made.source
    tail = [m for m in builder.messages if m.id > made.last]
    assert sum(m.role == "user" for m in tail) == 3
    assert made.expected <= 5_000


def test_a_running_turn_is_cut_between_its_steps_and_keeps_its_beginning() -> None:
    builder = HistoryBuilder()
    begun = builder.user(200)
    for _ in range(40):
        builder.step(40, arguments=200)
    made = plan(builder.messages, 10_000)
    assert made.source
    assert made.kept == (begun,)
    shown = compacted(builder.messages, made)
    assert [m.id for m in shown[:2]] == ["m999999", begun]
    assert problems(shown) == []
    assert size(shown) <= made.expected + 4 <= 5_004  # the summary's own message costs 4


def test_pinned_messages_stand_behind_the_summary_with_their_group() -> None:
    builder = HistoryBuilder()
    builder.user()
    pinned = builder.user(50)
    call, results = builder.step(60)
    for _ in range(20):
        builder.turn(user=100, assistant=350)
    builder.user()
    made = plan(builder.messages, 10_000, pinned=frozenset({pinned, *results}))
    assert made.source
    shown = compacted(builder.messages, made)
    assert [m.id for m in shown[:4]] == ["m999999", pinned, call, results[0]]
    assert shown[1] is builder.messages[1]
    assert problems(shown) == []


def test_an_earlier_summary_is_folded_into_the_next_source() -> None:
    builder = HistoryBuilder()
    summary = builder.add("user", Text("s" * 2000), kind="summary")
    for _ in range(20):
        builder.turn(user=100, assistant=350)
    builder.user()
    made = plan(builder.messages, 10_000)
    assert made.source
    assert made.first == summary and made.source[0].id == summary


def test_a_summary_alone_is_not_summarised_again() -> None:
    builder = HistoryBuilder()
    builder.add("user", Text("s" * 20_000), kind="summary")
    builder.user()
    with pytest.raises(CompactionRefusedError, match="nothing older"):
        plan(builder.messages, 6_000)


def test_the_source_reads_cleared_results_from_the_history() -> None:
    builder = agent(30, 300)
    pairs = [(m.id, p.call_id) for m in builder.messages for p in m.parts if isinstance(p, ToolResult)][:10]
    active = clear_results(builder.messages, pairs)
    made = plan(active, 10_000, history=builder.messages, summarise=True)
    assert made.source
    assert CLEARED not in {p.text for m in made.source for p in m.parts if isinstance(p, ToolResult)}


def test_what_was_trimmed_for_the_measured_request_does_not_make_messages_look_small() -> None:
    builder = HistoryBuilder()
    for _ in range(40):
        builder.turn(user=100, assistant=350)
    builder.user()
    sent = builder.messages[-9:]
    measured = usage(size(sent), 20_000)
    made = plan_compaction(builder.messages, count, usage=measured, sent=sent, summarise=True)
    assert made.source
    tail = [m for m in builder.messages if m.id > made.last]
    assert made.expected == pytest.approx(size(tail) + made.allowance, abs=4)


def test_a_message_put_between_call_and_result_does_not_part_them() -> None:
    builder = HistoryBuilder()
    builder.user()
    for _ in range(40):
        _, (answer,) = builder.step(90, arguments=200)
        position = next(i for i, m in enumerate(builder.messages) if m.id == answer)
        builder.add("user", Text("n" * 400), kind="injected")
        builder.messages[position], builder.messages[position + 1] = (
            builder.messages[position + 1],
            builder.messages[position],
        )
    for max_input in range(8_000, 20_000, 500):
        made = plan(builder.messages, max_input)
        assert made.source
        at = next(i for i, m in enumerate(builder.messages) if m.id == made.last) + 1
        called = {i for m in builder.messages[at:] for i in call_ids(m)}
        answered = {i for m in builder.messages[at:] for i in answered_ids(m)}
        assert called == answered


def test_one_step_has_nothing_to_summarise() -> None:
    builder = HistoryBuilder()
    builder.user(8_000)
    with pytest.raises(CompactionRefusedError, match="nothing older"):
        plan(builder.messages, 10_000)


def test_the_beginning_of_a_running_turn_alone_is_not_summarised() -> None:
    builder = HistoryBuilder()
    builder.user()
    builder.step(500, 500)
    with pytest.raises(CompactionRefusedError, match="nothing older"):
        plan(builder.messages, 10_000, summarise=True)


def test_a_pinned_beginning_of_the_running_turn_is_counted_once() -> None:
    builder = HistoryBuilder()
    begun = builder.user(400)
    for _ in range(30):
        builder.step(300)
    made = plan(builder.messages, 10_000, pinned=frozenset({begun}), summarise=True)
    assert made.source
    assert size(compacted(builder.messages, made)) == pytest.approx(made.expected, abs=MESSAGE_TOKENS)


def test_a_target_above_the_threshold_does_not_lead_to_a_summary_that_is_refused() -> None:
    """A target in tokens can be above a threshold in percent, in a small window."""
    builder = HistoryBuilder()
    for _ in range(20):
        builder.turn(user=250, assistant=250)
    made = plan(builder.messages, 10_000, target=Tokens(30_000), preserve_recent_turns=20)
    assert made.source
    assert made.expected < 8_500


def test_an_early_threshold_has_a_target_below_it() -> None:
    builder = HistoryBuilder()
    for _ in range(10):
        builder.turn(user=450, assistant=450)
    early = usage(size(builder.messages), 10_000, threshold=0.4)
    made = plan_compaction(builder.messages, count, usage=early)
    assert made.source
    assert made.expected <= 2_250  # the last turn, and a summary


def test_what_must_stay_and_is_too_large_is_refused_with_sizes() -> None:
    builder = HistoryBuilder()
    builder.turn()
    pinned = builder.user(9_000)
    builder.assistant()
    builder.user()
    with pytest.raises(CompactionRefusedError, match=r"8,500.*Unpin"):
        plan(builder.messages, 10_000, pinned=frozenset({pinned}))


@pytest.mark.slow
@given(histories(), st.integers(300, 30_000), st.integers(0, 60), st.booleans(), st.data())
def test_every_plan_leaves_pairs_pins_and_the_running_step_whole(
    messages: list[Message], max_input: int, percent: int, summarise: bool, data: st.DataObject
) -> None:
    pinned = frozenset(data.draw(st.sets(st.sampled_from([m.id for m in messages]), max_size=2)))
    fixed = max_input * percent // 100
    try:
        made = plan(messages, max_input, fixed=fixed, pinned=pinned, summarise=summarise)
    except CompactionRefusedError:
        assume(False)
        raise
    if not made.source:
        shown: tuple[Message, ...] = tuple(clear_results(messages, made.cleared))
    else:
        shown = compacted(messages, made)
        assert all(m.id in made.kept for m in made.source if m.id in pinned)
    assert problems(shown) == []
    originals = {m.id: m for m in messages}
    assert all(originals[i] in shown for i in pinned)
    assert shown[-1] is messages[-1]
    assert abs(size(shown) + fixed - made.expected) <= 8
    ceiling = int(max_input * 0.85)
    assert made.expected < max(ceiling, size(messages) + fixed)


# -- whether it was worth it ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "fine"),
    [
        (785_000, 766_000, False),  # row 54: 19k of 785k
        (12_081, 12_081, False),
        (20_000, 19_000, True),
        (20_000, 19_001, False),
        (100_000, 86_000, False),  # smaller, but not under the threshold
    ],
)
def test_a_result_must_be_smaller_and_under_the_threshold(before: int, after: int, fine: bool) -> None:
    threshold = 85_000 if before == 100_000 else None
    if fine:
        accept_compaction(before, after, threshold)
    else:
        with pytest.raises(CompactionRefusedError, match="left as it was"):
            accept_compaction(before, after, threshold)


def test_the_target_lies_well_under_the_trigger() -> None:
    """Row 54: compactions that end just under the trigger fire again on the next turn."""
    for max_input in (1_536, 24_576, 184_000, 984_000):
        builder = HistoryBuilder()
        while size(builder.messages) < 0.85 * max_input:
            builder.turn(user=max_input // 100, assistant=max_input // 50)
        builder.user(10)
        made = plan(builder.messages, max_input)
        assert made.expected <= 0.5 * max_input


def test_a_summary_is_small_against_the_window() -> None:
    assert [summary_allowance(budget(n)) for n in (1_536, 24_576, 984_000)] == [192, 3_072, 8_000]
    assert summary_allowance(Budget(None, None, None, None)) == 2_000
    assert summary_allowance(Budget(200_000, 196_000, 4_000, None)) == 4_000  # the model answers no longer
    assert summary_allowance(Budget(200_000, 184_000, 16_000, 8_000)) == 2_000  # compaction starts early


def test_the_report_gives_both_sizes() -> None:
    done = CompactionRecord("c", 0.0, 121_400, 18_300, 142, first="a", last="b", summary="s")
    assert compaction_report(done) == "Compacted 142 messages: ~121,400 -> ~18,300 tokens (-85 %)"
    measured = replace(done, source="exact")
    assert compaction_report(measured) == "Compacted 142 messages: 121,400 -> ~18,300 tokens (-85 %)"
    assert compaction_report(replace(done, before=0, after=0)) == "Compacted 142 messages"  # imported: sizes unknown
    cleared = CompactionRecord("c", 0.0, 9_000, 4_000, 0, cleared=(("m", "c"),))
    assert compaction_report(cleared) == "Cleared 1 old tool result: ~9,000 -> ~4,000 tokens (-56 %)"
    edit = SummaryEdit("e", 0.0, "c", "m", before=18_000, after=18_900)
    assert compaction_report(edit) == "Edited the summary: ~18,000 -> ~18,900 tokens (+5 %)"
    assert compaction_report(replace(edit, after=18_000)) == "Edited the summary: ~18,000 tokens, as before"


def test_a_plan_counts_each_message_a_few_times_however_many_cuts_a_long_turn_allows() -> None:
    builder = agent(300, 60)
    counted = 0

    def counting(message: Message) -> int:
        nonlocal counted
        counted += 1
        return count(message)

    total = size(builder.messages)
    plan_compaction(builder.messages, counting, usage=usage(total, total), summarise=True)
    assert counted <= 5 * len(builder.messages)


def test_the_target_is_the_persons_where_they_set_one() -> None:
    builder = HistoryBuilder()
    for _ in range(30):
        builder.turn()
    total = size(builder.messages)
    replaced = {}
    for share in (0.0, 0.3, 0.5, 0.6):
        target = Percent(100 * share) if share != 0.5 else None
        made = plan(builder.messages, total, summarise=True, target=target, preserve_recent_turns=20)
        assert made.source
        replaced[share] = len(made.source)
    assert replaced[0.6] < replaced[0.5] < replaced[0.3] < replaced[0.0]


@pytest.mark.parametrize(
    ("before", "after", "threshold", "refused"),
    [(500, 900, 1_000, False), (500, 1_000, 1_000, True), (1_200, 1_100, 1_000, False), (9, 10**9, None, False)],
)
def test_an_edit_may_not_make_the_next_request_due(
    before: int, after: int, threshold: int | None, refused: bool
) -> None:
    if not refused:
        accept_edit(before, after, threshold)
        return
    with pytest.raises(CompactionRefusedError, match="~1,000 tokens, and 1,000 is the limit"):
        accept_edit(before, after, threshold)


# -- the arithmetic of a plan: a large system prompt, the limit, counts that are off ---------------------------------


def turns(number: int, tokens: int) -> HistoryBuilder:
    builder = HistoryBuilder()
    for _ in range(number):
        builder.turn(user=tokens // 2, assistant=tokens // 2)
    return builder


def test_beside_a_large_system_prompt_the_target_is_halfway_to_the_threshold() -> None:
    """Half of the budget would be out of reach: every recent turn would go for nothing."""
    builder = turns(20, 200)
    fixed = 4_000
    made = plan_compaction(builder.messages, count, usage=usage(size(builder.messages) + fixed, 10_000, fixed=fixed))
    assert made.source
    assert made.last == builder.messages[-9].id  # the last four turns stay
    assert 5_000 < made.expected <= fixed + (8_500 - fixed) // 2


@pytest.mark.parametrize("short", [True, False])
def test_what_would_reach_the_limit_is_refused_and_a_token_less_is_not(short: bool) -> None:
    builder = turns(6, 200)
    builder.user(900)
    threshold = 8_500
    allowance = 1_250
    last = count(builder.messages[-1])
    fixed = threshold - allowance - last - (1 if short else 0)
    measured = usage(size(builder.messages) + fixed, 10_000, fixed=fixed)
    if not short:
        with pytest.raises(CompactionRefusedError, match="8,500 is the limit"):
            plan_compaction(builder.messages, count, usage=measured)
        return
    made = plan_compaction(builder.messages, count, usage=measured)
    assert made.source
    assert made.expected == threshold - 1


def test_counts_are_brought_to_what_the_total_says() -> None:
    """A tokenizer that sees half of what the server counts: the plan is in the server's tokens."""
    builder = turns(30, 100)
    counted = size(builder.messages)
    made = plan_compaction(builder.messages, count, usage=usage(2 * counted, 2 * counted))
    assert made.source
    rest = builder.messages[[m.id for m in builder.messages].index(made.last) + 1 :]
    assert made.expected == pytest.approx(made.allowance + 2 * size(rest), abs=2)

"""A plan's arithmetic where it decides: the target beside a large system prompt, the limit, counts that are off."""

from __future__ import annotations

import pytest

from tests.context.conversations import Talk, count, size
from tests.context.reduction.test_compaction import usage
from tui.context.reduction.compaction import CompactionRefusedError, Summarise, plan_compaction


def turns(number: int, tokens: int) -> Talk:
    talk = Talk()
    for _ in range(number):
        talk.turn(user=tokens // 2, assistant=tokens // 2)
    return talk


def test_beside_a_large_system_prompt_the_target_is_halfway_to_the_threshold() -> None:
    """Half of the budget would be out of reach: every recent turn would go for nothing."""
    talk = turns(20, 200)
    fixed = 4_000
    made = plan_compaction(talk.messages, count, usage=usage(size(talk.messages) + fixed, 10_000, fixed=fixed))
    assert isinstance(made, Summarise)
    assert made.last == talk.messages[-9].id  # the last four turns stay
    assert 5_000 < made.expected <= fixed + (8_500 - fixed) // 2


@pytest.mark.parametrize("short", [True, False])
def test_what_would_reach_the_limit_is_refused_and_a_token_less_is_not(short: bool) -> None:
    talk = turns(6, 200)
    talk.user(900)
    threshold = 8_500
    allowance = 1_250
    last = count(talk.messages[-1])
    fixed = threshold - allowance - last - (1 if short else 0)
    measured = usage(size(talk.messages) + fixed, 10_000, fixed=fixed)
    if not short:
        with pytest.raises(CompactionRefusedError, match="8,500 is the limit"):
            plan_compaction(talk.messages, count, usage=measured)
        return
    made = plan_compaction(talk.messages, count, usage=measured)
    assert isinstance(made, Summarise)
    assert made.expected == threshold - 1


def test_counts_are_brought_to_what_the_total_says() -> None:
    """A tokenizer that sees half of what the server counts: the plan is in the server's tokens."""
    talk = turns(30, 100)
    counted = size(talk.messages)
    made = plan_compaction(talk.messages, count, usage=usage(2 * counted, 2 * counted))
    assert isinstance(made, Summarise)
    rest = talk.messages[[m.id for m in talk.messages].index(made.last) + 1 :]
    assert made.expected == pytest.approx(made.allowance + 2 * size(rest), abs=2)

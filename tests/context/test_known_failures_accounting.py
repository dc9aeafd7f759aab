"""Failures of other clients (known-failures facts, sections 1.A to 1.D and 1.I), made impossible here as kinds.

The number in a test's name is the row. What the adapters, the store and the screen do about theirs is tested there.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from tests.context.estimate.test_measurements import Store
from tests.context.helpers import (
    MODEL,
    BrokenTokenizer,
    call,
    estimator,
    registered,
    request,
    result,
    thinking,
    without_reasoning,
)
from tests.messages import assistant, user
from tui.context.counting.counting import TokenCounter
from tui.context.counting.tokenizers import Tokenizer, get_tokenizer
from tui.context.counting.words import TokenizerError, WordCounter
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.estimate.measurements import ConversationStateTracker
from tui.context.usage.limits import BudgetSettings, ModelLimits, Percent
from tui.context.usage.usage import ContextUsage, Space, calculate_context_usage, usage_to_json
from tui.messages import Message, Reasoning, Request, ToolSchema, Usage

W = ModelLimits(200_000)


pytestmark = pytest.mark.usefixtures("word_tokenizer")


def at(tokens: int, limits: ModelLimits = W, settings: BudgetSettings | None = None) -> ContextUsage:
    """The usage of a conversation that was measured at `tokens`."""
    hybrid = estimator()
    outgoing = request(user("q"))
    hybrid.record(outgoing, assistant("a"), Usage(tokens, 1), learn=True, at=0.0)
    return usage_of(outgoing, hybrid, limits, settings)


def usage_of(
    outgoing: Request, hybrid: HybridTokenEstimator, limits: ModelLimits = W, settings: BudgetSettings | None = None
) -> ContextUsage:
    return calculate_context_usage(outgoing, estimator=hybrid, limits=limits, settings=settings or BudgetSettings())


# -- 1.A display and arithmetic -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [1, 115_000, 184_000, 199_999, 840_000])
def test_a1_one_window_in_one_answer_and_every_number_inside_it(tokens: int) -> None:
    usage = at(tokens)
    assert usage.budget.context == usage.limits.context == 200_000
    assert usage.percent == pytest.approx(100 * tokens / 200_000)
    assert sum(row.tokens for row in usage.rows) == tokens
    assert 0 <= (usage.space.free or 0) <= 200_000
    assert usage.space.over == max(0, tokens - 184_000)


def test_a2_used_and_reserve_and_free_are_the_window() -> None:
    usage = at(19_000, settings=BudgetSettings(reserve_output=45_000, compaction=None))
    assert (usage.space.free, usage.space.reserve, usage.space.buffer) == (136_000, 45_000, 0)


def test_a4_a_count_that_fails_is_never_zero() -> None:
    with registered("broken-1", BrokenTokenizer()):
        usage = usage_of(request(user("word " * 500), model="broken-1"), estimator())
    assert usage.total >= 500
    assert all(row.tokens > 0 for row in usage.rows)


def test_a5_what_is_called_free_can_be_sent() -> None:
    usage = at(166_000, settings=BudgetSettings(reserve_output=32_000, compaction=None))
    assert usage.space.free == 2_000
    assert usage.budget.fits(usage.total + usage.space.free)
    assert not usage.budget.fits(usage.total + usage.space.free + 1)


def test_a6_the_mark_on_screen_is_the_trigger() -> None:
    usage = at(100_000, settings=BudgetSettings(compaction=Percent(70.0)))
    assert usage.budget.compaction_at == 128_800  # 70 % of the 184,000 that input may fill
    assert usage.space.until_compaction == usage.space.free == usage.budget.compaction_at - 100_000


@pytest.mark.parametrize("off", [BudgetSettings(compaction=None), BudgetSettings(rolling=True)])
def test_a7_without_compaction_there_is_no_buffer(off: BudgetSettings) -> None:
    usage = at(126_000, settings=off)
    assert (usage.space.buffer, usage.space.until_compaction, usage.space.free) == (0, None, 58_000)


def test_a8_forty_turns_without_usage_are_estimated_not_zero() -> None:
    hybrid = estimator()
    conversation: list[Message] = []
    for number in range(40):
        conversation.append(user(f"{number} " * 50))
        hybrid.record(request(*conversation), assistant("word " * 50), Usage(None, None), learn=True, at=0.0)
        conversation.append(assistant("word " * 50))
    usage = usage_of(request(*conversation), hybrid)
    assert usage.total >= 4_000
    assert (usage.source, usage.basis.last_input) == ("estimated", None)


def test_a11_far_over_the_window_is_said_and_bounded() -> None:
    usage = at(494_945)
    assert (usage.space.free, usage.space.buffer, usage.space.over) == (0, 0, 310_945)


@pytest.mark.parametrize("window", [0, None, -1, "", math.nan])
def test_a12_a_window_that_is_none_is_unknown(window: Any) -> None:
    usage = at(5_000, replace(W, context=window))
    assert usage.total == 5_000
    assert usage.percent is None and usage.space == Space()


def test_a14_what_was_measured_is_not_estimated_again() -> None:
    hybrid = estimator()
    reply = thinking("t " * 60_000, "done")
    hybrid.record(request(user("q")), reply, Usage(140_000, 60_001, reasoning=60_000), learn=True, at=0.0)
    usage = usage_of(request(user("q"), reply, user("x")), hybrid)
    assert usage.total == 200_001 + 1 + 4


def test_a16_one_object_for_panel_trigger_and_check() -> None:
    usage = at(150_000)
    data = usage_to_json(usage)
    assert data["total"] == usage.total


def test_a17_a_compacted_request_has_its_own_number_at_once() -> None:
    hybrid = estimator()
    conversation = [user("word " * 3_000), assistant("word " * 3_000), user("q")]
    hybrid.record(request(*conversation), assistant("a"), Usage(90_000, 1), learn=True, at=0.0)
    before = usage_of(request(*conversation, assistant("a")), hybrid).total
    summary = Message("user", user("word " * 200).parts, kind="summary")
    after = usage_of(request(summary, user("q"), assistant("a")), hybrid).total
    assert before == 90_001
    assert after < 90_001 - 5_500


def test_a18_a_resumed_session_knows_its_measurement() -> None:
    store = Store()
    conversation = [user("q"), assistant("a"), user("r")]
    first = estimator(ConversationStateTracker(store))
    first.record(request(*conversation), assistant("b"), Usage(150_000, 1), learn=True, at=0.0)
    again = estimator(ConversationStateTracker(store))
    assert usage_of(request(*conversation, assistant("b")), again).total == 150_001
    other = estimator(ConversationStateTracker(store))
    assert other.estimate(request(user("edited"), *conversation[1:])).source == "estimated"


def test_a20_the_context_is_the_last_call_not_the_sum_of_all() -> None:
    hybrid = estimator()
    conversation: list[Message] = []
    for number in range(20):
        conversation.append(user(f"{number}"))
        hybrid.record(request(*conversation), assistant("a"), Usage(45_000 + number, 1), learn=True, at=float(number))
        conversation.append(assistant("a"))
    assert usage_of(request(*conversation), hybrid).total == 45_020


# -- 1.B cached tokens ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fresh", "read", "write"),
    [(8, 102_000, 0), (20_000, 580_000, 0), (3, 17_697, 0), (10, 0, 48_000)],
)
def test_b25_to_b30_the_parts_of_the_input_add_up(fresh: int, read: int, write: int) -> None:
    usage = Usage(fresh + read + write, 5, input_cached=read, input_cache_write=write)
    hybrid = estimator()
    hybrid.record(request(user("q")), assistant("a"), usage, learn=True, at=0.0)
    assert hybrid.estimate(request(user("q"))).tokens == fresh + read + write


def test_b29_cached_tokens_are_not_added_to_a_total_that_holds_them() -> None:
    usage = Usage(100_000, 5, input_cached=90_000)
    hybrid = estimator()
    hybrid.record(request(user("q")), assistant("a"), usage, learn=True, at=0.0)
    assert hybrid.estimate(request(user("q"))).tokens == 100_000


# -- 1.C usage in streams ------------------------------------------------------------------------------------------


def test_c42_nothing_reported_is_unknown() -> None:
    hybrid = estimator()
    assert hybrid.record(request(user("q")), assistant("a"), Usage(None, None), learn=True, at=0.0) is None
    basis = usage_of(request(user("q"), assistant("a")), hybrid).basis
    assert (basis.last_input, basis.last_output, basis.new_messages, basis.last_error_percent) == (None,) * 4


# -- 1.D reasoning -------------------------------------------------------------------------------------------------


def test_d43_reasoning_is_part_of_the_output_and_never_added() -> None:
    hybrid = estimator()
    reply = assistant("word " * 12)
    hybrid.record(request(user("q")), reply, Usage(1_000, 2_315, reasoning=2_303), learn=True, at=0.0)
    estimate = hybrid.estimate(request(user("q"), reply))
    assert estimate.tokens == 1_012
    assert estimate.last_output == 2_315


def test_d46_thinking_that_is_dropped_does_not_start_a_compaction() -> None:
    hybrid = estimator()
    reply = thinking("t " * 50_000, "word " * 1_000)
    hybrid.record(request(user("q")), reply, Usage(20_000, 51_000, reasoning=50_000), learn=True, at=0.0)
    usage = usage_of(request(user("q"), without_reasoning(reply), user("x")), hybrid)
    assert usage.total == pytest.approx(21_005, abs=2)
    assert usage.percent is not None
    assert usage.percent < 11


def test_d47_only_what_goes_out_is_counted() -> None:
    stored = thinking("t " * 30_000, "short")
    hybrid = estimator()
    sent = request(user("q"), without_reasoning(stored), user("x"))
    assert hybrid.estimate(sent).tokens < 50
    assert hybrid.estimate(request(user("q"), stored, user("x"))).tokens > 30_000


def test_d48_reasoning_between_a_call_and_its_answer_is_found_after_a_restart() -> None:
    store = Store()
    reply = assistant(Reasoning("t " * 40, "p", MODEL, signature="s"), call("1"))
    estimator(ConversationStateTracker(store)).record(
        request(user("q")), reply, Usage(500, 60, reasoning=40), learn=True, at=0.0
    )
    again = estimator(ConversationStateTracker(store))
    stored = replace(reply, usage=Usage(500, 60, reasoning=40))
    estimate = again.estimate(request(user("q"), stored, result("1", "found")))
    assert (estimate.last_input, estimate.last_output_sent_back) == (500, 60)


# -- 1.I tokenizer -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", ["<|endoftext|>", "<|fim_prefix|>", "<|im_start|>", "<|start|>"])
def test_i85_special_tokens_are_text_everywhere(token: str) -> None:
    counter = TokenCounter()
    for message in (
        user(token),
        result("1", f"a file named {token}"),
        assistant(token, call("1", token, f'{{"path": "{token}"}}')),
    ):
        assert counter.count_message(message, "gpt-5").size > 5
    assert counter.count_tool(ToolSchema(token, token, "{}"), "gpt-5") > 5


@pytest.mark.parametrize("char", ["a", "_", "^", "-", "\n", " ", "\u00a0"])
def test_i86_i87_repeated_characters_are_counted(char: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert get_tokenizer("gpt-5").count(char * 1_000_001) > 1_000
    assert capfd.readouterr().err == ""


def test_i88_no_ranks_means_an_estimate_that_says_so() -> None:
    def gone() -> WordCounter:
        raise TokenizerError("no file")

    with registered("bare-1", Tokenizer("bare", gone)):
        estimate = estimator().estimate(request(user("x" * 400), model="bare-1"))
    assert estimate.tokens >= 100
    assert (estimate.source, estimate.known_tokens) == ("estimated", 0)


def test_i89_a_tokenizer_that_raises_counts_characters() -> None:
    with registered("broken-1", BrokenTokenizer()):
        counter = TokenCounter()
        assert counter.count_text("x" * 400, "broken-1") == 100
        assert counter.count_message(user("x" * 400), "broken-1").size >= 100

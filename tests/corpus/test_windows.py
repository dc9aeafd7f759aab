"""Recorded conversations played again into smaller windows: never over, tool groups whole, and what acted how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.context.conversations import problems
from tests.corpus import corpus_root
from tests.messages import user
from tests.recordings import read_recording
from tui.chat.conversation.history import HistoryState
from tui.chat.conversation.projection import Projection, Target, build_request
from tui.context.counting.counting import TokenCounter
from tui.context.reduction.compaction import (
    CompactionPlan,
    CompactionRefusedError,
    accept_compaction,
    plan_compaction,
)
from tui.context.reduction.records import NO_TRIM, CompactionRecord, apply_compactions
from tui.context.reduction.rolling import ContextOverflowError, build_final_prompt
from tui.context.usage.limits import Budget, BudgetSettings, ModelLimits, make_budget
from tui.context.usage.rows import UsageRow
from tui.context.usage.usage import Basis, ContextUsage
from tui.messages import Message, Request
from tui.providers.base import Capabilities

pytestmark = pytest.mark.corpus

WINDOWS = (32_000, 128_000)
MODEL = "gpt-5"
FIXED = 6_000  # tokens that system prompt and tools take here; the recordings don't hold them
TARGET = Target("test", MODEL, Capabilities())


class Counts:
    """Tokens of messages by a real tokenizer, each counted once."""

    def __init__(self) -> None:
        self._counter = TokenCounter()
        self._known: dict[int, tuple[Message, int]] = {}

    def message(self, message: Message) -> int:
        cached = self._known.get(id(message))
        if cached is None or cached[0] is not message:
            cached = message, max(1, round(self._counter.count_message(message, MODEL).size))
            self._known[id(message)] = cached
        return cached[1]

    def request(self, request: Request) -> int:
        return FIXED + sum(map(self.message, request.messages))


def sessions() -> list[Path]:
    return sorted(path for path in (corpus_root() / "sessions").rglob("*.jsonl"))


def calls(path: Path) -> Iterator[list[Message]]:
    """The history before each answer, as it was said: without the summaries of other programs."""
    messages: list[Message] = []
    for message in read_recording(path).messages:
        if message.kind == "summary":
            continue
        if message.role == "assistant" and messages:
            yield messages
        messages.append(message)


def limits(window: int) -> Budget:
    return make_budget(ModelLimits(window), BudgetSettings())


@pytest.mark.parametrize("window", WINDOWS)
def test_rolling_never_over_and_groups_whole(window: int, say: Callable[[str], None]) -> None:
    counts, budget = Counts(), limits(window)
    assert budget.max_input is not None
    figures: Counter[str] = Counter()
    for path in sessions():
        state, projection = NO_TRIM, Projection()
        before: tuple[Message, ...] = ()
        for history in calls(path):
            request, _ = projection.requests(history, HistoryState(), TARGET)
            figures["requests"] += 1
            try:
                result = build_final_prompt(request, counts.request, count=counts.message, budget=budget, state=state)
            except ContextOverflowError as error:
                figures["refused"] += 1
                least = FIXED + sum(counts.message(m) for m in history[-1:] if m.role == "user")
                assert least > budget.max_input, f"{path.name}: {error}"
                continue
            assert counts.request(result.request) <= budget.max_input
            assert problems(result.request.messages) == []
            figures["trims"] += result.trimmed
            figures.update(result.passes)
            changed = result.request.messages[: len(before)] != before
            figures["prefix changes"] += changed
            assert result.trimmed or result.untrimmed or not changed
            state, before = result.state, result.request.messages
    assert figures["requests"] > 1_500
    say(f"rolling into {window:,}: " + ", ".join(f"{name} {number:,}" for name, number in sorted(figures.items())))


@pytest.mark.parametrize("window", WINDOWS)
def test_compaction_gets_under_the_threshold_and_keeps_groups_whole(window: int, say: Callable[[str], None]) -> None:
    counts, budget = Counts(), limits(window)
    assert budget.compaction_at is not None
    figures: Counter[str] = Counter()
    for path in sessions():
        records: list[CompactionRecord] = []
        summaries: list[Message] = []
        projection = Projection()
        for history in calls(path):
            figures["requests"] += 1
            if records:
                request = build_request(apply_compactions([*history, *summaries], records), HistoryState(), TARGET)
            else:
                request, _ = projection.requests(history, HistoryState(), TARGET)
            total = counts.request(request)
            if total < budget.compaction_at:
                continue
            try:
                plan = plan_compaction(request.messages, counts.message, usage=measured(total, budget), history=history)
            except CompactionRefusedError:
                figures["refused"] += 1  # the session trims then
                continue
            record, summary = carried_out(plan, f"~{len(summaries):06d}", history)
            records.append(record)
            summaries += summary
            after = build_request(apply_compactions([*history, *summaries], records), HistoryState(), TARGET)
            assert problems(after.messages) == []
            accept_compaction(total, counts.request(after), budget.compaction_at)
            figures["summaries" if plan.source else "cleared only"] += 1
    say(f"compaction at {window:,}: " + ", ".join(f"{name} {number:,}" for name, number in sorted(figures.items())))
    assert figures["refused"] < 0.02 * figures["requests"]


def carried_out(plan: CompactionPlan, ident: str, history: Sequence[Message]) -> tuple[CompactionRecord, list[Message]]:
    """The record of `plan`, and a summary as long as it may be."""
    if not plan.source:
        return CompactionRecord(ident, 0.0, 1, 1, 0, cleared=plan.cleared), []
    summary = user("word " * plan.allowance, id=ident, kind="summary")
    record = CompactionRecord(
        ident, 0.0, 1, 1, len(plan.source), plan.first, plan.last, ident, plan.kept, plan.cleared, history[-1].id
    )
    return record, [summary]


def measured(total: int, budget: Budget) -> ContextUsage:
    rows = (
        UsageRow("system", "system prompt", FIXED, "estimated"),
        UsageRow("user", "you", total - FIXED, "estimated"),
    )
    return ContextUsage(
        session="s",
        provider="test",
        model=MODEL,
        limits=ModelLimits(budget.context),
        budget=budget,
        total=total,
        upper_bound=total,
        source="estimated",
        basis=Basis(),
        rows=rows,
    )

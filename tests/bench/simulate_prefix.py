"""How often the sent prefix changes: sticky trims in big steps against the habit of trimming at every turn."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from unittest.mock import patch

from tests.bench.simulate_server import pairing_problem, part_tokens, words
from tui.context.reduction import rolling
from tui.context.reduction.records import NO_TRIM
from tui.context.reduction.rolling import build_final_prompt
from tui.context.usage.limits import Budget, BudgetSettings, ModelLimits, make_budget
from tui.messages import Message, Request, Role, Text, ToolCall, ToolResult

TURNS = 200
WINDOW = 200_000


@dataclass(frozen=True, slots=True)
class PrefixFigures:
    """Over one conversation: in how many turns something sent before was sent otherwise or not at all, and how many
    tokens of all that were sent a prompt cache would have held."""

    turns: int
    changes: int
    cached_percent: float
    most_used_percent: float

    @property
    def one_in(self) -> float:
        """Turns for each change."""
        return self.turns / self.changes if self.changes else float("inf")


def count(message: Message) -> int:
    """The true size of a message, in tokens."""
    return round(4 + sum(part_tokens(part, "sim") for part in message.parts))


def size(request: Request) -> int:
    """The true size of a request without system prompt and tools, in tokens."""
    return sum(map(count, request.messages))


def agent_conversation(seed: int = 1) -> list[list[Message]]:
    """The messages of each turn of a coding agent: a question, one to six steps with results of up to 8,000 tokens."""
    chance = random.Random(seed)
    serial = 0
    turns: list[list[Message]] = []

    def message(role: Role, *parts: Text | ToolCall | ToolResult) -> Message:
        nonlocal serial
        serial += 1
        return Message(role, parts, id=f"{serial:08d}")

    for _ in range(TURNS):
        turn = [message("user", Text(words(chance.choice((20, 60, 200)))))]
        for _ in range(chance.choice((1, 2, 2, 3, 6))):
            call = f"call-{serial}"
            turn.append(message("assistant", ToolCall(call, "read_file", '{"path": "src/parser.py"}')))
            tokens = chance.choice((100, 400, 800, 1_500, 3_000, 8_000))
            turn.append(message("tool", ToolResult(call, "read_file", words(tokens))))
        turn.append(message("assistant", Text(words(chance.choice((100, 300, 800))))))
        turns.append(turn)
    return turns


def measure(trim: Callable[[Sequence[Message]], Sequence[Message]], budget: Budget) -> PrefixFigures:
    """Send the question of every turn under `trim`. Raises AssertionError where a request is over or unpaired."""
    messages: list[Message] = []
    before: tuple[Message, ...] = ()
    changes = sent_tokens = cached = most = 0
    for turn in agent_conversation():
        messages.append(turn[0])
        sent = tuple(trim(messages))
        sizes = [count(m) for m in sent]
        assert budget.max_input is not None and sum(sizes) <= budget.max_input
        assert not pairing_problem(sent)
        same = next(
            (i for i, (a, b) in enumerate(zip(before, sent, strict=False)) if a != b), min(len(before), len(sent))
        )
        changes += same < len(before)
        cached += sum(sizes[:same])
        sent_tokens += sum(sizes)
        most = max(most, sum(sizes))
        before = sent
        messages += turn[1:]
    return PrefixFigures(TURNS, changes, 100 * cached / sent_tokens, 100 * most / (budget.max_input or 1))


def sticky(budget: Budget) -> Callable[[Sequence[Message]], Sequence[Message]]:
    """What this program does."""
    state = NO_TRIM

    def trim(messages: Sequence[Message]) -> Sequence[Message]:
        nonlocal state
        request = Request("sim", "sim", tuple(messages))
        result = build_final_prompt(request, size, count=count, budget=budget, state=state)
        state = result.state
        return result.request.messages

    return trim


def every_turn(budget: Budget) -> Callable[[Sequence[Message]], Sequence[Message]]:
    """The habit: nothing remembered, just enough left out, from the whole history anew at every turn."""

    def trim(messages: Sequence[Message]) -> Sequence[Message]:
        request = Request("sim", "sim", tuple(messages))
        with patch.object(rolling, "TARGET", 1.0):
            return build_final_prompt(request, size, count=count, budget=budget).request.messages

    return trim


def prefix_report() -> tuple[PrefixFigures, PrefixFigures]:
    """Ours, and the habit's."""
    budget = make_budget(ModelLimits(WINDOW), BudgetSettings(rolling=True))
    return measure(sticky(budget), budget), measure(every_turn(budget), budget)


def lines() -> list[str]:
    """Both, for people."""
    ours, habit = prefix_report()
    return [
        f"{name:22}{figures.changes:>4} of {figures.turns} turns change the prefix (1 in {figures.one_in:.0f}), "
        f"a cache holds {figures.cached_percent:.0f} % of what is sent"
        for name, figures in (("sticky, big steps", ours), ("trim at every turn", habit))
    ]

"""A projection that grows with its history is the projection made anew."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any
from unittest import mock

import pytest

from tui.chat.conversation import projection
from tui.chat.conversation.history import HistoryState
from tui.chat.conversation.projection import Projection, Target
from tui.context.counting.digests import text_digest
from tui.context.reduction.records import Checkpoint, CompactionRecord, CompactionUndo, Cut, SummaryEdit, TrimState
from tui.messages import (
    Attachment,
    Message,
    MessageKind,
    MessageStatus,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    ToolSchema,
)
from tui.providers.base import Capabilities

ABLE = (
    Capabilities(reasoning_return="always"),
    Capabilities(reasoning_return="always", needs_signature=True, prefix_bound=True),
    Capabilities(reasoning_return="tool_loop"),
    Capabilities(reasoning_return="always", reasoning_needs_tools=True, images=False),
    Capabilities(reasoning_return="never"),
    Capabilities(bridges=True, files_after_results=True),
)
TOOLS = (ToolSchema("f", "does", "{}"),)


class RandomHistory:
    """A history in which everything happens that records can say, in any order."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.messages: list[Message] = []
        self.state = HistoryState()
        self.target = Target("p", "m", self.chance.choice(ABLE), tools=TOOLS)
        self._called: list[str] = []

    def step(self) -> None:
        often = (self.ask, self.answer, self.answer, self.results, self.results)
        seldom = (
            self.set_aside,
            self.exclude,
            self.compact,
            self.change_compaction,
            self.trim,
            self.refuse,
            self.switch,
        )
        self.chance.choice(often if self.chance.random() < 0.8 else seldom)()

    def _add(self, role: Role, *parts: Part, kind: MessageKind = "chat", status: MessageStatus = "complete") -> str:
        ident = f"{len(self.messages):04}"
        self.messages.append(Message(role, parts, ident, kind, status, provider="p", model="m"))
        return ident

    def _some(self, most: int) -> list[str]:
        return [m.id for m in self.chance.sample(self.messages, min(len(self.messages), self.chance.randrange(most)))]

    def ask(self) -> None:
        file = Attachment("image", "a.png", "image/png", "a" * 64, 9)
        self._add("user", *self.chance.choice(((Text("q"),), (file, Text("see")), (Text(" "),), ())))

    def answer(self) -> None:
        thought = Reasoning("hm", "p", self.chance.choice(("m", "other")), signature=self.chance.choice(("s", None)))
        beginnings: tuple[tuple[Part, ...], ...] = ((), (thought,), (Text("a"),), (thought, Text("b")))
        parts = self.chance.choice(beginnings)
        for _ in range(self.chance.choice((0, 0, 1, 2))):
            ident = self.chance.choice((f"c{len(self.messages)}", f"d{len(self.messages)}", "same"))
            self._called.append(ident)
            parts = (*parts, ToolCall(ident, "f", "{}"))
        self._add("assistant", *parts, status=self.chance.choice(("complete", "complete", "failed", "streaming")))

    def results(self) -> None:
        late = self.chance.random() < 0.2
        calls = self.chance.sample(self._called, min(2, len(self._called))) if late else self._called[-2:]
        file = Attachment("image", "a.png", "image/png", "a" * 64, 9)
        answers: list[Part] = []
        for ident in calls:
            answers += [ToolResult(ident, "f", self.chance.choice(("r", ""))), *self.chance.choice(((), (file,)))]
        self._add("tool", *answers[self.chance.randrange(2) :])

    def set_aside(self) -> None:
        ids = {m.id for m in self.messages[-self.chance.randrange(1, 5) :]}
        ids ^= self.chance.choice((set(), self.state.set_aside))  # also back again
        self.state = replace(self.state, set_aside=self.state.set_aside ^ ids, frontier=self._frontier())

    def exclude(self) -> None:
        self.state = replace(self.state, excluded=self.state.excluded ^ set(self._some(2)), frontier=self._frontier())

    def _frontier(self) -> str:
        return self.messages[-1].id if self.messages else ""

    def _record(self, record: Checkpoint) -> None:
        self.state = replace(self.state, checkpoints=(*self.state.checkpoints, record))

    def compact(self) -> None:
        ids = sorted(self._some(len(self.messages) + 1))
        if len(ids) < 2:
            return
        cleared = [(m.id, p.call_id) for m in self.messages for p in m.parts if isinstance(p, ToolResult)][:2]
        summary = self._add("user", Text("summary"), kind="summary") if self.chance.random() < 0.8 else ""
        ident, first, last = str(len(self.state.checkpoints)), ids[0], ids[-1]
        here = (ident, 0.0, 9, 1, 2, first, last, summary, tuple(ids[1:3]), tuple(cleared), self._frontier())
        self._record(CompactionRecord(*here))

    def change_compaction(self) -> None:
        ident, of = str(len(self.state.checkpoints)), str(self.chance.randrange(len(self.state.checkpoints) + 1))
        if self.chance.random() < 0.5:
            self._record(CompactionUndo(ident, 0.0, of, self._frontier()))
        else:
            summary = self._add("user", Text("edited"), kind="summary")
            self._record(SummaryEdit(ident, 0.0, of, summary, self._frontier()))

    def trim(self) -> None:
        cuts = tuple(Cut(ident, call, "[cut]") for ident in self._some(4) for call in self._called[-2:])
        dropped = frozenset(self._some(6))
        self.state = replace(self.state, trim=TrimState(cuts, dropped, self._frontier()))

    def refuse(self) -> None:
        if self.chance.random() < 0.5:
            self.state = replace(self.state, void=self._frontier())
        else:
            big = {(ident, text_digest("a")): 0 for ident in self._some(3)}
            self.state = replace(self.state, left_out={**self.state.left_out, **big})

    def switch(self) -> None:
        able, tools = self.chance.choice(ABLE), self.chance.choice(((), TOOLS))
        self.target = replace(self.target, model=self.chance.choice(("m", "other")), capabilities=able, tools=tools)


@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_projection_made_anew(seed: int) -> None:
    past, grown = RandomHistory(seed), Projection()
    for _ in range(100):
        past.step()
        whole, trimmed = Projection().with_rest(past.messages, past.state, past.target)
        assert grown.requests(past.messages, past.state, past.target) == (whole, trimmed), past.messages
        if past.target.capabilities.bridges:
            roles = [message.role for message in trimmed.messages]
            assert ("tool", "user") not in pairwise(roles), trimmed.messages


def test_a_turn_projects_what_came_since_the_last_one() -> None:
    messages = [Message("assistant" if n % 2 else "user", (Text(f"{n}"),), f"{n:04}") for n in range(2_000)]
    state, target, grown = HistoryState(trim=TrimState(dropped=frozenset({"0000"}))), Target("p", "m"), Projection()
    grown.requests(messages, state, target)
    looked_at: list[int] = []

    def counted(active: tuple[Message, ...], *arguments: Any, **named: Any) -> tuple[Message, ...]:
        looked_at.append(len(active))
        return original(active, *arguments, **named)

    original = projection._outgoing
    with mock.patch.object(projection, "_outgoing", counted):
        for number in range(2_000, 2_010):
            messages.append(Message("assistant" if number % 2 else "user", (Text("x"),), f"{number:04}"))
            before, after = grown.requests(messages, state, target)
            assert (len(before.messages), len(after.messages)) == (number + 1, number + 1)
    assert max(looked_at) <= 2

"""Trims as records: each holds what changed, and together they are the state that was in force when the last was made.

The model is one whole state for each trim, as versions before them wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from tests.context.conversations import budget, count, estimate
from tests.messages import user
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.history import RecordKind
from tui.chat.conversation.projection import Target
from tui.chat.interchange.fork import fork_session
from tui.chat.store.database import new_id
from tui.chat.store.store import Record, SessionInfo, SessionStore
from tui.context.reduction.records import (
    NO_TRIM,
    CompactionRecord,
    CompactionUndo,
    Cut,
    TrimState,
    fold_trims,
    trim_to_json,
)
from tui.context.reduction.rolling import ContextOverflowError, build_final_prompt
from tui.messages import Message, Part, Role, Text, ToolCall, ToolResult

TARGET = Target("test", "model")


def opened(store: SessionStore, session: str) -> Conversation:
    info = store.find(session)
    conversation = Conversation(store, info, store.messages(session), store.records(session))
    conversation.target = TARGET
    return conversation


def trims(conversation: Conversation) -> list[Record]:
    return [record for record in conversation._records if record.kind == RecordKind.TRIM]


class Rolling:
    """A conversation under rolling context to which anything happens, and the state after each trim."""

    def __init__(self, store: SessionStore, seed: int = 1, *, older: float = 0.0) -> None:
        self.chance, self.older = Random(seed), older  # the share of trims that an older version makes
        self.store = store
        info = SessionInfo(new_id(), "", "test", "model", 1.0, 1.0, rolling=True)
        store.create_session(info)
        self.conversation = opened(store, info.id)
        self.states: list[tuple[str, TrimState]] = []  # by the record's id

    async def step(self) -> None:
        often, seldom = (self.turn, self.turn, self.trim), (self.off, self.pin, self.rewind, self.compact, self.fork)
        await self.chance.choice(often if self.chance.random() < 0.8 else seldom)()

    async def _add(self, role: Role, *parts: Part) -> str:
        ident = new_id()
        await self.conversation.add_message(Message(role, parts, ident))
        return ident

    async def turn(self) -> None:
        await self._add("user", Text("q" * self.chance.choice((40, 400, 4_000))))
        for _ in range(self.chance.choice((0, 0, 1, 3))):
            call = new_id()
            await self._add("assistant", ToolCall(call, "f", "x" * self.chance.choice((9, 9_000))))
            await self._add("tool", ToolResult(call, "f", "r" * self.chance.choice((40, 4_000))))
        await self._add("assistant", Text("a" * 200))

    async def trim(self) -> None:
        conversation, before = self.conversation, self.conversation.state.trim
        with suppress(ContextOverflowError):
            state = build_final_prompt(
                conversation.untrimmed_request(),
                estimate,
                count=count,
                budget=budget(self.chance.choice((800, 2_000, 2_000, 30_000))),
                state=before,
                pinned=conversation.state.pinned,
                preserve_recent_turns=self.chance.choice((None, 1)),
            ).state
            if state != before:
                await self._record(state)

    async def off(self) -> None:
        await self._record(TrimState(frontier=self.conversation.frontier))

    async def _record(self, state: TrimState) -> None:
        if self.chance.random() < self.older:
            session = self.conversation.info.id
            self.store.add_record(session, RecordKind.TRIM, {"state": state.to_json(), "messages": 1, "tokens": 1})
            self.conversation = opened(self.store, session)
        else:
            await self.conversation.add_trim(state, 1, 1)
        self.states.append((trims(self.conversation)[-1].id, state))

    async def pin(self) -> None:
        if messages := self.conversation.messages:
            pin = {"id": self.chance.choice(messages).id, "on": True}
            await self.conversation.add_record(RecordKind.PIN, pin)

    async def rewind(self) -> None:
        await self.conversation.set_aside([m.id for m in self.conversation.messages[-self.chance.randrange(1, 9) :]])

    async def compact(self) -> None:
        conversation, messages = self.conversation, self.conversation.active()
        if made := conversation.in_force():
            await conversation.add_checkpoint(CompactionUndo(new_id(), 1.0, made[-1].id, conversation.frontier), None)
        elif len(messages) > 4:
            summary = user("summary", id=new_id(), kind="summary")
            ends = messages[0].id, messages[self.chance.randrange(1, 4)].id
            record = CompactionRecord(new_id(), 1.0, 9, 1, 2, *ends, summary.id, frontier=conversation.frontier)
            await conversation.add_checkpoint(record, summary)

    async def fork(self) -> None:
        if not (messages := self.conversation.messages):
            return
        fork = fork_session(self.store, self.conversation.info.id, self.chance.choice(messages[-9:]).id)
        after = next((m.id for m in messages[fork.messages :]), "")
        self.states = [(record, state) for record, state in self.states if not after or record < after]
        self.conversation = opened(self.store, fork.id)

    def check(self) -> None:
        """The state is the model's, and both requests are the same after a restart."""
        expected = self.states[-1][1] if self.states else NO_TRIM
        again = opened(self.store, self.conversation.info.id)
        for conversation in (self.conversation, again):
            trim = conversation.state.trim
            assert replace(trim, cuts=()) == replace(expected, cuts=())
            assert trim.cuts_by_message() == expected.cuts_by_message()
        assert again.request() == self.conversation.request()
        assert again.left_out() == self.conversation.left_out()


@pytest.mark.parametrize("seed", range(8))
async def test_the_records_together_are_the_newest_state(store: SessionStore, seed: int) -> None:
    rolling = Rolling(store, seed, older=0.2 if seed % 2 else 0.0)
    for _ in range(50):
        await rolling.step()
        rolling.check()
    assert rolling.states


async def test_a_message_is_named_by_one_record_until_it_is_sent_again(store: SessionStore) -> None:
    rolling = Rolling(store)
    for _ in range(60):
        await rolling.turn()
        await rolling.trim()
    added = [record.data for record in trims(rolling.conversation)]
    assert sum(trim["adds"] for trim in added) > 10
    for before, trim in pairwise(added):
        named = {*before["state"]["dropped"]} & {*trim["state"]["dropped"]}
        assert not trim["adds"] or not named


def dropping(*ids: str) -> TrimState:
    return TrimState(dropped=frozenset(ids), frontier=ids[-1], left_out=dict.fromkeys(ids, 9))


async def test_a_trim_is_not_read_from_its_records_again_while_the_conversation_is_open(store: SessionStore) -> None:
    conversation = Rolling(store).conversation
    await conversation.add_trim(trim := dropping("1"))
    await conversation.add_record(RecordKind.PIN, {"id": "2", "on": True})
    assert conversation.state.trim is trim


async def test_what_two_programs_trim_is_out_when_it_is_opened_again(store: SessionStore) -> None:
    one = Rolling(store).conversation
    await one.add_trim(dropping("1"))
    other = opened(store, one.info.id)
    await one.add_trim(dropping("1", "2"))
    await other.add_trim(dropping("1", "3"))
    assert opened(store, one.info.id).state.trim == dropping("1", "2", "3")


@pytest.mark.parametrize(
    ("states", "damaged", "result"),
    [
        ((dropping("1"), dropping("1", "2"), dropping("1", "2", "3")), 1, dropping("1", "3")),  # 2 is sent again
        ((dropping("1"), NO_TRIM, dropping("2")), 1, dropping("2")),
        ((dropping("1"), NO_TRIM), 1, dropping("1")),
        ((TrimState((Cut("1", "a", "[cut]"),)), NO_TRIM), 0, NO_TRIM),
        ((TrimState((Cut("1", "a", "[cut]"),)), NO_TRIM, dropping("2")), 2, NO_TRIM),
    ],
)
def test_a_damaged_record_costs_what_it_alone_holds(
    states: Sequence[TrimState], damaged: int, result: TrimState
) -> None:
    records = [trim_to_json(state, before) for before, state in pairwise((NO_TRIM, *states))]
    assert fold_trims(records) == states[-1]
    assert fold_trims([record for number, record in enumerate(records) if number != damaged]) == result

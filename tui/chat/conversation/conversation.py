"""A conversation in memory: the history, the records beside it, and the request for the current model."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

from tui.chat.conversation.history import WITH_FRONTIER, HistoryState, RecordKind, fold_records
from tui.chat.conversation.projection import Projection, Target, active_messages, build_request
from tui.chat.memory_files import NO_MEMORY, MemoryFiles
from tui.chat.runtime.services import uninterruptible
from tui.chat.store.database import StoreError, follow
from tui.chat.store.store import Record, SessionInfo, SessionStore
from tui.context.reduction.groups import whole_groups
from tui.context.reduction.records import (
    Checkpoint,
    CompactionRecord,
    CompactionUndo,
    TrimState,
    checkpoint_to_json,
    in_force,
    trim_to_json,
)
from tui.context.usage.usage import NOTHING_LEFT_OUT, LeftOut
from tui.messages import Message, Request
from tui.providers.base import StreamEvent

log = logging.getLogger(__name__)


class SessionColumns(TypedDict, total=False):
    """The columns of a session's row that a conversation changes."""

    title: str
    provider: str
    model: str
    rolling: bool


class Conversation:
    """One session's history. Changes are stored first and then applied; cancellation leaves none half done."""

    def __init__(
        self,
        store: SessionStore,
        info: SessionInfo,
        messages: list[Message],
        records: list[Record],
        memory: MemoryFiles = NO_MEMORY,
    ) -> None:
        self.store = store
        self.info = info
        self.messages = messages
        self.memory = memory
        self.target = Target(info.provider, info.model, session=info.id)  # of the next request: the session sets it
        self._records = records
        self.state = fold_records(records)
        follow([*(message.id for message in messages[-1:]), *(record.id for record in records[-1:])])
        self.unsaved: list[Message] = []  # replies not stored yet, mostly because the disk is full
        self._writing = threading.Lock()  # guards `unsaved`
        self._projection = Projection()
        self._projecting = threading.Lock()
        self._requests: tuple[Request, Request] | None = None  # untrimmed, and as it is sent
        self._requests_of: tuple[int, HistoryState, Target] | None = None  # what they were made of

    # -- changes -------------------------------------------------------------------------------------------------

    @uninterruptible
    async def add_message(self, message: Message) -> None:
        """Append a finished message. Raises `StoreError`."""
        await asyncio.to_thread(self.store.add_message, self.info.id, message)
        self.messages.append(message)

    async def add_reply(self, message: Message) -> None:
        """Append the final form of a reply. On a full disk it stays in `unsaved` and is stored later."""
        self.unsaved.append(message)
        await asyncio.to_thread(self._write_unsaved)
        self.messages.append(message)

    @uninterruptible
    async def add_record(self, kind: RecordKind, data: dict[str, Any]) -> Record:
        """Append a record other than a trim. Raises `StoreError`."""
        if kind in WITH_FRONTIER:
            data = {**data, "frontier": self.frontier}
        record = await asyncio.to_thread(self.store.add_record, self.info.id, kind, data)
        self._add_stored(record)
        return record

    @uninterruptible
    async def add_trim(self, trim: TrimState, messages: int = 0, tokens: int = 0) -> None:
        """Append a trim, by which so many more messages left; an empty one sends all again. Raises `StoreError`."""
        self._add_stored(await asyncio.to_thread(self._write_trim, trim, messages, tokens), trim)

    @uninterruptible
    async def add_checkpoint(self, record: Checkpoint, summary: Message | None) -> None:
        """Append a compaction (or an edited summary) together with its summary message. Raises `StoreError`."""
        stored = await asyncio.to_thread(self._write_checkpoint, record, summary)
        if summary is not None:
            self.messages.append(summary)
        self._add_stored(stored)

    def _add_stored(self, record: Record, trim: TrimState | None = None) -> None:
        self._records.append(record)
        self.state = fold_records(self._records, trim or self.state.trim)

    def _write_trim(self, trim: TrimState, messages: int, tokens: int) -> Record:
        data = {**trim_to_json(trim, self.state.trim), "messages": messages, "tokens": tokens}
        return self.store.add_record(self.info.id, RecordKind.TRIM, data)

    def _write_checkpoint(self, record: Checkpoint, summary: Message | None) -> Record:
        with self.store.transaction():
            if isinstance(record, CompactionRecord) and record.summary:
                # What no summary of this conversation can replace stays beside it: what another running program has
                # added, and what was left out by hand, including calls with their results.
                here = {message.id for message in self.messages}
                unread = [ident for ident in self.store.message_ids(self.info.id) if ident not in here]
                unread += whole_groups(self.messages, self.state.excluded)
                record = replace(record, kept=tuple(dict.fromkeys((*record.kept, *unread))))
            if summary is not None:
                self.store.add_message(self.info.id, summary)
            return self.store.add_record(self.info.id, RecordKind.CHECKPOINT, checkpoint_to_json(record))

    async def set_aside(self, ids: list[str]) -> None:
        """Remove messages from the conversation; they stay in the history."""
        if ids:
            await self.add_record(RecordKind.SET_ASIDE, {"ids": ids})

    def write_events(self, message: Message, events: Sequence[StreamEvent]) -> None:
        """Store what arrived of a reply, which gets its row with the first event. Not on the event loop."""
        with self.store.transaction(durable=False):
            self.store.add_message(self.info.id, message)
            self.store.append_events(self.info.id, message.id, events)

    def _write_unsaved(self) -> None:
        """Store the replies that are not stored yet, in order, as far as the disk takes them."""
        with self._writing:
            try:
                while self.unsaved:
                    self.store.add_message(self.info.id, self.unsaved[0])
                    del self.unsaved[0]
            except StoreError as error:
                log.warning("answer not saved yet: %s", error)

    @uninterruptible
    async def update(self, **values: Unpack[SessionColumns]) -> None:
        """Set columns of the session; also stores what a full disk held back. Raises `StoreError`."""
        await asyncio.to_thread(self.store.update_session, self.info.id, **values)
        self.info = replace(self.info, **values)
        if self.unsaved:
            await asyncio.to_thread(self._write_unsaved)

    @uninterruptible
    async def save_draft(self, text: str) -> None:
        """Set the draft (see `SessionStore.save_draft`); also stores what a full disk held back."""
        await asyncio.to_thread(self.store.save_draft, self.info.id, text, self.info.draft)
        self.info = replace(self.info, draft=text)
        if self.unsaved:
            await asyncio.to_thread(self._write_unsaved)

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def frontier(self) -> str:
        """The newest message's id; "" in an empty history."""
        return self.messages[-1].id if self.messages else ""

    @property
    def stamp(self) -> str:
        """Changes with every message and record: both are append-only."""
        return f"{self.frontier} {self._records[-1].id if self._records else ''}"

    def request(self) -> Request:
        """What would be sent now. The same object until something changes."""
        return self._both_requests()[1]

    def untrimmed_request(self) -> Request:
        """What would be sent without rolling context."""
        return self._both_requests()[0]

    def request_answered_last(self) -> Request | None:
        """The request as it was after the current model's last answer; None if no record has been added since."""
        name = self.target.provider, self.target.model
        measured = (
            m.id
            for m in reversed(self.messages)
            if m.usage and m.usage.source == "provider" and (m.provider, m.model) == name
        )
        last = next(measured, None)
        if last is None or not self._records or self._records[-1].id < last:
            return None
        state = fold_records(record for record in self._records if record.id < last)
        return build_request([m for m in self.messages if m.id <= last], state, self.target)

    def _both_requests(self) -> tuple[Request, Request]:
        with self._projecting:  # two threads may ask, and what is asked for may change meanwhile
            while self._requests is None or self._requests_of != self._inputs:
                inputs = self._inputs
                self._requests, self._requests_of = self._projection.requests(self.messages, *inputs[1:]), inputs
            return self._requests

    @property
    def _inputs(self) -> tuple[int, HistoryState, Target]:
        return len(self.messages), self.state, self.target

    def active(self) -> tuple[Message, ...]:
        """The messages that compaction works on."""
        return active_messages(self.messages, self.state, self.target)

    def last_answers(self) -> list[str] | None:
        """The ids of the messages after the person's last active one, without summaries.

        None if there is none, or a summary replaces it.
        """
        active, hidden = self.active(), self.state.set_aside | self.state.excluded
        questions = (m for m in reversed(self.messages) if m.role == "user" and m.kind == "chat" and m.id not in hidden)
        question = next(questions, None)
        if question is None or all(m.id != question.id for m in active):
            return None
        later = {m.id for m in active if m.kind != "summary" and m.id > question.id}
        failed = {m.id for m in self.messages if m.status == "failed" and m.id > question.id}
        return sorted(later | failed)

    def not_sent(self) -> Mapping[str, str]:
        """The messages that are not sent, by id, and why: "set aside", "excluded", "trimmed" or "compacted".

        A trimmed tool result is still sent, shortened, and not listed. Undone summaries are "set aside".
        """
        state, sent = self.state, {message.id for message in self.request().messages}
        summaries = {c.summary for c in state.checkpoints if not isinstance(c, CompactionUndo)}
        reasons: dict[str, str] = {}
        for message in self.messages:
            if message.id in sent:
                continue
            if message.id in state.set_aside or message.id in summaries:
                reasons[message.id] = "set aside"
            elif message.id in state.excluded:
                reasons[message.id] = "excluded"
            elif message.id in state.trim.dropped:
                reasons[message.id] = "trimmed"
            elif message.parts:
                reasons[message.id] = "compacted" if state.checkpoints else "trimmed"
        return reasons

    def left_out(self) -> LeftOut:
        """What rolling context leaves out of the next request, as it was counted when it left."""
        trim = self.state.trim
        if trim.empty:
            return NOTHING_LEFT_OUT
        sizes = [trim.left_out[m.id] for m in self.untrimmed_request().messages if m.id in trim.left_out]
        return LeftOut(len(sizes), sum(sizes))

    def in_force(self) -> tuple[CompactionRecord, ...]:
        """The compactions applied to the next request, oldest first.

        Goes through every message: off the event loop if called often.
        """
        state = self.state
        there = [m for m in self.messages if m.id not in state.set_aside] if state.checkpoints else []
        return in_force(there, state.checkpoints)

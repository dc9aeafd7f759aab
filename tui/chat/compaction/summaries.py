"""Summaries that a person reads and changes: before a compaction takes effect, or while one is in force."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tui.chat.compaction.compactor import Compactor
from tui.chat.compaction.summarise import SummaryFailedError, summary_text
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import CompactionFinished
from tui.chat.conversation.meter import Meter
from tui.chat.store.database import StoreError
from tui.chat.store.ids import new_id
from tui.context.reduction.checkpoints import CompactionRecord, SummaryEdit, active_compactions
from tui.context.reduction.compaction import CompactionRefusedError, Summarise, accept_compaction, accept_edit
from tui.context.usage.usage import ContextUsage
from tui.messages import Message
from tui.providers.base import ProviderError


@dataclass(frozen=True, slots=True)
class SummaryDraft:
    """A pending compaction. `text` is the model's summary without the heading it is sent with."""

    plan: Summarise
    usage: ContextUsage
    text: str
    stamp: str  # the state of the conversation it was made for


@dataclass(frozen=True, slots=True)
class CurrentSummary:
    """A summary in force. `text` is without the heading it is sent with, `record` is its compaction."""

    record: CompactionRecord
    message: Message
    text: str


Subject: TypeAlias = SummaryDraft | CurrentSummary

Start: TypeAlias = Callable[[Coroutine[Any, Any, SummaryDraft]], "asyncio.Task[SummaryDraft]"]
"""Runs a session's single task; its `cancel` ends it."""

FAILURES = (CompactionRefusedError, SummaryFailedError, ProviderError, StoreError)
"""Errors of a compaction or a changed summary; `str()` is one line for a person, and nothing was changed."""


@dataclass(frozen=True, slots=True)
class SummaryEffect:
    """The effect of a summary: its tokens, and those of the next request `before` and `after`.

    `problem` says why it would be refused; "" if accepted.
    """

    summary: int
    before: int
    after: int
    problem: str = ""

    @property
    def replaced(self) -> int:
        """Tokens removed by a compaction: `before`, minus these, plus the summary, is `after`."""
        return self.before - self.after + self.summary


class Summaries:
    """The summaries of one conversation, under the same rules as automatic compactions."""

    def __init__(self, conversation: Conversation, meter: Meter, compactor: Compactor, start: Start) -> None:
        self._conversation = conversation
        self._meter = meter
        self._compactor = compactor
        self._start = start

    async def draft(self, instructions: str = "") -> SummaryDraft:
        """Let the model summarise the older part without changing anything. The call is billed like any other.

        Raises `CompactionRefusedError`, `SummaryFailedError`, `ProviderError`.
        """
        task = self._start(self._draft(instructions))
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()  # if this call itself is cancelled
        if task.cancelled():
            raise SummaryFailedError("Compaction cancelled")
        return task.result()

    async def _draft(self, instructions: str) -> SummaryDraft:
        usage = await self._meter.usage()
        stamp = self._conversation.stamp
        plan, text = await self._compactor.draft(usage, instructions)
        return SummaryDraft(plan, usage, text, stamp)

    def current(self, message_id: str = "") -> CurrentSummary | None:
        """The summary in force that is this message, or the newest one; None if there is none to read."""
        sent = {m.id: m for m in self._conversation.request().messages if m.kind == "summary"}
        for record in reversed(active_compactions(self._conversation.state.checkpoints)):
            if record.summary in sent and message_id in ("", record.summary):
                message = sent[record.summary]
                return CurrentSummary(record, message, summary_text(message.text))
        return None

    async def measure(self, subject: Subject, text: str) -> SummaryEffect:
        """The size of the next request with `text` as the summary, measured like every request."""
        return await asyncio.to_thread(self._measure, subject, text)

    def _measure(self, subject: Subject, text: str) -> SummaryEffect:
        summary = self._compactor.summary_message(text)
        match subject:
            case SummaryDraft():
                record, usage = self._compactor.make_record(subject.plan, summary, subject.usage)
                before, after = record.before, record.after
            case CurrentSummary():
                edit, usage = self._edit(subject, summary)
                before, after = edit.before, edit.after
        row = next((row for row in usage.rows if row.key == "summaries"), None)
        tokens = sum(item.tokens for item in row.items if item.ref == summary.id) if row is not None else 0
        try:
            self._check(subject, text, before, after)
        except CompactionRefusedError as error:
            return SummaryEffect(tokens, before, after, str(error))
        return SummaryEffect(tokens, before, after)

    async def accept(self, draft: SummaryDraft, text: str) -> CompactionFinished:
        """Compact with `text` as the summary. Raises `CompactionRefusedError`, `StoreError`."""
        summary = self._compactor.summary_message(text)
        record, _ = await asyncio.to_thread(self._compactor.make_record, draft.plan, summary, draft.usage)
        self._check(draft, text, record.before, record.after)
        await self._conversation.add_checkpoint(record, summary)
        return CompactionFinished(record.messages, record.before, record.after, summary)

    async def edit(self, current: CurrentSummary, text: str) -> tuple[SummaryEdit, Message]:
        """Replace a summary in force by `text`. Raises `CompactionRefusedError`, `StoreError`."""
        summary = self._compactor.summary_message(text)
        edit, _ = await asyncio.to_thread(self._edit, current, summary)
        self._check(current, text, edit.before, edit.after)
        await self._conversation.add_checkpoint(edit, summary)
        return edit, summary

    def _edit(self, current: CurrentSummary, summary: Message) -> tuple[SummaryEdit, ContextUsage]:
        conversation = self._conversation
        edit = SummaryEdit(new_id(), time.time(), current.record.id, summary.id, conversation.frontier)
        before = self._meter.measure(conversation.request()).total
        after = self._compactor.measure_under(edit, summary)
        return replace(edit, before=before, after=after.total), after

    def _check(self, subject: Subject, text: str, before: int, after: int) -> None:
        """Raise `CompactionRefusedError` if it can't be accepted."""
        if not text.strip():
            raise CompactionRefusedError("An empty summary would leave all of it out: write something.")
        match subject:
            case SummaryDraft(usage=usage, stamp=stamp):
                if stamp != self._conversation.stamp:
                    raise CompactionRefusedError("The conversation has gone on since this summary was made.")
                accept_compaction(before, after, usage.budget.compaction_at or usage.budget.max_input)
            case CurrentSummary(record=record):
                in_force = self.current(subject.message.id)
                if in_force is None or in_force.record.id != record.id:
                    raise CompactionRefusedError("This summary is not in force any more.")
                budget = self._meter.measure(self._conversation.request()).budget
                accept_edit(before, after, budget.compaction_at or budget.max_input)

    async def save_draft(self, text: str) -> None:
        """Save an edited summary that is not decided on yet, for after a crash; "" forgets it. Raises `StoreError`."""
        await asyncio.to_thread(self._conversation.store.put_state, self._draft_key, text or None)

    async def saved_draft(self) -> str:
        """The text last passed to `save_draft`; "" for none."""
        return await asyncio.to_thread(self._conversation.store.get_state, self._draft_key) or ""

    @property
    def _draft_key(self) -> str:
        return f"summary:{self._conversation.info.id}"

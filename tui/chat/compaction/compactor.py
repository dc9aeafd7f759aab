"""Compaction of one conversation, by itself or by hand: nothing is written before the result is accepted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Any, TypeAlias

from tui.chat.compaction.summarise import (
    TRUNCATED_BELOW,
    Summary,
    SummaryFailedError,
    outgoing_summary,
    prefix_request,
    summarise,
    summary_text,
)
from tui.chat.conversation.completion import complete
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import CompactionFinished, CompactionStarted, Emit, Notice
from tui.chat.conversation.history import RecordKind
from tui.chat.conversation.meter import Meter
from tui.chat.conversation.projection import build_request, trimmed_request
from tui.chat.runtime.services import Services
from tui.chat.store.database import StoreError, new_id
from tui.context.reduction.compaction import (
    CompactionPlan,
    CompactionRefusedError,
    Summarise,
    Trigger,
    accept_compaction,
    accept_edit,
    plan_compaction,
    summary_allowance,
)
from tui.context.reduction.records import (
    CompactionRecord,
    CompactionUndo,
    SummaryEdit,
    active_compactions,
    checkpoint_to_json,
    last_undoable,
)
from tui.context.usage.usage import ContextUsage
from tui.messages import Message, Text
from tui.providers.base import ProviderError

PREFIX_MARGIN = 2_000  # tokens that must be free to request a summary at the end of the conversation


class Compactor:
    """Compacts one conversation and reports to `emit`. Nothing changes unless the result is complete and accepted.

    Cancelling it while a summary is being written changes nothing.
    """

    def __init__(self, conversation: Conversation, meter: Meter, services: Services, emit: Emit) -> None:
        self._conversation = conversation
        self._meter = meter
        self._services = services
        self._emit = emit
        self._tried_after: str | None = None  # the latest complete answer when it last began by itself

    async def run(self, trigger: Trigger, *, usage: ContextUsage, instructions: str = "") -> bool:
        """Compact, but by itself only once after each answer; returns whether.

        Raises `CompactionRefusedError`, `SummaryFailedError`, `StoreError`.
        """
        if trigger != "manual":
            answer = self._latest_answer()
            if answer == self._tried_after:
                return False
            self._tried_after = answer
        plan = await asyncio.to_thread(self._plan, trigger, usage)
        self._emit(CompactionStarted(automatic=trigger != "manual"))
        summary = await self._summary(plan, usage, instructions, trigger) if isinstance(plan, Summarise) else None
        message = self.summary_message(summary.text) if summary else None
        record, _ = await asyncio.to_thread(self.make_record, plan, message, usage)
        accept_compaction(record.before, record.after, usage.budget.compaction_at or usage.budget.max_input)
        await self._conversation.add_checkpoint(record, message)
        self._emit(CompactionFinished(record.messages, record.before, record.after, message))
        if summary and summary.cut:
            self._emit(Notice("warning", "The summary met its output limit and ends early; /summary shows it"))
        return True

    async def draft(self, usage: ContextUsage, instructions: str = "") -> tuple[Summarise, str]:
        """Plan a manual compaction and let the model write the summary; nothing changes.

        Raises as `run` does.
        """
        plan = await asyncio.to_thread(self._plan, "manual", usage)
        if not isinstance(plan, Summarise):
            raise CompactionRefusedError("There is nothing older to summarise.")
        return plan, (await self._summary(plan, usage, instructions, "manual")).text

    def summary_message(self, text: str) -> Message:
        """The message of a summary with this text."""
        made_by = self._conversation.target
        return Message(
            "user",
            (Text(outgoing_summary(text)),),
            id=new_id(),
            kind="summary",
            created_at=time.time(),
            provider=made_by.provider,
            model=made_by.model,
        )

    def _latest_answer(self) -> str:
        for message in reversed(self._conversation.messages):
            if message.role == "assistant" and message.status == "complete":
                return message.id
        return ""

    def _plan(self, trigger: Trigger, usage: ContextUsage) -> CompactionPlan:
        conversation, settings = self._conversation, self._meter.settings
        return plan_compaction(
            conversation.active(),
            self._meter.count,
            usage=usage,
            pinned=conversation.state.pinned,
            history=conversation.messages,
            sent=self._meter.request().messages,
            summarise=trigger == "manual",
            target=settings.compaction_target,
            preserve_recent_turns=settings.preserve_recent_turns,
        )

    async def _summary(self, plan: Summarise, usage: ContextUsage, instructions: str, trigger: Trigger) -> Summary:
        """Summarise with the current model, even if another one is to continue; it has to fit `usage`."""
        conversation = self._conversation
        sent = conversation.request()
        summariser = await Meter(conversation, self._services).usage() if self._meter.elsewhere else usage
        budget, allowance = summariser.budget, summary_allowance(usage.budget)
        fits = budget.max_input is not None and summariser.upper_bound + PREFIX_MARGIN <= budget.max_input
        factor = summariser.basis.factor or 1.0  # learned for this model: its tokens per token of the tokenizer
        counter = self._services.counter
        prefix = None
        if fits and trigger != "overflow":
            prefix = prefix_request(sent, plan.source, instructions=instructions, budget=budget, allowance=allowance)
        return await summarise(
            partial(complete, self._services, "compaction"),
            plan.source,
            base=replace(sent, messages=()),
            budget=budget,
            count=lambda text: ceil(max(1.0, factor) * counter.count_text(text, sent.model)),
            instructions=instructions,
            prefix=prefix,
            allowance=allowance,
            least_read=TRUNCATED_BELOW * min(1.0, factor),
        )

    def make_record(
        self, plan: CompactionPlan, summary: Message | None, usage: ContextUsage
    ) -> tuple[CompactionRecord, ContextUsage]:
        """The record of this plan, and the measurement of the next request under it.

        `accept_compaction` decides whether it is accepted. Counts tokens: not on the event loop.
        """
        record = CompactionRecord(
            id=new_id(),
            at=time.time(),
            before=usage.total,
            after=0,
            messages=len(plan.source if isinstance(plan, Summarise) else plan.cleared),
            first=plan.first if isinstance(plan, Summarise) else "",
            last=plan.last if isinstance(plan, Summarise) else "",
            summary=summary.id if summary else "",
            kept=plan.kept if isinstance(plan, Summarise) else (),
            cleared=plan.cleared,
            frontier=self._conversation.frontier,
        )
        after = self.measure_under(record, summary)
        return replace(record, after=after.total), after

    def measure_under(self, record: CompactionRecord | SummaryEdit, summary: Message | None) -> ContextUsage:
        """The measurement of the next request with this record and its summary. Not on the event loop."""
        conversation, target = self._conversation, self._meter.target
        state = replace(conversation.state, checkpoints=(*conversation.state.checkpoints, record))
        messages = [*conversation.messages, summary] if summary else conversation.messages
        return self._meter.measure(trimmed_request(build_request(messages, state, target), state, target))

    async def undo(self) -> CompactionRecord | SummaryEdit | None:
        """Undo the newest compaction, or edited summary; None if there is none. Raises `StoreError`."""
        record = last_undoable(self._conversation.state.checkpoints, self._conversation.in_force())
        if record is not None:
            await self.take_back(record)
        return record

    async def take_back(self, record: CompactionRecord | SummaryEdit) -> None:
        """Append a record that undoes this one. Raises `StoreError`."""
        undo = CompactionUndo(new_id(), time.time(), record.id, self._conversation.frontier)
        await self._conversation.add_record(RecordKind.CHECKPOINT, checkpoint_to_json(undo))


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

"""Compaction of one conversation, by itself or by hand: nothing is written before the result is accepted."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Any, ClassVar, TypeAlias

from tui.chat.compaction.summarise import (
    TRUNCATED_BELOW,
    Summariser,
    Summary,
    SummaryFailedError,
    outgoing_summary,
    summary_text,
)
from tui.chat.conversation.completion import complete
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import CompactionFinished, CompactionStarted, Emit, Notice
from tui.chat.conversation.history import RecordKind
from tui.chat.conversation.meter import Meter
from tui.chat.conversation.projection import build_request
from tui.chat.runtime.services import Services, uninterrupted
from tui.chat.store.database import new_id
from tui.context.reduction.compaction import (
    CompactionPlan,
    CompactionRefusedError,
    Trigger,
    accept_compaction,
    accept_edit,
    plan_compaction,
    size_change,
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
from tui.text.numbers import plural, tokens_exact

PREFIX_MARGIN = 2_000  # tokens that must be free to request a summary at the end of the conversation


Start: TypeAlias = Callable[[Coroutine[Any, Any, "SummaryDraft"]], "asyncio.Task[SummaryDraft]"]
"""Runs a session's single task; its `cancel` ends it."""


@dataclass(eq=False)
class Compactor:
    """Compacts one conversation and reports to `emit`. Nothing changes unless the result is complete and accepted.

    Cancelling it while a summary is being written changes nothing. A person can read and change the summaries, under
    the same rules as for automatic compactions.
    """

    conversation: Conversation
    meter: Meter
    services: Services
    emit: Emit
    start: Start
    _tried_after: str | None = None  # the latest complete answer when it last began by itself

    async def run(self, trigger: Trigger, *, usage: ContextUsage, instructions: str = "") -> bool:
        """Compact, but by itself only once after each answer; returns whether.

        Raises `CompactionRefusedError`, `SummaryFailedError`, `StoreError`.
        """
        if trigger != "manual":
            answers = (m for m in reversed(self.conversation.messages) if m.role == "assistant")
            answer = next((m.id for m in answers if m.status == "complete"), "")
            if answer == self._tried_after:
                return False
            self._tried_after = answer
        plan = await asyncio.to_thread(self.plan, trigger, usage)
        self.emit(CompactionStarted(automatic=trigger != "manual"))
        summary = await self.summary(plan, usage, instructions, trigger) if plan.source else None
        message = self.summary_message(summary.text) if summary else None
        record, _ = await asyncio.to_thread(self.make_record, plan, message, usage)
        limit = usage.budget.compaction_at or usage.budget.max_input
        accept_compaction(record.before, record.after, limit, record.source)
        await self.conversation.add_checkpoint(record, message)
        self.emit(CompactionFinished(record, message))
        if summary and summary.cut:
            self.emit(Notice("warning", "The summary met its output limit and ends early; /summary shows it"))
        return True

    def summary_message(self, text: str) -> Message:
        """The message of a summary with this text."""
        made_by = self.conversation.target
        return Message(
            "user",
            (Text(outgoing_summary(text)),),
            id=new_id(),
            kind="summary",
            created_at=time.time(),
            provider=made_by.provider,
            model=made_by.model,
        )

    def plan(self, trigger: Trigger, usage: ContextUsage) -> CompactionPlan:
        """What a compaction replaces. Counts tokens: not on the event loop. Raises `CompactionRefusedError`."""
        conversation, settings = self.conversation, self.meter.settings
        return plan_compaction(
            conversation.active(),
            self.meter.count,
            usage=usage,
            pinned=conversation.state.pinned,
            history=conversation.messages,
            sent=self.meter.request().messages,
            summarise=trigger == "manual",
            target=settings.compaction_target,
            preserve_recent_turns=settings.preserve_recent_turns,
        )

    async def summary(self, plan: CompactionPlan, usage: ContextUsage, instructions: str, trigger: Trigger) -> Summary:
        """Summarise with the current model, even if another one is to continue; it has to fit `usage`."""
        conversation, counter = self.conversation, self.services.counter
        sent = conversation.request()
        same_model = self.meter.target is conversation.target
        current_usage = usage if same_model else await Meter(conversation, self.services).usage()
        factor = current_usage.basis.factor or 1.0  # learned for this model: its tokens per token of the tokenizer
        summariser = Summariser(
            partial(complete, self.services, "compaction"),
            sent,
            current_usage.budget,
            summary_allowance(usage.budget),
            count=lambda text: ceil(max(1.0, factor) * counter.count_text(text, sent.model)),
            instructions=instructions,
            least_read=TRUNCATED_BELOW * min(1.0, factor),
        )
        most = current_usage.budget.max_input
        fits = most is not None and current_usage.upper_bound + PREFIX_MARGIN <= most
        prefix = summariser.prefix_request(plan.source) if fits and trigger != "overflow" else None
        return await summariser.summarise(plan.source, prefix)

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
            messages=len(plan.source or plan.cleared),
            first=plan.first,
            last=plan.last,
            summary=summary.id if summary else "",
            kept=plan.kept,
            cleared=plan.cleared,
            frontier=self.conversation.frontier,
            source=usage.source,
        )
        after = self.measure_under(record, summary)
        return replace(record, after=after.total), after

    def measure_under(self, record: CompactionRecord | SummaryEdit, summary: Message | None) -> ContextUsage:
        """The measurement of the next request with this record and its summary. Not on the event loop."""
        conversation, target = self.conversation, self.meter.target
        state = replace(conversation.state, checkpoints=(*conversation.state.checkpoints, record))
        messages = [*conversation.messages, summary] if summary else conversation.messages
        return self.meter.measure(build_request(messages, state, target))

    async def undo(self) -> CompactionRecord | SummaryEdit | None:
        """Undo the newest compaction, or edited summary; None if there is none. Raises `StoreError`."""
        record = last_undoable(self.conversation.state.checkpoints, self.conversation.in_force())
        if record is not None:
            await self.take_back(record)
        return record

    async def take_back(self, record: CompactionRecord | SummaryEdit) -> None:
        """Append a record that undoes this one. Raises `StoreError`."""
        undo = CompactionUndo(new_id(), time.time(), record.id, self.conversation.frontier)
        await self.conversation.add_record(RecordKind.CHECKPOINT, checkpoint_to_json(undo))

    # -- summaries that a person reads and changes -------------------------------------------------------------------

    async def draft_summary(self, instructions: str = "") -> SummaryDraft:
        """Let the model summarise the older part without changing anything. The call is billed like any other.

        It is the session's task meanwhile. Raises `CompactionRefusedError`, `SummaryFailedError`, `ProviderError`.
        """
        task = self.start(self._draft(instructions))
        try:
            await asyncio.wait([task])
        finally:  # if this call itself is cancelled
            task.cancel()
            await uninterrupted(asyncio.wait([task]))
        if task.cancelled():
            raise SummaryFailedError("Compaction cancelled")
        return task.result()

    async def _draft(self, instructions: str) -> SummaryDraft:
        usage = await self.meter.usage()
        stamp = self.conversation.stamp
        plan = await asyncio.to_thread(self.plan, "manual", usage)
        if not plan.source:
            raise CompactionRefusedError("There is nothing older to summarise.")
        summary = await self.summary(plan, usage, instructions, "manual")
        return SummaryDraft(self, plan, usage, summary.text, stamp)

    def current_summary(self, message_id: str = "") -> CurrentSummary | None:
        """The summary in force that is this message, or the newest one; None if there is none to read."""
        sent = {m.id: m for m in self.conversation.request().messages if m.kind == "summary"}
        for record in reversed(active_compactions(self.conversation.state.checkpoints)):
            if record.summary in sent and message_id in ("", record.summary):
                return CurrentSummary(self, record, sent[record.summary])
        return None

    async def save_draft(self, text: str) -> None:
        """Save an edited summary that is not decided on yet, for after a crash; "" forgets it. Raises `StoreError`."""
        await asyncio.to_thread(self.conversation.store.put_state, self._draft_key, text or None)

    async def saved_draft(self) -> str:
        """The text last passed to `save_draft`; "" for none."""
        return await asyncio.to_thread(self.conversation.store.get_state, self._draft_key) or ""

    @property
    def _draft_key(self) -> str:
        return f"summary:{self.conversation.info.id}"


@dataclass(frozen=True, slots=True)
class SummaryEffect:
    """The effect of a summary: its tokens, and those of the next request `before` (from `source`) and `after`.

    `problem` says why it would be refused; "" if accepted.
    """

    summary: int
    before: int
    after: int
    source: str = "exact"
    problem: str = ""

    @property
    def replaced(self) -> int:
        """Tokens removed by a compaction: `before`, minus these, plus the summary, is `after`."""
        return self.before - self.after + self.summary

    @property
    def line(self) -> str:
        """`next request 121,400 -> ~18,300 tokens (-85 %) · summary ~1,820 tokens`."""
        figures = size_change(self.before, self.after, self.source)
        return f"next request {figures} · summary {tokens_exact(self.summary, 'estimated')} tokens"


class SummaryText(ABC):
    """A summary that a person may change: `text`, without the heading it is sent with.

    Its methods raise `ExpectedError`; nothing was changed then. `done` is what was stored once a text was accepted.
    """

    title: ClassVar[str]
    accept_label: ClassVar[str]
    can_ask: ClassVar[bool] = False  # whether the model can write another one

    def __init__(self, compactor: Compactor, text: str) -> None:
        self.compactor = compactor
        self.text = text
        self.done: tuple[CompactionRecord | SummaryEdit, Message] | None = None

    @abstractmethod
    def about(self, effect: SummaryEffect) -> str:
        """A line on what the summary replaces."""

    @abstractmethod
    def _record(self, summary: Message) -> tuple[CompactionRecord | SummaryEdit, ContextUsage]:
        """What would be stored, and the next request under it. Not on the event loop."""

    @abstractmethod
    def _check(self, record: CompactionRecord | SummaryEdit, limit: int | None) -> None:
        """Raise `CompactionRefusedError` if the next request may not change so, or the conversation has.

        `limit` is in tokens.
        """

    async def measure(self, text: str) -> SummaryEffect:
        """The size of the next request with this text, measured like every request."""
        return (await asyncio.to_thread(self._measured, text))[2]

    async def accept(self, text: str) -> None:
        """Put the text in force."""
        record, summary, effect = await asyncio.to_thread(self._measured, text)
        if effect.problem:
            raise CompactionRefusedError(effect.problem)
        await self.compactor.conversation.add_checkpoint(record, summary)
        self.done = record, summary

    def _measured(self, text: str) -> tuple[CompactionRecord | SummaryEdit, Message, SummaryEffect]:
        summary = self.compactor.summary_message(text)
        record, usage = self._record(summary)
        items = [item for row in usage.rows if row.key == "summaries" for item in row.items]
        tokens = sum(item.tokens for item in items if item.ref == summary.id)
        problem = "" if text.strip() else "An empty summary would leave all of it out: write something."
        try:
            self._check(record, usage.budget.compaction_at or usage.budget.max_input)
        except CompactionRefusedError as error:
            problem = problem or str(error)
        return record, summary, SummaryEffect(tokens, record.before, record.after, record.source, problem)

    async def ask(self, instructions: str) -> None:
        """Let the model write another one, which is in `text` afterwards."""
        raise NotImplementedError


class SummaryDraft(SummaryText):
    """The model's summary for a pending compaction; `stamp` is the state of the conversation it was made for."""

    title = "Compaction preview"
    accept_label = "compact with this"
    can_ask = True

    def __init__(self, compactor: Compactor, plan: CompactionPlan, usage: ContextUsage, text: str, stamp: str) -> None:
        super().__init__(compactor, text)
        self.plan = plan
        self.usage = usage
        self.stamp = stamp

    def about(self, effect: SummaryEffect) -> str:
        """How much it replaces; both figures and the summary add up to the next request."""
        plan = self.plan
        replaced = plural(len(plan.source), "message")
        if plan.cleared:
            replaced += f" and {plural(len(plan.cleared), 'old tool result')}"
        stay = f"; {len(plan.kept):,} of them stay as they are" if plan.kept else ""
        return f"The summary replaces {replaced}, {tokens_exact(effect.replaced, 'estimated')} tokens{stay}."

    def _record(self, summary: Message) -> tuple[CompactionRecord, ContextUsage]:
        return self.compactor.make_record(self.plan, summary, self.usage)

    def _check(self, record: CompactionRecord | SummaryEdit, limit: int | None) -> None:
        if self.stamp != self.compactor.conversation.stamp:
            raise CompactionRefusedError("The conversation has gone on since this summary was made.")
        accept_compaction(record.before, record.after, limit, record.source)

    async def ask(self, instructions: str) -> None:
        """Request another one, which is billed too."""
        draft = await self.compactor.draft_summary(instructions)
        self.plan, self.usage, self.text, self.stamp = draft.plan, draft.usage, draft.text, draft.stamp


class CurrentSummary(SummaryText):
    """A summary in force: `message`, of the compaction `record`."""

    title = "Summary"
    accept_label = "keep this"

    def __init__(self, compactor: Compactor, record: CompactionRecord, message: Message) -> None:
        super().__init__(compactor, summary_text(message.text))
        self.record = record
        self.message = message

    def about(self, effect: SummaryEffect) -> str:
        """What it replaces."""
        return f"It replaces {plural(self.record.messages, 'message')}. /undo undoes a change."

    def _record(self, summary: Message) -> tuple[SummaryEdit, ContextUsage]:
        conversation, compactor = self.compactor.conversation, self.compactor
        edit = SummaryEdit(new_id(), time.time(), self.record.id, summary.id, conversation.frontier)
        before = compactor.meter.measure(conversation.request())
        usage = compactor.measure_under(edit, summary)
        return replace(edit, before=before.total, after=usage.total, source=before.source), usage

    def _check(self, record: CompactionRecord | SummaryEdit, limit: int | None) -> None:
        in_force = self.compactor.current_summary(self.message.id)
        if in_force is None or in_force.record.id != self.record.id:
            raise CompactionRefusedError("This summary was replaced or undone.")
        accept_edit(record.before, record.after, limit)

    async def accept(self, text: str) -> None:
        """Change it, unless it is the same."""
        if text.strip() != self.text:
            await super().accept(text)

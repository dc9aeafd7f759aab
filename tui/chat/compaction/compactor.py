"""Compaction of one conversation: decide, clear or summarise, check, and only then write the record."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from functools import partial
from math import ceil

from tui.chat.compaction.prompt import prefix_request
from tui.chat.compaction.summarise import TRUNCATED_BELOW, Summary, outgoing_summary, summarise
from tui.chat.conversation.completion import complete
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import CompactionFinished, CompactionStarted, Emit, Notice
from tui.chat.conversation.history import RecordKind
from tui.chat.conversation.meter import Meter
from tui.chat.conversation.projection import build_request, trimmed_request
from tui.chat.runtime.services import Services
from tui.chat.store.ids import new_id
from tui.context.reduction.checkpoints import (
    CompactionRecord,
    CompactionUndo,
    SummaryEdit,
    checkpoint_to_json,
    last_undoable,
)
from tui.context.reduction.compaction import (
    CompactionPlan,
    CompactionRefusedError,
    Summarise,
    Trigger,
    accept_compaction,
    plan_compaction,
    should_compact,
    summary_allowance,
)
from tui.context.usage.usage import ContextUsage
from tui.messages import Message, Text

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
        """Compact if due; returns whether. Raises `CompactionRefusedError`, `SummaryFailedError`, `StoreError`."""
        if not await asyncio.to_thread(self._is_due, trigger, usage):
            return False
        if trigger != "manual":
            self._tried_after = self._latest_answer()
        self._emit(CompactionStarted(automatic=trigger != "manual"))
        plan = await asyncio.to_thread(self._plan, trigger, usage)
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
        await asyncio.to_thread(self._is_due, "manual", usage)
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

    def _is_due(self, trigger: Trigger, usage: ContextUsage) -> bool:
        last = self._meter.request().messages[-1:]
        return should_compact(
            usage,
            trigger=trigger,
            enabled=self._meter.settings.compaction != "off",
            tried=self._tried_after == self._latest_answer(),
            last_message_tokens=sum(map(self._meter.count, last)),
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
            count=lambda text: ceil(max(1.0, factor) * (counter.count_text(text, sent.model) or len(text))),
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

"""Room for the next request: the same `ContextUsage` decides whether it fits, what is trimmed, when to compact."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from tui.chat import history
from tui.chat.compactor import Compactor
from tui.chat.conversation import Conversation
from tui.chat.events import CompactionFinished, ContextTrimmed, Notice, SessionEvent
from tui.chat.meter import Meter
from tui.chat.summarize import SummaryFailedError
from tui.context.compaction import CompactionRefusedError, Trigger
from tui.context.limits import Budget, check_budget
from tui.context.passes import TruncationConfig
from tui.context.rolling import ContextOverflowError, PromptResult, build_final_prompt
from tui.context.trimming import TrimRecord
from tui.context.usage import ContextUsage
from tui.providers.base import ProviderError


class Room:
    """Makes room in one conversation. `usage` is the measure of the request that `make` left ready."""

    def __init__(self, conversation: Conversation, meter: Meter, compactor: Compactor) -> None:
        self._conversation = conversation
        self._meter = meter
        self._compactor = compactor
        self._told = False  # that compacting is of no use here

    async def make(self, *, refused: bool = False) -> AsyncIterator[SessionEvent]:
        """See to it that the next request fits. Raises `ContextOverflowError` when it can't be made to.

        `refused`: the server has just refused it as too large, whatever the numbers here say.
        """
        usage = await (self._meter.usage() if refused else self._meter.settled())
        budget = _narrowed(usage) if refused else usage.budget
        if self._conversation.info.rolling:
            async for event in self._trim(budget):
                yield event
        else:
            async for event in self._compact(usage, budget, "overflow" if refused else "auto"):
                yield event
        usage = await self._meter.usage()
        if not check_budget(usage.total, budget).within_budget:
            raise ContextOverflowError(usage.total, budget.max_input or 0)

    # -- rolling context -----------------------------------------------------------------------------------------

    async def _trim(self, budget: Budget) -> AsyncIterator[SessionEvent]:
        result = await self._meter.in_thread(self._final_prompt, budget)
        state = self._conversation.state.trim
        if result.state != state:
            data = {"state": result.state.to_json(), "messages": len(result.message_ids), "tokens": result.freed_tokens}
            await self._conversation.add_record(history.TRIM, data)
        if result.trimmed:
            yield ContextTrimmed(len(result.message_ids), result.freed_tokens, result.message_ids)
        elif result.untrimmed:
            yield Notice("info", "Everything fits again: what was left out is sent once more")
        if result.max_tokens:
            await self._note(result)

    def _final_prompt(self, budget: Budget) -> PromptResult:
        conversation = self._conversation
        return build_final_prompt(
            conversation.untrimmed_request(),
            self._meter.estimate,
            bound=self._meter.bound,
            count=self._meter.count,
            budget=budget,
            state=conversation.state.trim,
            pinned=conversation.state.pinned,
            config=TruncationConfig(preserve_recent_turns=self._meter.settings.preserve_recent_turns),
            prefix_bound=conversation.target.capabilities.prefix_bound,
        )

    async def _note(self, result: PromptResult) -> None:
        """Keep the last trims for `/usage`."""
        before, after = (100 * tokens / (result.max_tokens or 1) for tokens in (result.before_tokens, result.tokens))
        trim = None
        if result.trimmed:
            trim = TrimRecord(time.time(), len(result.message_ids), result.freed_tokens, before, after)
        await asyncio.to_thread(self._meter.note_trim, after, trim)

    # -- compaction ----------------------------------------------------------------------------------------------

    async def _compact(self, usage: ContextUsage, budget: Budget, trigger: Trigger) -> AsyncIterator[SessionEvent]:
        enabled = self._meter.settings.for_model(self._meter.full_name).compaction != "off"
        try:
            async for event in self._compactor.run(trigger, usage=usage):
                self._told = self._told and not isinstance(event, CompactionFinished)
                yield event
        except CompactionRefusedError as error:
            if check_budget(usage.upper_bound, budget).within_budget:
                if not self._told:
                    yield Notice("warning", str(error))
                self._told = True  # until a compaction succeeds: it would be the same before every request
                return
        except (SummaryFailedError, ProviderError) as error:
            yield Notice("warning", f"Compaction failed: {str(error).rstrip('.')}. Old content is left out instead")
        if not enabled:
            return
        fits = check_budget((await self._meter.usage()).upper_bound, budget).within_budget
        if not fits or not self._conversation.state.trim.empty:  # what was left out once may fit again
            async for event in self._trim(budget):
                yield event


def _narrowed(usage: ContextUsage) -> Budget:
    """The budget after a server refused what `usage` measures.

    A limit that the refusal named is in `usage.budget` already. Where the request was thought to fit that all the same,
    the numbers here are too low, nobody knows by how much: nine tenths of what was refused.
    """
    budget = usage.budget
    if budget.max_input is not None and usage.total > budget.max_input:
        return budget
    return replace(budget, max_input=usage.total * 9 // 10)

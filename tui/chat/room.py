"""Room for the next request: the same `ContextUsage` decides whether it fits, what is trimmed, when to compact."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace

from tui.chat import history
from tui.chat.compactor import Compactor
from tui.chat.conversation import Conversation
from tui.chat.events import ContextTrimmed, Notice, SessionEvent
from tui.chat.meter import Meter
from tui.chat.summarize import SummaryFailedError
from tui.context.compaction import CompactionRefusedError
from tui.context.limits import Budget
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

    async def make(self, *, overflowed: bool = False) -> AsyncIterator[SessionEvent]:
        """See to it that the next request fits. Raises `ContextOverflowError` when it can't be made to.

        `overflowed`: the server has just refused it as too large, so the estimate is not to be trusted alone.
        """
        usage = await self._meter.usage()
        if self._conversation.info.rolling:
            async for event in self._trim(usage, overflowed=overflowed):
                yield event
        else:
            async for event in self._compact(usage, overflowed=overflowed):
                yield event
        usage = await self._meter.usage()
        if overflowed or not self._fits(usage):
            raise_if_over(usage)
        elif self._doubtful(usage):
            await self._meter.count_exactly()
            usage = await self._meter.usage()
            if not self._fits(usage):
                async for event in self.make():
                    yield event
        raise_if_over(usage)

    @staticmethod
    def _fits(usage: ContextUsage) -> bool:
        return not usage.over

    def _doubtful(self, usage: ContextUsage) -> bool:
        """The estimate fits, its upper bound does not (SPEC 1.6)."""
        limit = usage.budget.max_input
        return limit is not None and usage.source != "exact" and usage.upper_bound > limit

    # -- rolling context -----------------------------------------------------------------------------------------

    async def _trim(self, usage: ContextUsage, *, overflowed: bool) -> AsyncIterator[SessionEvent]:
        budget = usage.budget
        if overflowed and (budget.max_input is None or usage.total <= budget.max_input):
            budget = _below(budget, usage.total)
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

    async def _compact(self, usage: ContextUsage, *, overflowed: bool) -> AsyncIterator[SessionEvent]:
        try:
            async for event in self._compactor.run("overflow" if overflowed else "auto", usage=usage):
                yield event
        except CompactionRefusedError as error:
            yield Notice("warning", str(error))
        except (SummaryFailedError, ProviderError) as error:
            yield Notice("warning", f"Compaction failed ({error}); trimming instead")
            if usage.over or overflowed:
                async for event in self._trim(usage, overflowed=overflowed):
                    yield event


def raise_if_over(usage: ContextUsage) -> None:
    """Raise `ContextOverflowError` where `usage` is over the input budget."""
    if usage.over:
        raise ContextOverflowError(usage.total, usage.budget.max_input or 0)


def _below(budget: Budget, refused: int) -> Budget:
    """A budget for a server that refused `refused` tokens and named no limit: nine tenths of that."""
    most = refused * 9 // 10
    return replace(budget, max_input=most if budget.max_input is None else min(most, budget.max_input))

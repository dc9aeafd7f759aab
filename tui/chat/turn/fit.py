"""Fits the next request into its budget: one `ContextUsage` decides whether to trim, compact or refuse."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from tui.chat.compaction.compactor import Compactor
from tui.chat.compaction.summarise import SummaryFailedError
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import ContextTrimmed, Emit, Notice
from tui.chat.conversation.history import RecordKind
from tui.chat.conversation.meter import Meter
from tui.chat.turn.recovery import Reduce
from tui.context.reduction.compaction import CompactionRefusedError, Trigger, needs_compaction
from tui.context.reduction.records import TrimLog
from tui.context.reduction.rolling import ContextOverflowError, PromptResult, build_final_prompt
from tui.context.usage.limits import Budget
from tui.context.usage.usage import ContextUsage
from tui.providers.base import ProviderError

TRIM_LOG = "trims"  # key in the store's state: the requests under rolling context, for `/usage`
UNSURE_SHARES = (2 / 3, 3 / 4, 9 / 10)  # of a request that was refused although it was expected to fit


class RequestFitter:
    """Trims or compacts one conversation until its next request fits, and reports to `emit`."""

    def __init__(self, conversation: Conversation, meter: Meter, compactor: Compactor, emit: Emit) -> None:
        self._conversation = conversation
        self._meter = meter
        self._compactor = compactor
        self._emit = emit
        self._refusal_told = False  # that compacting does not help

    async def fit(self, reduce: Reduce | None = None) -> ContextUsage:
        """Make the next request fit, and return its measurement. Raises `ContextOverflowError` if that is not possible.

        `reduce`: the server has just refused it as too large, whatever the numbers here say.
        """
        usage = await (self._meter.usage() if reduce else self._meter.usage_to_send())
        budgets = _narrowed(usage, reduce.share) if reduce else (usage.budget,)
        rolling, compacts = self._conversation.info.rolling, self._meter.settings.compaction != "off"
        if rolling:
            await self._trim(budgets)
        elif compacts and (reduce or needs_compaction(usage)):
            await self._compact(usage, budgets, "overflow" if reduce else "auto")
        elif compacts and not self._conversation.state.trim.empty:  # omitted content may fit again
            await self._trim(budgets)
        usage = await self._meter.usage()
        if not budgets[-1].fits(usage.total):
            untried = not rolling and not compacts
            raise ContextOverflowError(usage.total, budgets[-1].max_input or 0, untried=untried)
        return usage

    # -- rolling context -----------------------------------------------------------------------------------------

    async def _trim(self, budgets: Sequence[Budget]) -> None:
        """Trim to the first of `budgets` that can be met; the tightest comes first."""
        result = await asyncio.to_thread(self._final_prompt, budgets)
        state = self._conversation.state.trim
        if result.state != state:
            data = {"state": result.state.to_json(), "messages": len(result.message_ids), "tokens": result.freed_tokens}
            await self._conversation.add_record(RecordKind.TRIM, data)
        if result.trimmed:
            self._emit(ContextTrimmed(len(result.message_ids), result.freed_tokens, result.message_ids))
        elif result.untrimmed:
            self._emit(Notice("info", "Everything fits again: what was left out is sent once more"))
        if result.max_tokens:  # for `/usage`
            utilisation = 100 * result.tokens / result.max_tokens

            def logged(stored: dict[str, Any]) -> dict[str, Any]:
                trims = TrimLog.from_json(stored)
                return asdict(trims.add(utilisation, result.freed_tokens if result.trimmed else None))

            await asyncio.to_thread(self._conversation.store.change_state, TRIM_LOG, logged)

    def _final_prompt(self, budgets: Sequence[Budget]) -> PromptResult:
        conversation = self._conversation
        within = partial(
            build_final_prompt,
            conversation.untrimmed_request(),
            self._meter.estimate,
            bound=self._meter.bound,
            count=self._meter.count,
            state=conversation.state.trim,
            pinned=conversation.state.pinned,
            preserve_recent_turns=self._meter.settings.preserve_recent_turns,
            prefix_bound=conversation.target.capabilities.prefix_bound,
            trimmed=conversation.request(),
        )
        for budget in budgets[:-1]:
            with contextlib.suppress(ContextOverflowError):
                return within(budget=budget)
        return within(budget=budgets[-1])

    # -- compaction ----------------------------------------------------------------------------------------------

    async def _compact(self, usage: ContextUsage, budgets: Sequence[Budget], trigger: Trigger) -> None:
        """Compact; trim if that failed and the request does not fit."""
        failed = ""
        try:
            if await self._compactor.run(trigger, usage=usage):
                self._refusal_told = False
        except CompactionRefusedError as error:
            if budgets[0].fits(usage.upper_bound):
                if not self._refusal_told:
                    self._emit(Notice("warning", str(error)))
                self._refusal_told = True  # until a compaction succeeds: it would fail again before every request
                return
        except (SummaryFailedError, ProviderError) as error:
            failed = str(error).rstrip(".")
        fits = budgets[0].fits((await self._meter.usage()).upper_bound)
        if failed:
            how = "The request still fits" if fits else "Old content is left out instead"
            self._emit(Notice("warning", f"Compaction failed: {failed}. {how}"))
        if not fits or not self._conversation.state.trim.empty:
            await self._trim(budgets)


def _narrowed(usage: ContextUsage, share: float | None = None) -> tuple[Budget, ...]:
    """The budgets to try after a server refused the request measured by `usage`, tightest first.

    A limit named in the refusal is part of `usage.budget` already. If the request was expected to fit even so, the
    numbers here are too low by an unknown amount: use nine tenths of the refused size. If nothing was ever measured
    they may be too low by a third, and the turn has one try left: use less, if possible.
    """
    budget = usage.budget
    if share is not None:
        return (replace(budget, max_input=int(usage.total * share)),)
    if usage.source != "estimated" and budget.max_input is not None and usage.total > budget.max_input:
        return (budget,)
    shares = UNSURE_SHARES if usage.source == "estimated" else UNSURE_SHARES[-1:]
    sizes = [int(usage.total * share) for share in shares]
    return tuple(replace(budget, max_input=min(size, budget.max_input or size)) for size in sizes)

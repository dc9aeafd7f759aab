"""One request of a turn: made to fit its budget, sent, stored as its answer arrives, measured, and logged."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from tui.chat.attachments import with_bytes
from tui.chat.compaction.compactor import Compactor
from tui.chat.compaction.summarise import SummaryFailedError
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import ContextTrimmed, Emit, Notice, ReplyDelta, ReplyStarted, UsageChanged
from tui.chat.conversation.meter import Meter
from tui.chat.conversation.projection import bridged
from tui.chat.runtime.model_facts import ModelFacts
from tui.chat.runtime.services import Services, end_cancellation, uninterrupted
from tui.chat.store.codec import PartsBuilder
from tui.chat.store.database import StoreError, new_id
from tui.chat.turn.recovery import Reduce
from tui.context.estimate.measurements import Verdict
from tui.context.reduction.compaction import CompactionRefusedError, Trigger
from tui.context.reduction.records import TRIM_LOG, TrimLog
from tui.context.reduction.rolling import ContextOverflowError, PromptResult, build_final_prompt
from tui.context.usage.limits import Budget
from tui.context.usage.usage import ContextUsage, with_reply
from tui.messages import Message, Request, Usage
from tui.providers.base import (
    ModelNamed,
    ProviderError,
    ReasoningDelta,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.3  # lost at most in a kill; a second is promised
CHARACTERS_PER_TOKEN = 4.0  # of a streaming answer; it is measured at its end
MIN_GROWTH, GROWTH = 32, 0.002  # tokens, and share of the request: minimal increment of the displayed number
RAISE_WINDOW = "raise its window (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx), then tell chatctx with /window"
CUT_OFF = "the answer broke off: the stream ended without its end marker"


@dataclass(eq=False)
class Attempt:
    """Sends `request`, which was measured as `usage`, once. `error` is the provider's, if any."""

    conversation: Conversation
    meter: Meter
    services: Services
    emit: Emit
    request: Request
    usage: ContextUsage
    error: ProviderError | None = None
    _save_error: StoreError | None = None
    _verdict: Verdict | None = None  # on the reported input
    _unsaved: list[StreamEvent] = field(default_factory=list)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)  # there is something to save
    _first_event_seconds: float | None = None
    _seconds: float = 0.0
    _size: int = 0  # characters that arrived and will be sent back
    _shown: int = 0  # tokens of them shown last

    def __post_init__(self) -> None:
        provider, model = self.request.provider, self.request.model
        self._builder = PartsBuilder(provider, model)
        self._message = Message(
            "assistant", (), new_id(), status="streaming", created_at=time.time(), provider=provider, model=model
        )

    async def run(self) -> Message:
        """The answer, not yet in the history. If cancelled, it is what has arrived."""
        request, services = self.request, self.services
        complete = await asyncio.to_thread(with_bytes, request, services.store.blob)
        begin = asyncio.to_thread(services.calls.begin, request, self.usage, message=self._message.id, kind="chat")
        call = await uninterrupted(begin)
        self.emit(ReplyStarted(self._message.id, request.provider, request.model))
        reply = await self._read(services.provider(request.provider).stream(complete))
        return await uninterrupted(self._finished(call, reply))

    # -- streaming -----------------------------------------------------------------------------------------------

    async def _read(self, stream: AsyncGenerator[StreamEvent, None]) -> Message:
        """The message when `stream` has ended or failed (see `error`), or this task was cancelled."""
        started = time.monotonic()
        flusher = asyncio.create_task(self._flush_forever())
        cancellation: asyncio.CancelledError | None = None
        try:
            async with contextlib.aclosing(stream):
                async for event in stream:
                    if self._first_event_seconds is None and not isinstance(event, ModelNamed | UsageUpdate):
                        self._first_event_seconds = time.monotonic() - started
                    self._take(event)
                    await asyncio.sleep(0)  # many events may arrive at once: let listener and keys run
        except ProviderError as error:
            self.error = error
        except asyncio.CancelledError as error:
            end_cancellation()
            cancellation = error
        finally:
            flusher.cancel()
            await uninterrupted(asyncio.wait([flusher]))
            self._seconds = time.monotonic() - started
        end, parts = self._builder.end, self._builder.parts()
        message = replace(self._message, parts=parts, usage=self._builder.usage)
        if end is not None:
            return replace(message, status="complete", finish_reason=end.raw)
        if cancellation is not None:
            why = str(cancellation)
            return replace(message, status="interrupted" if why else "cancelled", error=why or None)
        if self.error is not None:
            return replace(message, status="interrupted" if parts else "failed", error=str(self.error))
        return replace(message, status="interrupted", error=CUT_OFF)

    def _take(self, event: StreamEvent) -> None:
        """Add and forward `event`; the displayed number grows by what will be sent back."""
        self._builder.apply(event)
        self._unsaved.append(event)
        self._wake.set()
        ident = self._message.id
        match event:
            case TextDelta(text):
                delta = ReplyDelta(ident, "text", text)
            case ReasoningDelta(text):  # whether it is sent back is known at the end of the answer
                self.emit(ReplyDelta(ident, "reasoning", text))
                return
            case RefusalDelta(text, from_server=False):  # a server's is shown with the complete message
                delta = ReplyDelta(ident, "refusal", text)
            case ToolCallDelta(name=name, arguments=arguments):
                delta = ReplyDelta(ident, "tool_call", arguments, name or "")
            case _:
                return
        self.emit(delta)
        self._size += len(delta.name) + len(delta.text) * (1 if delta.text.isascii() else 2)
        tokens = int(self._size / CHARACTERS_PER_TOKEN)
        if tokens - self._shown >= max(MIN_GROWTH, GROWTH * self.usage.total):
            self._shown = tokens
            self.emit(UsageChanged(with_reply(self.usage, tokens)))

    async def _flush_forever(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(FLUSH_SECONDS)
            self._wake.clear()
            batch, self._unsaved = self._unsaved, []
            await uninterrupted(self._flush(batch))  # the final write follows this one, never concurrently

    async def _flush(self, batch: list[StreamEvent]) -> None:
        """Store a batch. If that fails it is kept for the next one, so that the stored text has no gaps."""
        try:
            await asyncio.to_thread(self.conversation.write_events, self._message, batch)
        except StoreError as error:
            if self._save_error is None:
                log.warning("could not keep part of an answer: %s", error)
            self._save_error = error
            self._unsaved[:0] = batch
            self._wake.set()
        else:
            self._save_error = None

    # -- at the end ----------------------------------------------------------------------------------------------

    async def _finished(self, call: str, reply: Message) -> Message:
        """The reply with its usage, which is logged, and from which the accounting has learned."""
        models, provider, model = self.services.models, self.request.provider, self.request.model
        answered, problem = self._builder.answered_by, self._save_error
        if reply.status == "complete":
            await models.find_loaded(provider, model)
        try:
            if await asyncio.to_thread(models.learn_answering, provider, model, answered):
                await models.find(provider, answered)
                text = f"{model} is answered by {answered}: its tokens, window and price are that model's"
                self.emit(Notice("info", text))
        except StoreError as error:  # must not lose the answer
            problem = problem or error
        reply = await asyncio.to_thread(self._measured, reply)
        try:
            await asyncio.to_thread(self._log, call, reply)
            if notice := await asyncio.to_thread(learn_window, self.usage, reply, self._verdict, models):
                self.emit(notice)
        except StoreError as error:
            problem = problem or error
        if problem is not None:
            self.emit(Notice("error", f"{problem}. The answer is on screen; it is saved as soon as that works"))
        return reply

    def _measured(self, reply: Message) -> Message:
        request, usage = self.request, reply.usage
        if usage is not None and usage.input_total:
            estimator, models = self.services.estimator, self.services.models
            provider = self.services.provider(request.provider)
            # After a refusal the provider may have sent the tools otherwise, and an answer where one was missing.
            request = replace(request, tools=provider.tools_sent(request.model, request.tools))
            if provider.capabilities(request.model).bridges:
                request = replace(request, messages=tuple(bridged(request.messages)))
            usage = estimator.reread(request, usage)
            reply = replace(reply, usage=usage)
            window = models.limits(request.provider, request.model).context
            self._verdict = estimator.record(request, reply, usage, window=window, at=time.time())
        elif reply.parts and not (usage and usage.passes):  # their sum is billed, but measures no single request
            output = self.meter.count(reply)
            return replace(reply, usage=Usage(self.usage.total, output, source="estimated"))
        return reply

    def _log(self, call: str, reply: Message) -> None:
        """Add usage, times and cost to the call's row: that of a stopped answer by what was sent and received."""
        provider, model = self.request.provider, self.request.model
        self.services.calls.finish(
            call,
            usage=reply.usage,
            billed=(provider, self.services.models.answering(provider, model)),
            seconds=self._seconds,
            first_token_seconds=self._first_event_seconds,
            finish_reason=reply.finish_reason,
            error=None if reply.status == "complete" else reply.error or reply.status,
            verdict=self._verdict,
            answered_by=self._builder.answered_by,
        )


def learn_window(usage: ContextUsage, reply: Message, verdict: Verdict | None, models: ModelFacts) -> Notice | None:
    """Learn about the window from the report on a call that was predicted as `usage`.

    Returns what a person should know of the report. Raises `StoreError`.
    """
    reported = reply.usage
    if verdict is None or reported is None or reported.input_total is None:
        return None
    if verdict.kind == "cut":  # if its window follows from that, it is used from now on
        models.ask_anew(reply.provider, reply.model)
        seems = f" {models.learn_cut(reply.provider, reply.model, verdict.window)}" if verdict.window else ""
        text = f"The server cut the prompt: {verdict.reason.removeprefix('the server ')}.{seems}"
        return Notice("warning", f"{text} To prevent that, {RAISE_WINDOW}")
    if verdict.kind == "doubted":
        if not models.tell_once(reply.provider, reply.model, "doubted"):
            return None
        text = f"The server's token count is implausible: {verdict.reason}. The number shown is estimated (~)"
        if reported.input_total < usage.total:
            models.ask_anew(reply.provider, reply.model)
            text += f". If the server cuts prompts, {RAISE_WINDOW}"
        return Notice("warning", text)
    if reported.cleared and reported.cleared > usage.basis.cleared:  # not again for the same model
        uses = f" of {reported.cleared_uses:,} tool calls" if reported.cleared_uses else ""
        return Notice(
            "info",
            f"{reply.provider} cleared {reported.cleared:,} tokens{uses} from the prompt by itself "
            "(context_management)",
        )
    if reply.status != "complete" or not verdict.confirmed:
        return None
    text = models.learn_fitted(reply.provider, reply.model, reported.input_total, reported.output_total or 0)
    return Notice("info", text) if text else None


# -- making it fit -----------------------------------------------------------------------------------------------------

UNSURE_SHARES = (2 / 3, 3 / 4, 9 / 10)  # of a request that was refused although it was expected to fit


@dataclass(eq=False)
class RequestFitter:
    """Trims or compacts one conversation until its next request fits, and reports to `emit`."""

    conversation: Conversation
    meter: Meter
    compactor: Compactor
    emit: Emit
    _refusal_told: bool = False  # that compacting does not help

    async def fit(self, reduce: Reduce | None = None) -> ContextUsage:
        """Make the next request fit, and return its measurement. Raises `ContextOverflowError` if that is not possible.

        `reduce`: the server has just refused it as too large, whatever the numbers here say.
        """
        usage = await (self.meter.usage() if reduce else self.meter.usage_to_send())
        budgets = _narrowed(usage, reduce.share) if reduce else (usage.budget,)
        rolling, compacts = self.conversation.info.rolling, self.meter.settings.compaction != "off"
        if rolling:
            await self._trim(budgets)
        elif compacts and (reduce or usage.needs_compaction):
            await self._compact(usage, budgets, "overflow" if reduce else "auto")
        elif compacts and not self.conversation.state.trim.empty:  # omitted content may fit again
            await self._trim(budgets)
        usage = await self.meter.usage()
        if not budgets[-1].fits(usage.total):
            untried = not rolling and not compacts
            raise ContextOverflowError(usage.total, budgets[-1].max_input or 0, untried=untried)
        return usage

    # -- rolling context -----------------------------------------------------------------------------------------

    async def _trim(self, budgets: Sequence[Budget]) -> None:
        """Trim to the first of `budgets` that can be met; the tightest comes first."""
        result = await asyncio.to_thread(self._final_prompt, budgets)
        if result.state != self.conversation.state.trim:
            await self.conversation.add_trim(result.state, len(result.message_ids), result.freed_tokens)
        if result.trimmed:
            self.emit(ContextTrimmed(len(result.message_ids), result.freed_tokens, result.message_ids))
        elif result.untrimmed:
            self.emit(Notice("info", "Everything fits again: what was left out is sent again"))
        if result.max_tokens:  # for `/usage`
            utilisation = 100 * result.tokens / result.max_tokens

            def logged(stored: dict[str, Any]) -> dict[str, Any]:
                trims = TrimLog.from_json(stored)
                return asdict(trims.add(utilisation, result.freed_tokens if result.trimmed else None))

            await asyncio.to_thread(self.conversation.store.change_state, TRIM_LOG, logged)

    def _final_prompt(self, budgets: Sequence[Budget]) -> PromptResult:
        conversation = self.conversation
        within = partial(
            build_final_prompt,
            conversation.untrimmed_request(),
            self.meter.estimate,
            bound=self.meter.bound,
            count=self.meter.count,
            state=conversation.state.trim,
            pinned=conversation.state.pinned,
            preserve_recent_turns=self.meter.settings.preserve_recent_turns,
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
            if await self.compactor.run(trigger, usage=replace(usage, budget=budgets[0])):
                self._refusal_told = False
        except CompactionRefusedError as error:
            if budgets[0].fits(usage.upper_bound):
                if not self._refusal_told:
                    self.emit(Notice("warning", str(error)))
                self._refusal_told = True  # until a compaction succeeds: it would fail again before every request
                return
        except (SummaryFailedError, ProviderError) as error:
            failed = str(error).rstrip(".")
        fits = budgets[0].fits((await self.meter.usage()).upper_bound)
        if failed:
            how = "The request still fits" if fits else "Old content is left out instead"
            self.emit(Notice("warning", f"Compaction failed: {failed}. {how}"))
        if not fits or not self.conversation.state.trim.empty:
            await self._trim(budgets)


def smaller_window(usage: ContextUsage, counted: int | None) -> int | None:
    """The largest window that a server can have which refused the request of `usage` and named no limit.

    `counted` are the tokens that it found in the request, if it said so. The window leaves nine tenths of the refused
    size for input, so that repeated refusals approach the real one. None if the refusal tells nothing of the window: no
    window is known, no call was measured, or the request may not have fitted.
    """
    budget, refused = usage.budget, counted or usage.upper_bound
    if usage.source == "estimated" or budget.reserved_output is None or not budget.fits(refused):
        return None
    most = int(refused * UNSURE_SHARES[-1])
    return min(most + budget.reserved_output, most * 4 // 3)  # a quarter is reserved at most


def _narrowed(usage: ContextUsage, share: float | None = None) -> tuple[Budget, ...]:
    """The budgets to try after a server refused the request measured by `usage`, tightest first.

    A limit named in the refusal is part of `usage.budget` already. If the request was expected to fit even so, the
    numbers here are too low by an unknown amount: use nine tenths of the refused size. If nothing was ever measured
    they may be too low by a third, and the turn has one try left: use less, if possible.
    """
    budget = usage.budget
    if share is not None:
        return (_within(budget, int(usage.total * share)),)
    if usage.source != "estimated" and budget.max_input is not None and usage.total > budget.max_input:
        return (budget,)
    shares = UNSURE_SHARES if usage.source == "estimated" else UNSURE_SHARES[-1:]
    sizes = [int(usage.total * share) for share in shares]
    return tuple(_within(budget, min(size, budget.max_input or size)) for size in sizes)


def _within(budget: Budget, most: int) -> Budget:
    at = budget.compaction_at
    return replace(budget, max_input=most, compaction_at=None if at is None else min(at, most))

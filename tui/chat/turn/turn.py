"""A turn: requests and tool steps until the conversation is answered, with remedies for failures."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import (
    Emit,
    MessageAdded,
    Notice,
    ReplyFinished,
    RetryScheduled,
    TurnFailed,
    UsageChanged,
)
from tui.chat.conversation.history import RecordKind
from tui.chat.conversation.meter import Meter
from tui.chat.runtime.services import Services, end_cancellation, uninterrupted
from tui.chat.store.database import StoreError
from tui.chat.tool_calls.session_tools import SessionTools
from tui.chat.tool_calls.tool_step import Results, ToolStep, result_limit
from tui.chat.turn.recovery import (
    MIN_ANSWER,
    Action,
    Clamp,
    Recovery,
    Reduce,
    Shorten,
    Wait,
    Without,
    failure_text,
    listed,
    same_cause,
)
from tui.chat.turn.request import Attempt, RequestFitter, smaller_window
from tui.context.reduction.rolling import ContextOverflowError
from tui.context.usage.usage import ContextUsage
from tui.errors import ExpectedError
from tui.messages import Message, Request, ToolCall
from tui.providers.base import ProviderError
from tui.text.labels import finish_kind, is_cut, was_stopped
from tui.tools.base import ToolOutput

log = logging.getLogger(__name__)


MAX_PAUSES = 5  # pauses of the server in one answer after which it is not asked to continue
MAX_CUTS = 2  # consecutive answers cut in a tool call after which the turn ends
STOPPED = Notice("info", "Stopped. What the tools returned is kept; your next message continues from there.")


@dataclass(eq=False)
class Turn:
    """A turn of a conversation. Cancelling `run` ends it; what arrived is kept.

    `answered`: whether a reply has entered the history.
    """

    conversation: Conversation
    meter: Meter
    fitter: RequestFitter
    services: Services
    tools: SessionTools
    emit: Emit
    answered: bool = False
    _recovery: Recovery = field(default_factory=Recovery)
    _too_large: tuple[Reduce, ProviderError] | None = None  # if the last request was refused for that
    # What was left out since a request was last accepted: why, and what takes it back.
    _removed: list[tuple[ProviderError, Callable[[], Awaitable[object]]]] = field(default_factory=list)
    _waiting: bool = False
    _steps: int = 0  # tool steps so far
    _cuts: int = 0  # consecutive answers cut in a tool call

    async def run(self) -> None:
        """Answer the conversation. Raises `ExpectedError` where the turn ends without an answer."""
        try:
            await self._prepare()
            pauses = 0
            while True:
                request, usage = await self._next_request()
                reply = await self._ask(request, usage)
                if reply is None:  # there is a remedy
                    continue
                if finish_kind(reply.finish_reason) == "paused" and pauses < MAX_PAUSES:
                    pauses += 1
                    continue
                calls = [part for part in reply.parts if isinstance(part, ToolCall)]
                if not calls or reply.status != "complete" or was_stopped(reply):
                    return
                self._cuts = self._cuts + 1 if is_cut(reply.finish_reason) else 0
                await self._run_tools(calls, request.max_output)
                await self.services.servers.hub.wait_until_current()
                if self._steps >= (most := self.tools.box.settings.steps):
                    text = f'Stopped after {most} tool steps ([tools] steps). Write "go on" to let it continue.'
                    raise ExpectedError(text)
                pauses, self._too_large, self._recovery = 0, None, Recovery()
        except asyncio.CancelledError:
            if self._steps:
                self.emit(STOPPED)
            elif not self.answered:
                waiting = "Cancelled while it waited to ask again. Your message is kept; /retry sends it."
                unsent = "Cancelled. Nothing was sent; /retry sends your message again."
                self.emit(TurnFailed(waiting if self._waiting else unsent))
            raise

    async def _prepare(self) -> None:
        """Ask the server for what the request depends on; meanwhile load what sends it. Then wait for servers of tools.

        Raises `ProviderError` where there is no such provider.
        """
        target = self.conversation.target = replace(self.conversation.target, max_output=None)
        self.services.provider(target.provider)  # raises where there is none
        find = self.services.models.find(target.provider, target.model)
        await asyncio.gather(find, self.services.prepare(target.provider))
        if self.tools.waits_for_servers:
            await self.services.servers.hub.wait_until_started(self.services.settings.tools.wait)

    # -- asking --------------------------------------------------------------------------------------------------

    async def _next_request(self) -> tuple[Request, ContextUsage]:
        """The next request, trimmed or compacted to fit, and its measurement."""
        await self.tools.prepare()
        reduce, refused = self._too_large or (None, None)
        try:
            usage = await self.fitter.fit(reduce)
        except ContextOverflowError:
            if reduce is None or refused is None or reduce.share is None:
                raise
            await uninterrupted(self._take_back(refused))  # it is bytes that are too many, not tokens
            raise ExpectedError(failure_text(refused, self.conversation.request())) from None
        self.emit(UsageChanged(usage))
        request = self.conversation.request()
        if request.max_output is None:
            request = replace(request, max_output=self.meter.answer_tokens())
        return _within_window(request, usage), usage

    async def _ask(self, request: Request, usage: ContextUsage) -> Message | None:
        """Send the request. Returns the stored reply; None if the request has to be rebuilt."""
        lessons = self.services.provider(request.provider).learned(request.model)
        attempt = Attempt(self.conversation, self.meter, self.services, self.emit, request, usage)
        reply = await attempt.run()
        action = await uninterrupted(self._received(attempt, reply, lessons))
        error = attempt.error
        if action is not None and error is not None:
            await self._remedy(action, error)
            self._too_large = (action, error) if isinstance(action, Reduce) else None
            return None
        if reply.status == "failed" and error is not None:
            await uninterrupted(self._take_back(error))
            raise ExpectedError(failure_text(error, request))
        self._removed.clear()
        return reply

    async def _take_back(self, error: ProviderError) -> None:
        """Send again what was left out in vain: the server still refuses for the same reason."""
        vain = [take_back for cause, take_back in self._removed if same_cause(cause, error)]
        self._removed.clear()
        try:
            for take_back in reversed(vain):
                await take_back()
        except StoreError as failed:
            log.warning("what was left out in vain stays out: %s", failed)
        else:
            if vain:
                self.emit(Notice("info", "That did not help: it is sent again with the next request"))

    async def _received(self, attempt: Attempt, reply: Message, lessons: Sequence[str]) -> Action | None:
        """Store the reply, unless there is a remedy: then it is discarded.

        `lessons` is what was learned about the model before.
        """
        request = attempt.request
        action = None
        if attempt.error is not None:
            action = await self._next_action(attempt.error, attempt, arrived=bool(reply.parts))
        answered = action is None and reply.status != "failed"
        if action is None:
            await self.conversation.add_reply(reply)
            self.answered = self.answered or answered
        for lesson in self.services.provider(request.provider).learned(request.model):
            if lesson not in lessons:
                self.emit(Notice("info", f"{request.model}: {lesson}"))
        self.emit(ReplyFinished(reply))
        if answered:
            await self._show_usage()
        return action

    async def _show_usage(self) -> None:
        """The number after a message, with the tools that came meanwhile."""
        self.tools.update_offer()
        self.emit(UsageChanged(await self.meter.usage()))

    # -- failures -----------------------------------------------------------------------------------------

    async def _next_action(self, error: ProviderError, attempt: Attempt, *, arrived: bool) -> Action | None:
        """The remedy after `attempt` failed with `error`; None if there is none. What the error says is learned."""
        models, request, usage, counted = self.services.models, attempt.request, attempt.usage, error.input_tokens
        decide = partial(self._recovery.decide, error, request, arrived=arrived, tokens=usage.upper_bound)
        action = await asyncio.to_thread(decide)
        too_long = error.kind == "overflow_input" and not isinstance(action, Clamp)  # it may be the answer asked for
        if error.kind in ("overflow_input", "overflow_output", "long_context_tier") and error.limit:
            learn = partial(models.learn_window, request.provider, request.model, error.limit)
            await asyncio.to_thread(learn, counted or usage.total, counted=counted is not None)
        elif too_long and (smaller := smaller_window(usage, counted)) is not None:
            learn = partial(models.learn_window, request.provider, request.model, smaller, named=False)
            await asyncio.to_thread(learn, counted or usage.upper_bound, counted=counted is not None)
        if error.most_output and error.status != 402:  # what an account can pay for is not a limit of the model
            await asyncio.to_thread(models.learn_longest_answer, request.provider, request.model, error.most_output)
        if too_long:
            await asyncio.to_thread(self.services.estimator.note_refusal, request, counted, at=time.time())
        return action

    async def _remedy(self, action: Action, error: ProviderError) -> None:
        notice: Notice

        async def leave_out(kind: RecordKind, data: dict[str, Any]) -> None:
            record = await self.conversation.add_record(kind, data)
            restore = partial(self.conversation.add_record, RecordKind.RESTORE, {"record": record.id})
            self._removed.append((error, restore))

        match action:
            case Wait(seconds, number):
                self.emit(RetryScheduled(seconds, number, str(error)))
                self._waiting = True
                await asyncio.sleep(seconds)
                self._waiting = False
                return
            case Clamp(most):
                self.conversation.target = replace(self.conversation.target, max_output=most)
                notice = Notice("info", f"Too long for the server; asking again with answers of {most:,} tokens")
            case Without("reasoning"):
                await leave_out(RecordKind.VOID, {})
                notice = Notice("info", "The server refused earlier reasoning; asking again without it")
            case Shorten(pieces, why):
                for piece in pieces:
                    data = {"message": piece.message, "sha256": piece.digest, "keep": piece.keep}
                    await leave_out(RecordKind.LEAVE_OUT, data)
                notice = Notice("warning", f"{why}: {listed(pieces)}")
            case Without("images"):
                self._removed.append((error, partial(self._set_images, True)))
                await self._set_images(False)
                notice = Notice(
                    "info", "According to its server this model takes no images; asking again with text in their place"
                )
            case Without():
                self._removed.append((error, partial(self.tools.learn_support, None)))
                await self.tools.learn_support(False)
                notice = Notice("info", "According to its server this model calls no tools; asking again without them")
            case Reduce():
                notice = Notice("info", f"{error} Reducing the request and asking again")
        self.emit(notice)

    async def _set_images(self, images: bool) -> None:
        """Whether the model takes images, by what its server says: holds in this run."""
        target = self.conversation.target
        self.conversation.target = replace(target, capabilities=replace(target.capabilities, images=images))

    # -- tools ---------------------------------------------------------------------------------------------------

    async def _run_tools(self, calls: Sequence[ToolCall], max_output: int | None) -> None:
        """Run the calls of a reply and add one message with all results, even if cancelled midway.

        `max_output` was the reply's limit in tokens.
        """
        self._steps += 1
        services, target, usage = self.services, self.conversation.target, self.meter.latest
        max_input = usage.budget.max_input if usage else None
        limit = result_limit(self.tools.box.settings.result_tokens, max_input, len(calls))
        results = Results(services.store, services.counter, target.model, limit, target.capabilities.images)
        not_run = calls_not_run(calls, self._cuts, max_output) if self._cuts else {}
        step = ToolStep(self.tools, self.conversation, results, calls, self.emit, not_run)
        cancellation: asyncio.CancelledError | None = None
        try:
            await step.run()
        except asyncio.CancelledError as error:
            end_cancellation()
            cancellation = error
        await uninterrupted(self._add_results(step, str(cancellation or "")))
        if cancellation is not None:
            raise cancellation
        if self._cuts >= MAX_CUTS:
            raise ExpectedError(
                "The answer was cut off in a tool call twice in a row. Set reserve_output higher, or ask for less at a "
                "time; what was done is kept."
            )

    async def _add_results(self, step: ToolStep, why_cancelled: str) -> None:
        message = await asyncio.to_thread(step.message, why_cancelled)
        await self.conversation.add_reply(message)
        await asyncio.to_thread(self.tools.box.note_use, step.used)
        self.emit(MessageAdded(message))
        await self._show_usage()


def calls_not_run(calls: Sequence[ToolCall], cuts: int, max_output: int | None) -> Mapping[int, ToolOutput]:
    """The calls of a reply that are not run, by their number, with the text for the model.

    `cuts` counts consecutive cut answers, including this one. The last call of a cut answer may lack the end of its
    arguments; after `MAX_CUTS` nothing is run. `max_output` is the answer's limit in tokens.
    """
    limit = f" of {max_output:,} tokens" if max_output else ""
    text = (
        f"Not run: the answer was cut off at its limit{limit} before this call was whole. Write less before the call, "
        "or split it into smaller ones."
    )
    numbers = range(len(calls)) if cuts >= MAX_CUTS else (len(calls) - 1,)
    return {number: ToolOutput(text, is_error=True) for number in numbers}


def _within_window(request: Request, usage: ContextUsage) -> Request:
    """`request` with a shorter answer if its input may be so large that both together exceed the window."""
    window, max_output = usage.limits.context, request.max_output
    if window is None or max_output is None or usage.upper_bound + max_output <= window:
        return request
    return replace(request, max_output=min(max_output, max(MIN_ANSWER, window - usage.upper_bound)))

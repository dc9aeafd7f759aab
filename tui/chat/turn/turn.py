"""One turn: from a request that has room to a measured reply, with the remedies for what can go wrong between."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from tui.chat.calling.results import Results, result_limit
from tui.chat.calling.session_tools import SessionTools
from tui.chat.calling.step_results import StepResults
from tui.chat.calling.tool_step import ToolStep
from tui.chat.compaction.compactor import Compactor
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import (
    MessageAdded,
    Notice,
    ReplyFinished,
    RetryScheduled,
    SessionEvent,
    UsageChanged,
)
from tui.chat.conversation.meter import Meter, answer_tokens
from tui.chat.runtime.services import Services
from tui.chat.store.database import StoreError
from tui.chat.turn.attempt import Attempt
from tui.chat.turn.recovery import (
    LEAST_ANSWER,
    Action,
    Clamp,
    MakeRoom,
    Recovery,
    Wait,
    WithoutAttachment,
    WithoutImages,
    WithoutReasoning,
    WithoutTools,
    kept_text,
)
from tui.chat.turn.room import Room
from tui.context.usage.usage import ContextUsage
from tui.messages import Message, Request, ToolCall
from tui.providers.base import Capabilities, ProviderError

log = logging.getLogger(__name__)


STOPPED = Notice("info", "Stopped. What the tools returned is kept; write on when you like")


class TurnError(Exception):
    """The turn ends without an answer. `str()` is for a person: what happened, what was kept, what to do."""


class Turn:
    """Runs one turn of a conversation. `cancel` ends it; what arrived is kept."""

    def __init__(
        self,
        conversation: Conversation,
        meter: Meter,
        room: Room,
        compactor: Compactor,
        services: Services,
        tools: SessionTools,
    ) -> None:
        self._conversation = conversation
        self._meter = meter
        self._room = room
        self._compactor = compactor
        self._services = services
        self._tools = tools
        self._step: ToolStep | None = None
        self._cancel = asyncio.Event()
        self._attempt: Attempt | None = None
        self._recovery = Recovery()
        self._most_output: int | None = None  # tokens, once a server said it has no more room

    def cancel(self) -> None:
        """End the turn now."""
        self._cancel.set()
        self._meter.cancel()
        self._compactor.cancel()
        if self._attempt is not None:
            self._attempt.cancel()
        if self._step is not None:
            self._step.cancel()

    @property
    def cancelled(self) -> bool:
        """Whether the person ended it."""
        return self._cancel.is_set()

    async def run(self) -> AsyncIterator[SessionEvent]:
        """Answer the conversation as it stands. Raises `TurnError`, `ContextOverflowError`, `StoreError`."""
        refused = False
        steps = 0
        while True:
            if self._cancel.is_set():
                when = "while it waited to ask again" if self._attempt is not None else "before anything was sent"
                raise TurnError(f"Cancelled {when}. Your message is kept; /retry sends it.")
            await self._tools.prepare()
            self._aim()
            try:
                async for event in self._room.make(refused=refused):
                    yield event
            except asyncio.CancelledError:
                if not self._cancel.is_set():
                    raise
            usage = await self._meter.usage()
            request = _within_window(self._conversation.request(), usage)
            yield UsageChanged(usage)
            reply: Message | None = None
            action: Action | None = None
            learned = self._learned(request)
            if self._cancel.is_set() and steps:
                yield STOPPED
                return
            if self._cancel.is_set():
                raise TurnError("Cancelled. Nothing was sent; /retry sends your message again.")
            self._attempt = Attempt(self._conversation, self._meter, self._compactor, self._services)
            async for event in self._attempt.run(request, usage):
                if isinstance(event, ReplyFinished):
                    reply = event.message
                    action = await self._next_action(request)
                    if action is None:  # else nothing arrived: the attempt leaves no message behind
                        await self._keep(reply)
                    for lesson in self._learned(request):
                        if lesson not in learned:
                            yield Notice("info", f"{request.model}: {lesson}")
                yield event
            if action is not None:
                async for event in self._remedy(action):
                    yield event
                refused = isinstance(action, MakeRoom)
                continue
            if reply is None or reply.status == "failed":
                raise TurnError(self._failure())
            yield UsageChanged(await self._meter.usage())
            calls = [part for part in reply.parts if isinstance(part, ToolCall)]
            if reply.status != "complete" or not calls:
                return
            async for event in self._run_tools(calls):
                yield event
            yield UsageChanged(await self._meter.usage())
            steps += 1
            if self._cancel.is_set():
                yield STOPPED
                return
            if steps >= (most := self._tools.box.settings.steps):
                raise TurnError(f'Stopped after {most} tool steps ([tools] steps). Write "go on" to let it continue.')
            refused = False
            self._recovery = Recovery()

    def _learned(self, request: Request) -> tuple[str, ...]:
        return self._services.provider(request.provider).learned(request.model)

    def _aim(self) -> None:
        """The answer gets what is reserved for it, or less where the server said so."""
        target = self._conversation.target
        most = answer_tokens(self._meter.limits(), self._meter.budget_settings())
        if self._most_output is not None:
            most = min(self._most_output, most or self._most_output)
        if most != target.max_output:
            self._conversation.aim(replace(target, max_output=most))

    # -- what came -----------------------------------------------------------------------------------------------

    async def _keep(self, reply: Message) -> None:
        """The reply enters the history; on a full disk it stays in memory and is written later."""
        try:
            await asyncio.to_thread(self._conversation.write_reply, reply)
        except StoreError as error:
            log.warning("answer not saved yet: %s", error)
            self._conversation.unsaved.append(reply)
        self._conversation.show_message(reply)

    # -- what went wrong -----------------------------------------------------------------------------------------

    @property
    def _error(self) -> ProviderError | None:
        """What the last attempt failed of."""
        processor = self._attempt.processor if self._attempt is not None else None
        return None if processor is None else processor.error

    async def _next_action(self, request: Request) -> Action | None:
        """What to do about the error of the attempt that has just ended; None if nothing can or need be done."""
        processor = self._attempt.processor if self._attempt is not None else None
        if processor is None or processor.error is None or self._cancel.is_set():
            return None
        error = processor.error
        if error.kind in ("overflow_input", "overflow_output", "long_context_tier") and error.limit:
            await asyncio.to_thread(self._services.windows.learn, request.provider, request.model, error.limit)
        if error.most_output and error.status != 402:  # what an account can pay for is no limit of the model
            await asyncio.to_thread(
                self._services.windows.learn_answer, request.provider, request.model, error.most_output
            )
        if error.kind == "overflow_input":
            await self._meter.in_thread(
                self._services.estimator.note_refusal, request, error.input_tokens, at=time.time()
            )
        return self._recovery.decide(error, request, arrived=processor.arrived)

    async def _remedy(self, action: Action) -> AsyncIterator[SessionEvent]:
        error = self._error
        match action:
            case Wait(seconds, attempt):
                yield RetryScheduled(seconds, attempt, str(error))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._cancel.wait(), seconds)
            case Clamp(most):
                self._most_output = most
                yield Notice("info", f"The server has room for {most:,} tokens of answer; asking again with that")
            case WithoutReasoning():
                await self._conversation.void_reasoning()
                yield Notice("info", "The server refused earlier reasoning; asking again without it")
            case WithoutAttachment(owner, part, why):
                await self._conversation.leave_out(owner, part.sha256)
                yield Notice("warning", f"{why}: {part.name} ({part.size:,} bytes) is left out of the request")
            case WithoutImages():
                self._know(replace(self._conversation.target.capabilities, images=False))
                yield Notice("info", "This model takes no images, its server says; asking again with words for them")
            case WithoutTools():
                await self._tools.without()
                yield Notice("info", "This model calls no tools, its server says; asking again without them")
            case MakeRoom():
                yield Notice("info", f"{error} Making room and asking again")

    def _know(self, able: Capabilities) -> None:
        """What the model's server says of it holds in this run."""
        self._conversation.aim(replace(self._conversation.target, capabilities=able))

    def _failure(self) -> str:
        error = self._error
        if error is None:
            return "The server ended the answer before it began. Your message is kept; /retry asks again."
        return kept_text(error)

    # -- tools ---------------------------------------------------------------------------------------------------

    async def _run_tools(self, calls: Sequence[ToolCall]) -> AsyncIterator[SessionEvent]:
        """Run the calls of a reply and add one message with all results, also when the person ends it in the middle."""
        results = StepResults(self._conversation, self._results(calls), calls)
        self._step = step = ToolStep(self._tools, calls, results.add)
        if self._cancel.is_set():
            step.cancel()
        async with contextlib.aclosing(step.run()) as events:
            async for event in events:
                yield event
        message = await asyncio.to_thread(results.message, step.outputs)
        await self._keep(message)
        await asyncio.to_thread(self._tools.note_use, step.used)
        yield MessageAdded(message)

    def _results(self, calls: Sequence[ToolCall]) -> Results:
        target, usage = self._conversation.target, self._meter.latest
        room = usage.budget.max_input if usage else None
        limit = result_limit(self._tools.box.settings.result_tokens, room, len(calls))
        return Results(self._services.store, self._services.counter, target.model, limit, target.capabilities.images)


def _within_window(request: Request, usage: ContextUsage) -> Request:
    """`request` with a shorter answer where its input may be so large that both together would not fit the window."""
    window, wanted = usage.limits.context, request.max_output
    if window is None or wanted is None or usage.upper_bound + wanted <= window:
        return request
    return replace(request, max_output=min(wanted, max(LEAST_ANSWER, window - usage.upper_bound)))

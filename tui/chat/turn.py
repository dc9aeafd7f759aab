"""One turn: from a request that has room to a measured reply, with the remedies for what can go wrong between."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from tui.chat.compactor import Compactor
from tui.chat.conversation import Conversation
from tui.chat.database import StoreError
from tui.chat.events import (
    MessageAdded,
    Notice,
    ReplyFinished,
    ReplyStarted,
    RetryScheduled,
    SessionEvent,
    UsageChanged,
)
from tui.chat.ids import new_id
from tui.chat.meter import Meter, answer_tokens
from tui.chat.recovery import LEAST_ANSWER, Action, Clamp, MakeRoom, Recovery, Wait, WithoutAttachment, WithoutReasoning
from tui.chat.results import Results, result_limit
from tui.chat.room import Room
from tui.chat.services import Services
from tui.chat.session_tools import SessionTools
from tui.chat.stream import StreamProcessor
from tui.chat.tool_step import ToolStep
from tui.context.usage import ContextUsage
from tui.messages import Attachment, Message, Request, ToolCall, Usage
from tui.providers.base import StreamEvent

log = logging.getLogger(__name__)

TRUNCATED_BELOW = 0.6  # SPEC 6.4: reported input under this share of the prediction ...
TRUNCATED_ABOVE = 0.5  # ... while the prediction is over this share of the window


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
        self._processor: StreamProcessor | None = None
        self._recovery = Recovery()
        self._most_output: int | None = None  # tokens, once a server said it has no more room

    def cancel(self) -> None:
        """End the turn now."""
        self._cancel.set()
        self._compactor.cancel()
        if self._processor is not None:
            self._processor.cancel()
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
            await self._tools.prepare()
            self._aim()
            try:
                async for event in self._room.make(refused=refused):
                    yield event
            except asyncio.CancelledError:
                if not self._cancel.is_set():
                    raise
            if self._cancel.is_set():
                raise TurnError("Cancelled. Nothing was sent; /retry sends your message again.")
            usage = await self._meter.usage()
            request = _within_window(self._conversation.request(), usage)
            yield UsageChanged(usage)
            reply: Message | None = None
            action: Action | None = None
            async for event in self._answer(request, usage):
                if isinstance(event, ReplyFinished):
                    reply = event.message
                    action = await self._next_action(request)
                    if action is None:  # else nothing arrived: the attempt leaves no message behind
                        await self._keep(reply)
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
                yield Notice("info", "Stopped while tools ran. What they returned is kept; write on when you like")
                return
            if steps >= (most := self._tools.box.settings.steps):
                raise TurnError(f'Stopped after {most} tool steps ([tools] steps). Write "go on" to let it continue.')
            refused = False
            self._recovery = Recovery()

    def _aim(self) -> None:
        """The answer gets what is reserved for it, or less where the server said so."""
        target = self._conversation.target
        most = answer_tokens(self._meter.limits(), self._meter.budget_settings())
        if self._most_output is not None:
            most = min(self._most_output, most or self._most_output)
        if most != target.max_output:
            self._conversation.aim(replace(target, max_output=most))

    # -- one request ---------------------------------------------------------------------------------------------

    async def _answer(self, request: Request, usage: ContextUsage) -> AsyncIterator[SessionEvent]:
        """Send `request` and read the answer. The last event is `ReplyFinished`, with the message not yet kept."""
        message = Message(
            "assistant",
            (),
            id=new_id(),
            status="streaming",
            created_at=time.time(),
            provider=request.provider,
            model=request.model,
        )
        call = await asyncio.to_thread(self._services.calls.begin, request, usage, message=message.id, kind="chat")
        yield ReplyStarted(message.id, request.provider, request.model)
        self._processor = processor = StreamProcessor(message, _Saver(self._conversation, message).save)
        if self._cancel.is_set():
            processor.cancel()
        blobs = await asyncio.to_thread(self._blobs, request)
        stream = self._services.provider(request.provider).stream(replace(request, blobs=blobs))
        async with contextlib.aclosing(processor.run(stream)) as deltas:
            async for delta in deltas:
                yield delta
        reply = await self._measured(request, usage, processor)
        cost = await asyncio.to_thread(self._cost, reply)
        await asyncio.to_thread(
            lambda: self._services.calls.finish(
                call,
                usage=reply.usage,
                seconds=processor.seconds,
                first_token_seconds=processor.first_event_seconds,
                finish_reason=reply.finish_reason,
                error=None if reply.status == "complete" else reply.error or reply.status,
                cost=cost,
            )
        )
        if notice := await asyncio.to_thread(self._notice, request, usage, reply):
            yield notice
        if processor.save_error is not None:
            yield Notice("error", f"{processor.save_error}. The answer is on screen; it is saved as soon as that works")
        yield ReplyFinished(reply)

    async def _measured(self, request: Request, usage: ContextUsage, processor: StreamProcessor) -> Message:
        """The reply with its usage; the accounting has learned from it."""
        reply = processor.message
        if reply.status == "complete":
            self._compactor.measurement = reply.id  # also where the server reports no usage
        if reply.usage is None or not reply.usage.input_total:
            if reply.parts:
                output = await self._meter.in_thread(self._meter.count, reply)
                reply = replace(reply, usage=Usage(usage.total, output, source="estimated"))
            return reply
        truncated = _truncated(usage, reply.usage)
        await self._meter.in_thread(
            self._services.estimator.record,
            request,
            reply,
            reply.usage,
            learn=reply.status == "complete" and not truncated,
            anchor=not truncated,
            at=time.time(),
        )
        return reply

    def _notice(self, request: Request, usage: ContextUsage, reply: Message) -> Notice | None:
        if reply.usage is None or reply.usage.source != "provider" or reply.usage.input_total is None:
            return None
        if _truncated(usage, reply.usage):
            return Notice(
                "warning",
                f"The server cut the prompt: it read {reply.usage.input_total:,} of about {usage.total:,} tokens. "
                "Raise its window (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx), then tell chatctx with /window",
            )
        given, output = reply.usage.input_total, reply.usage.output_total or 0
        if reply.status == "complete" and self._services.windows.seen(request.provider, request.model, given, output):
            return Notice(
                "info", f"This window is larger than believed: {given + output:,} tokens fitted. /window shows it"
            )
        return None

    def _cost(self, reply: Message) -> float | None:
        if reply.usage is None or reply.usage.source != "provider":
            return None
        return self._services.price(reply.usage, reply.provider, reply.model)

    def _blobs(self, request: Request) -> dict[str, bytes]:
        hashes = {part.sha256 for m in request.messages for part in m.parts if isinstance(part, Attachment)}
        found = {sha256: self._services.store.blob(sha256) for sha256 in hashes}
        return {sha256: data for sha256, data in found.items() if data is not None}

    async def _keep(self, reply: Message) -> None:
        """The reply enters the history; on a full disk it stays in memory and is written later."""
        try:
            await asyncio.to_thread(self._conversation.write_reply, reply)
        except StoreError as error:
            log.warning("answer not saved yet: %s", error)
            self._conversation.unsaved.append(reply)
        self._conversation.show_message(reply)

    # -- what went wrong -----------------------------------------------------------------------------------------

    async def _next_action(self, request: Request) -> Action | None:
        """What to do about the error of the attempt that has just ended; None if nothing can or need be done."""
        processor = self._processor
        if processor is None or processor.error is None or self._cancel.is_set():
            return None
        error = processor.error
        if error.kind in ("overflow_input", "overflow_output", "long_context_tier") and error.limit:
            await asyncio.to_thread(self._services.windows.learn, request.provider, request.model, error.limit)
        if error.kind == "overflow_input":
            await self._meter.in_thread(
                self._services.estimator.note_refusal, request, error.input_tokens, at=time.time()
            )
        return self._recovery.decide(error, arrived=processor.arrived, max_output=request.max_output)

    async def _remedy(self, action: Action) -> AsyncIterator[SessionEvent]:
        error = self._processor.error if self._processor is not None else None
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
            case WithoutAttachment():
                yield await self._drop_attachment()
            case MakeRoom():
                yield Notice("info", f"{error} Making room and asking again")

    async def _drop_attachment(self) -> Notice:
        request = self._conversation.request()
        sized = [(p.size, m.id, p) for m in request.messages for p in m.parts if isinstance(p, Attachment)]
        if not sized:
            raise TurnError(self._failure())
        _, owner, part = max(sized, key=lambda item: item[0])
        await self._conversation.leave_out(owner, part.sha256)
        return Notice("warning", f"The request has too many bytes: {part.name} ({part.size:,} bytes) is left out of it")

    def _failure(self) -> str:
        error = self._processor.error if self._processor is not None else None
        if error is None:
            return "The server ended the answer before it began. Your message is kept; /retry asks again."
        return f"{str(error).rstrip('.')}. Your message is kept; /retry asks again."

    # -- tools ---------------------------------------------------------------------------------------------------

    async def _run_tools(self, calls: Sequence[ToolCall]) -> AsyncIterator[SessionEvent]:
        """Run the calls of a reply and add one message with all results, also when the person ends it in the middle."""
        self._step = step = ToolStep(self._tools, calls)
        if self._cancel.is_set():
            step.cancel()
        async with contextlib.aclosing(step.run()) as events:
            async for event in events:
                yield event
        message = await asyncio.to_thread(self._results, calls, step)
        await self._keep(message)
        await asyncio.to_thread(self._tools.note_use, step.used)
        yield MessageAdded(message)

    def _results(self, calls: Sequence[ToolCall], step: ToolStep) -> Message:
        target, usage = self._conversation.target, self._meter.latest
        room = usage.budget.max_input if usage else None
        limit = result_limit(self._tools.box.settings.result_tokens, room, len(calls))
        results = Results(self._services.store, self._services.counter, target.model, limit, target.capabilities.images)
        parts = [part for call, output in zip(calls, step.outputs, strict=True) for part in results.parts(call, output)]
        return Message("tool", tuple(parts), id=new_id(), created_at=time.time())


class _Saver:
    """Keeps the events of a reply; its row is made with the first of them, so that empty attempts leave none."""

    def __init__(self, conversation: Conversation, message: Message) -> None:
        self._conversation = conversation
        self._message = message

    def save(self, events: Sequence[StreamEvent]) -> None:
        """Called in a thread."""
        self._conversation.write_events(self._message, events)


def _within_window(request: Request, usage: ContextUsage) -> Request:
    """`request` with a shorter answer where its input may be so large that both together would not fit the window."""
    window, wanted = usage.limits.context, request.max_output
    if window is None or wanted is None or usage.upper_bound + wanted <= window:
        return request
    return replace(request, max_output=min(wanted, max(LEAST_ANSWER, window - usage.upper_bound)))


def _truncated(usage: ContextUsage, reported: Usage) -> bool:
    """The server read far less than was sent (SPEC 6.4)."""
    window = usage.limits.context
    actual = reported.input_total
    return (
        window is not None
        and actual is not None
        and actual < TRUNCATED_BELOW * usage.total
        and usage.total > TRUNCATED_ABOVE * window
    )

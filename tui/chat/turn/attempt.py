"""One request and its answer: streamed, kept as it comes, measured, and written into the log of calls."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from tui.chat.attachments import with_bytes
from tui.chat.compaction.compactor import Compactor
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import Notice, ReplyFinished, ReplyStarted, SessionEvent
from tui.chat.conversation.meter import Meter
from tui.chat.conversation.reported import truncated, usage_notice
from tui.chat.runtime.services import Services
from tui.chat.store.database import StoreError
from tui.chat.store.ids import new_id
from tui.chat.turn.stream import StreamProcessor
from tui.context.usage.usage import ContextUsage
from tui.messages import Message, Request, Usage
from tui.providers.base import StreamEvent


class Attempt:
    """Sends one request. `processor` reads its answer and says afterwards what went wrong."""

    def __init__(self, conversation: Conversation, meter: Meter, compactor: Compactor, services: Services) -> None:
        self._conversation = conversation
        self._meter = meter
        self._compactor = compactor
        self._services = services
        self._cancelled = False
        self.processor: StreamProcessor | None = None

    def cancel(self) -> None:
        """End it now; what arrived is kept."""
        self._cancelled = True
        if self.processor is not None:
            self.processor.cancel()

    async def run(self, request: Request, usage: ContextUsage) -> AsyncIterator[SessionEvent]:
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
        self.processor = processor = StreamProcessor(message, _Saver(self._conversation, message).save)
        if self._cancelled:
            processor.cancel()
        whole = await asyncio.to_thread(with_bytes, request, self._services.store.blob)
        stream = self._services.provider(request.provider).stream(whole)
        async with contextlib.aclosing(processor.run(stream)) as deltas:
            async for delta in deltas:
                yield delta
        if processor.message.status == "complete":
            await self._services.windows.answered(request.provider, request.model)
        reply = await self._measured(request, usage, processor)
        problem = processor.save_error
        try:
            await asyncio.to_thread(self._log, call, reply, processor)
            if notice := await asyncio.to_thread(usage_notice, usage, reply, self._services.windows):
                yield notice
        except StoreError as error:  # no reason to lose the answer
            problem = problem or error
        if problem is not None:
            yield Notice("error", f"{problem}. The answer is on screen; it is saved as soon as that works")
        yield ReplyFinished(reply)

    async def _measured(self, request: Request, usage: ContextUsage, processor: StreamProcessor) -> Message:
        """The reply with its usage; the accounting has learned from it."""
        reply = processor.message
        if reply.status == "complete":
            self._compactor.measurement = reply.id  # also where the server reports no usage
        if reply.usage is None or not reply.usage.input_total:
            told = reply.usage is not None and reply.usage.passes  # a sum that measures no single request, but is paid
            if reply.parts and not told:
                output = await self._meter.in_thread(self._meter.count, reply)
                reply = replace(reply, usage=Usage(usage.total, output, source="estimated"))
            return reply
        cut = truncated(usage, reply.usage, self._services.windows.known(request.provider, request.model).context)
        await self._meter.in_thread(
            self._services.estimator.record,
            request,
            reply,
            reply.usage,
            learn=reply.status == "complete" and not cut,
            anchor=not cut,
            at=time.time(),
        )
        return reply

    def _log(self, call: str, reply: Message, processor: StreamProcessor) -> None:
        self._services.calls.finish(
            call,
            usage=reply.usage,
            seconds=processor.seconds,
            first_token_seconds=processor.first_event_seconds,
            finish_reason=reply.finish_reason,
            error=None if reply.status == "complete" else reply.error or reply.status,
            cost=self._cost(reply),
        )

    def _cost(self, reply: Message) -> float | None:
        usage = reply.usage
        if usage is None or usage.source != "provider":
            usage = Usage(None, None)  # tokens that were estimated make no bill; what costs nothing still does not
        return self._services.price(usage, reply.provider, reply.model)


class _Saver:
    """Keeps the events of a reply; its row is made with the first of them, so that empty attempts leave none."""

    def __init__(self, conversation: Conversation, message: Message) -> None:
        self._conversation = conversation
        self._message = message

    def save(self, events: Sequence[StreamEvent]) -> None:
        """Called in a thread."""
        self._conversation.write_events(self._message, events)

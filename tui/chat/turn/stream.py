"""StreamProcessor: one answer from its first event to its final message, stored as it arrives."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace

from tui.chat.conversation.events import Emit, ReplyDelta
from tui.chat.runtime.tasks import end_cancellation, uninterrupted
from tui.chat.store.database import StoreError
from tui.chat.store.parts import PartsBuilder
from tui.messages import Message
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

CUT_OFF = "the answer broke off: the stream ended without its end marker"


class StreamProcessor:
    """Reads a provider's stream for `message` (status "streaming") and reports to `emit`.

    `save` stores a batch of events; it is called in a thread, at most every `FLUSH_SECONDS`. After `run`, `message` is
    final, `error` is the provider's error, if any, `save_error` the store's.
    """

    def __init__(self, message: Message, save: Callable[[Sequence[StreamEvent]], None], emit: Emit) -> None:
        self.message = message
        self.error: ProviderError | None = None
        self.save_error: StoreError | None = None
        self.first_event_seconds: float | None = None
        self.seconds = 0.0
        self._builder = PartsBuilder(message.provider, message.model)
        self._save = save
        self._emit = emit
        self._unsaved: list[StreamEvent] = []
        self._wake = asyncio.Event()
        self._cancelled = False

    @property
    def answered_by(self) -> str:
        """The model that answers, as the server names it; "" before it does."""
        return self._builder.answered_by

    @property
    def arrived(self) -> bool:
        """Whether any part of the answer has arrived."""
        return bool(self._builder.parts())

    async def run(self, stream: AsyncGenerator[StreamEvent, None]) -> None:
        """Read `stream` until it ends, fails (see `error`) or this task is cancelled; keeps what arrived."""
        started = time.monotonic()
        flusher = asyncio.create_task(self._flush_forever())
        try:
            async with contextlib.aclosing(stream):
                async for event in stream:
                    if self.first_event_seconds is None and not isinstance(event, ModelNamed | UsageUpdate):
                        self.first_event_seconds = time.monotonic() - started
                    self._take(event)
                    await asyncio.sleep(0)  # many events may arrive at once: let listener and keys run
        except ProviderError as error:
            self.error = error
        except asyncio.CancelledError:
            end_cancellation()
            self._cancelled = True
        finally:
            flusher.cancel()
            await uninterrupted(_ended(flusher))
            self.seconds = time.monotonic() - started
            self.message = self._final()

    def _take(self, event: StreamEvent) -> None:
        self._builder.apply(event)
        self._unsaved.append(event)
        self._wake.set()
        if delta := self._delta(event):
            self._emit(delta)

    def _delta(self, event: StreamEvent) -> ReplyDelta | None:
        message_id = self.message.id
        match event:
            case TextDelta(text):
                return ReplyDelta(message_id, "text", text)
            case ReasoningDelta(text):
                return ReplyDelta(message_id, "reasoning", text)
            case RefusalDelta(from_server=True):
                return None  # shown with the complete message: not the model's text
            case RefusalDelta(text):
                return ReplyDelta(message_id, "refusal", text)
            case ToolCallDelta(name=name, arguments=arguments):
                return ReplyDelta(message_id, "tool_call", arguments, name or "")
            case _:
                return None

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
            await asyncio.to_thread(self._save, batch)
        except StoreError as error:
            if self.save_error is None:
                log.warning("could not keep part of an answer: %s", error)
            self.save_error = error
            self._unsaved[:0] = batch
            self._wake.set()
        else:
            self.save_error = None

    def _final(self) -> Message:
        builder = self._builder
        end, parts = builder.end, builder.parts()
        message = replace(self.message, parts=parts, usage=builder.usage)
        if end is not None:
            return replace(message, status="complete", finish_reason=end.raw)
        if self._cancelled:
            return replace(message, status="cancelled")
        if self.error is not None:
            return replace(message, status="interrupted" if parts else "failed", error=str(self.error))
        return replace(message, status="interrupted", error=CUT_OFF)


async def _ended(task: asyncio.Task[None]) -> None:
    await asyncio.wait([task])

"""StreamProcessor: one answer from its first event to its final message, persisted as it arrives."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace

from tui.chat.conversation.events import ReplyDelta
from tui.chat.store.database import StoreError
from tui.chat.store.parts import PartsBuilder
from tui.messages import Message
from tui.providers.base import (
    ProviderError,
    ReasoningDelta,
    RefusalDelta,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.3  # what a kill may lose; a second is promised

CUT_OFF = "the answer broke off: the stream ended without its end marker"


class StreamProcessor:
    """Reads a provider's stream for `message` (status "streaming").

    `save` keeps a batch of events; it is called in a thread, at most every `FLUSH_SECONDS`. After `run` is exhausted,
    `message` is final, `error` holds the provider's error if there was one, `save_error` the store's.
    """

    def __init__(self, message: Message, save: Callable[[Sequence[StreamEvent]], None]) -> None:
        self.message = message
        self.error: ProviderError | None = None
        self.save_error: StoreError | None = None
        self.first_event_seconds: float | None = None
        self.seconds = 0.0
        self._builder = PartsBuilder(message.provider, message.model)
        self._save = save
        self._unsaved: list[StreamEvent] = []
        self._wake = asyncio.Event()
        self._next: asyncio.Future[StreamEvent | None] | None = None
        self._cancel = asyncio.Event()

    @property
    def arrived(self) -> bool:
        """Whether anything of the answer is there."""
        return bool(self._builder.parts())

    def cancel(self) -> None:
        """End the stream now; what arrived is kept."""
        self._cancel.set()
        if self._next is not None:
            self._next.cancel()

    async def run(self, stream: AsyncGenerator[StreamEvent, None]) -> AsyncGenerator[ReplyDelta, None]:
        """Yield what arrives. Never raises `ProviderError`; see `error`."""
        started = time.monotonic()
        flusher = asyncio.create_task(self._flush_forever())
        try:
            while (event := await self._read(stream)) is not None:
                if self.first_event_seconds is None and not isinstance(event, UsageUpdate):
                    self.first_event_seconds = time.monotonic() - started
                self._builder.apply(event)
                self._unsaved.append(event)
                self._wake.set()
                if delta := self._delta(event):
                    yield delta
        finally:
            flusher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await flusher
            self.seconds = time.monotonic() - started
            self.message = self._final()

    async def _read(self, stream: AsyncGenerator[StreamEvent, None]) -> StreamEvent | None:
        """The next event; None at the end, after a cancel, or after an error."""
        if self._cancel.is_set():
            await stream.aclose()
            return None
        self._next = asyncio.ensure_future(anext(stream, None))
        try:
            return await self._next
        except ProviderError as error:
            self.error = error
            return None
        except asyncio.CancelledError:
            await stream.aclose()
            if not self._cancel.is_set():
                raise
            return None

    def _delta(self, event: StreamEvent) -> ReplyDelta | None:
        ident = self.message.id
        match event:
            case TextDelta(text):
                return ReplyDelta(ident, "text", text)
            case ReasoningDelta(text):
                return ReplyDelta(ident, "reasoning", text)
            case RefusalDelta(text):
                return ReplyDelta(ident, "refusal", text)
            case ToolCallDelta(name=name, arguments=arguments):
                return ReplyDelta(ident, "tool_call", arguments, name or "")
            case _:
                return None

    async def _flush_forever(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(FLUSH_SECONDS)
            self._wake.clear()
            batch, self._unsaved = self._unsaved, []
            saving = asyncio.create_task(self._flush(batch))
            try:
                await asyncio.shield(saving)
            except asyncio.CancelledError:
                await saving  # the final write comes after this one, never beside it
                raise

    async def _flush(self, batch: list[StreamEvent]) -> None:
        """Keep a batch. What can't be kept now stands before what comes, so that the kept text never has a hole."""
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
        if self._cancel.is_set():
            return replace(message, status="cancelled")
        if self.error is not None:
            return replace(message, status="interrupted" if parts else "failed", error=str(self.error))
        return replace(message, status="interrupted", error=CUT_OFF)

"""ChatSession: what the screen and the command line hold of one conversation."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence

from tui.chat.compaction.compactor import Compactor
from tui.chat.compaction.summaries import Summaries
from tui.chat.compaction.summarize import SummaryFailedError
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import (
    CompactionFinished,
    MessageAdded,
    Notice,
    SessionEvent,
    TurnFailed,
    TurnFinished,
    UsageChanged,
)
from tui.chat.runtime.services import Services
from tui.chat.store.database import StoreError
from tui.chat.store.ids import new_id
from tui.chat.turn.open_session import OpenSession
from tui.chat.turn.recovery import kept_text
from tui.chat.turn.room import Room
from tui.chat.turn.turn import Turn, TurnError
from tui.context.reduction.compaction_rules import CompactionRefusedError
from tui.context.reduction.rolling import ContextOverflowError
from tui.context.usage.usage import ContextUsage
from tui.messages import Attachment, Message, Part, Text
from tui.providers.base import ProviderError

TITLE_LENGTH = 60  # characters
LAST_MODELS = "last_models"  # key in the store's state: provider -> model, and "" -> the full name of the last one


class ChatSession(OpenSession):
    """An open session that talks. Every action is an async iterator of `SessionEvent`s."""

    def __init__(self, conversation: Conversation, services: Services) -> None:
        super().__init__(conversation, services)
        self._room = Room(conversation, self._meter, self._compactor)
        self.summaries = Summaries(conversation, self._meter, self._compactor)
        self._turn: Turn | None = None

    @property
    def running(self) -> bool:
        """Whether a turn or a compaction is under way."""
        return self._turn is not None or self.summaries.drafting

    # -- turns ---------------------------------------------------------------------------------------------------

    async def send(self, text: str, attachments: Sequence[Attachment] = ()) -> AsyncIterator[SessionEvent]:
        """Add the person's message and answer it. The message is in the store before anything is sent."""
        parts: tuple[Part, ...] = (*attachments, *((Text(text),) if text else ()))
        message = Message("user", parts, id=new_id(), created_at=time.time())
        turn = self._begin()
        try:
            try:
                await self._add(message, text)
            except StoreError as error:
                yield TurnFailed(f"{error}. The message was not sent")
            else:
                yield MessageAdded(message)
                async for event in self._answer(turn):
                    yield event
        finally:
            self._turn = None
        yield TurnFinished()

    async def retry(self) -> AsyncIterator[SessionEvent]:
        """Ask again: what followed the last message of the person is set aside, kept and not sent."""
        asked = self._conversation.last_question()
        if asked is None:
            yield TurnFailed("There is nothing to retry yet: write a message first.")
            yield TurnFinished()
            return
        turn = self._begin()
        try:
            await self._conversation.set_aside(self._conversation.answers_to(asked))
            async for event in self._answer(turn):
                yield event
        except StoreError as error:
            yield TurnFailed(str(error))
        finally:
            self._turn = None
        yield TurnFinished()

    async def compact(self, instructions: str = "") -> AsyncIterator[SessionEvent]:
        """`/compact`: summarise the older part now. Reports what it did, or why not; nothing is lost either way."""
        turn = self._begin()
        try:
            async for event in self._compacted(turn, self._compactor, await self._meter.usage(), instructions):
                yield event
            yield UsageChanged(await self._meter.usage())
        finally:
            self._turn = None
        yield TurnFinished()

    async def compact_for(self, full_name: str) -> AsyncIterator[SessionEvent]:
        """Let the model in use summarise the older part so that the rest fits another one, then go on with that.

        Where that can't be done it says why, and nothing has changed: neither the conversation nor the model.
        """
        meter = await self._meter_for(full_name)
        compactor = Compactor(self._conversation, meter, self._services)
        turn = self._begin(compactor)
        try:
            compacted = False
            async for event in self._compacted(turn, compactor, await meter.usage(), ""):
                compacted = compacted or isinstance(event, CompactionFinished)
                yield event
            if compacted:
                await self.set_model(full_name)
                yield Notice("info", f"{full_name} answers from now on.")
            yield UsageChanged(await self._meter.usage())
        finally:
            self._turn = None
        yield TurnFinished()

    async def _compacted(
        self, turn: Turn, compactor: Compactor, usage: ContextUsage, instructions: str
    ) -> AsyncIterator[SessionEvent]:
        try:
            async for event in compactor.run("manual", usage=usage, instructions=instructions):
                yield event
        except (CompactionRefusedError, SummaryFailedError, ProviderError, StoreError) as error:
            yield Notice("warning", f"{str(error).rstrip('.')}. Nothing was changed.")
        except asyncio.CancelledError:
            if not turn.cancelled:
                raise
            yield Notice("info", "Compaction cancelled. Nothing was changed.")

    def cancel(self) -> None:
        """End what is running; what arrived is kept. Does nothing when nothing runs."""
        self._compactor.cancel()
        if self._turn is not None:
            self._turn.cancel()

    def _begin(self, compactor: Compactor | None = None) -> Turn:
        if self._turn is not None:
            raise RuntimeError("a turn is running")
        compactor = compactor or self._compactor
        compactor.cancelled = False
        self._turn = Turn(self._conversation, self._meter, self._room, compactor, self._services, self.tools)
        return self._turn

    async def _add(self, message: Message, text: str) -> None:
        if not self.title and text.strip():
            line = " ".join(text.split())
            title = line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"
            await self._conversation.update(title=title)
        await self._conversation.add_message(message)

    async def _answer(self, turn: Turn) -> AsyncIterator[SessionEvent]:
        try:
            await self._services.windows.find(self.provider, self.model)
            await self.tools.settle()
            async for event in turn.run():
                yield event
            await asyncio.to_thread(self._remember)
        except (TurnError, ContextOverflowError, StoreError) as error:
            yield TurnFailed(str(error))
        except ProviderError as error:
            yield TurnFailed(kept_text(error))

    def _remember(self) -> None:
        """The number for the next time this is opened; the model for the next session: it answered."""
        self._meter.keep()
        store = self._services.store
        kept = store.get_state(LAST_MODELS)
        last = json.loads(kept) if kept else {}
        answered = {self.provider: self.model, "": f"{self.provider}/{self.model}"}
        if {**last, **answered} != last:
            store.change_state(LAST_MODELS, lambda models: {**models, **answered})

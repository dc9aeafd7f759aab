"""ChatSession: what the screen and the command line hold of one conversation."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace

from tui.chat import history
from tui.chat.compactor import Compactor
from tui.chat.conversation import Conversation
from tui.chat.database import StoreError
from tui.chat.events import MessageAdded, Notice, SessionEvent, TurnFailed, TurnFinished, UsageChanged
from tui.chat.ids import new_id
from tui.chat.meter import Meter
from tui.chat.projection import Target
from tui.chat.room import Room
from tui.chat.services import Services
from tui.chat.summarize import SummaryFailedError
from tui.chat.turn import Turn, TurnError
from tui.context.compaction import CompactionRefusedError, compaction_report
from tui.context.rolling import ContextOverflowError
from tui.context.usage import ContextUsage
from tui.messages import Attachment, Message, Part, SystemSection, Text
from tui.providers.base import ProviderError

TITLE_LENGTH = 60  # characters
LAST_MODELS = "last_models"  # key in the store's state: provider -> model, and "" -> the full name of the last one


class ChatSession:
    """One conversation with one model at a time. Every action is an async iterator of `SessionEvent`s."""

    def __init__(self, conversation: Conversation, services: Services) -> None:
        self._conversation = conversation
        self._services = services
        self._meter = Meter(conversation, services)
        self._compactor = Compactor(conversation, self._meter, services)
        self._room = Room(conversation, self._meter, self._compactor)
        self._turn: Turn | None = None

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The session's id in the store."""
        return self._conversation.info.id

    @property
    def title(self) -> str:
        """A short line for lists; "" before the first message."""
        return self._conversation.info.title

    @property
    def provider(self) -> str:
        """The part of the model's full name before "/"."""
        return self._conversation.target.provider

    @property
    def model(self) -> str:
        """The model in use, without its provider."""
        return self._conversation.target.model

    @property
    def messages(self) -> Sequence[Message]:
        """The stored history, oldest first. It only grows."""
        return self._conversation.messages

    @property
    def usage(self) -> ContextUsage | None:
        """The latest measure of the next request; None before the first."""
        return self._meter.latest

    @property
    def rolling(self) -> bool:
        """Whether `/rolling-context` is on."""
        return self._conversation.info.rolling

    @property
    def running(self) -> bool:
        """Whether a turn or a compaction is under way."""
        return self._turn is not None

    @property
    def not_sent(self) -> Mapping[str, str]:
        """Message id -> why it does not go out any more: "set aside", "excluded", "trimmed" or "compacted"."""
        return self._conversation.not_sent()

    @property
    def pinned(self) -> frozenset[str]:
        """Ids of the messages that neither trimming nor compaction takes away."""
        return self._conversation.state.pinned

    async def refresh_usage(self) -> ContextUsage:
        """Measure the next request anew: first ask for the window where that was not done yet."""
        await self._services.windows.find(self.provider, self.model)
        return await self._meter.usage()

    def draft_tokens(self, text: str) -> int | None:
        """Tokens of a draft by the model's tokenizer; None where it can't be counted. Slow for megabytes."""
        return self._services.counter.count_text(text, self.model)

    async def count_exactly(self) -> int | None:
        """The provider's own count of the next request, in tokens; None where it has no such endpoint."""
        return await self._meter.count_exactly()

    async def cost(self) -> float | None:
        """US dollars spent on this session; None where a price is unknown."""
        return await asyncio.to_thread(self._services.calls.session_cost, self.id)

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
        active = self._conversation.active()
        last = max((i for i, m in enumerate(active) if m.role == "user" and m.kind == "chat"), default=None)
        if last is None:
            yield TurnFailed("There is nothing to retry yet: write a message first.")
            yield TurnFinished()
            return
        turn = self._begin()
        try:
            failed = [m.id for m in self.messages if m.status == "failed" and m.id > active[last].id]
            await self._set_aside([*(m.id for m in active[last + 1 :]), *failed])
            async for event in self._answer(turn):
                yield event
        except StoreError as error:
            yield TurnFailed(str(error))
        finally:
            self._turn = None
        yield TurnFinished()

    async def compact(self, instructions: str = "") -> AsyncIterator[SessionEvent]:
        """`/compact`: summarise the older part now. Reports what it did, or why not; nothing is lost either way."""
        self._begin()
        try:
            usage = await self._meter.usage()
            try:
                async for event in self._compactor.run("manual", usage=usage, instructions=instructions):
                    yield event
            except (CompactionRefusedError, SummaryFailedError, ProviderError, StoreError) as error:
                yield Notice("warning", f"{str(error).rstrip('.')}. Nothing was changed.")
            except asyncio.CancelledError:
                if self._turn is None or not self._turn.cancelled:
                    raise
                yield Notice("info", "Compaction cancelled. Nothing was changed.")
            yield UsageChanged(await self._meter.usage())
        finally:
            self._turn = None
        yield TurnFinished()

    def cancel(self) -> None:
        """End what is running; what arrived is kept. Does nothing when nothing runs."""
        if self._turn is not None:
            self._turn.cancel()

    def _begin(self) -> Turn:
        if self._turn is not None:
            raise RuntimeError("a turn is running")
        self._turn = Turn(self._conversation, self._meter, self._room, self._compactor, self._services)
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
            async for event in turn.run():
                yield event
            await asyncio.to_thread(self._remember_model)
        except (TurnError, ContextOverflowError, StoreError) as error:
            yield TurnFailed(str(error))
        except ProviderError as error:
            yield TurnFailed(f"{str(error).rstrip('.')}. Your message is kept; /retry asks again.")

    def _remember_model(self) -> None:
        """It answered: the next session begins with it."""
        store = self._services.store
        kept = store.get_state(LAST_MODELS)
        last = json.loads(kept) if kept else {}
        new = {**last, self.provider: self.model, "": f"{self.provider}/{self.model}"}
        if new != last:
            store.put_state(LAST_MODELS, json.dumps(new))

    async def save_draft(self, text: str) -> None:
        """Keep what stands in the composer."""
        await self._conversation.update(draft=text)

    @property
    def draft(self) -> str:
        """What stood in the composer when it was last kept."""
        return self._conversation.info.draft

    # -- changes -------------------------------------------------------------------------------------------------

    async def set_model(self, full_name: str) -> None:
        """Go on with another model, "provider/model". Raises `ProviderError` where it can't be used."""
        provider, _, model = full_name.partition("/")
        capabilities = self._services.provider(provider).capabilities(model)
        await self._conversation.update(provider=provider, model=model)
        target = replace(self._conversation.target, provider=provider, model=model, capabilities=capabilities)
        self._conversation.aim(replace(target, max_output=None))

    async def set_rolling(self, on: bool) -> None:
        """Switch rolling context; switched off, everything that was trimmed goes out again."""
        await self._conversation.update(rolling=on)
        await asyncio.to_thread(self._services.store.put_state, "rolling", "on" if on else "off")
        trim = self._conversation.state.trim
        if not on and not trim.empty:
            empty = replace(trim, cuts=(), dropped=frozenset(), frontier=self._conversation.frontier)
            await self._conversation.add_record(history.TRIM, {"state": empty.to_json(), "messages": 0, "tokens": 0})

    async def set_system(self, sections: tuple[SystemSection, ...]) -> None:
        """Use another system prompt from now on."""
        self._conversation.aim(replace(self._conversation.target, system=sections))

    async def set_window(self, tokens: int | None) -> None:
        """`/window`: the person's word on the window, in tokens; None forgets what was set and learned."""
        windows = self._services.windows
        if tokens is None:
            await asyncio.to_thread(windows.reset, self.provider, self.model)
        else:
            await asyncio.to_thread(windows.set, self.provider, self.model, tokens)
        await self.refresh_usage()

    async def pin(self, message_id: str, on: bool) -> None:
        """Keep a message through trimming and compaction, or no longer."""
        await self._conversation.add_record(history.PIN, {"id": message_id, "on": on})

    async def exclude(self, message_id: str, on: bool) -> None:
        """Leave a message (with its tool calls' results) out of requests, or take it in again."""
        data = {"id": message_id, "on": on, "frontier": self._conversation.frontier}
        await self._conversation.add_record(history.EXCLUDE, data)

    async def rewind(self, message_id: str) -> None:
        """Set a message and all that follows it aside: they stay in the history and do not go out."""
        await self._set_aside([m.id for m in self._conversation.active() if m.id >= message_id])

    async def undo(self) -> str | None:
        """Take the newest compaction in force back. Returns a line for the person, None when there is none."""
        record = await self._compactor.undo()
        return None if record is None else f"Taken back: {compaction_report(record)}"

    async def _set_aside(self, ids: list[str]) -> None:
        if ids:
            await self._conversation.set_aside(ids)


def make_target(
    provider: str, model: str, services: Services, system: tuple[SystemSection, ...], session: str
) -> Target:
    """The target of a session. Raises `ProviderError` where the provider can't be used."""
    return Target(
        provider,
        model,
        services.provider(provider).capabilities(model),
        system,
        tuple(services.tools.schemas()),
        reasoning=services.settings.reasoning,
        session=session,
    )

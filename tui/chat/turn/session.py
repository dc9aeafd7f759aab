"""ChatSession: one conversation with one model at a time, for the screen and the command line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tui.chat.compaction.compactor import Compactor
from tui.chat.conversation import history
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import MessageAdded, Notice, SessionEvent, TurnFailed, TurnFinished, UsageChanged
from tui.chat.conversation.history import RecordKind
from tui.chat.conversation.meter import Meter
from tui.chat.conversation.projection import Target
from tui.chat.runtime.services import Services, end_cancellation, uninterrupted
from tui.chat.store.database import StoreError, new_id
from tui.chat.tool_calls.session_tools import SessionTools
from tui.chat.turn.recovery import failure_text
from tui.chat.turn.request import RequestFitter
from tui.chat.turn.turn import Turn
from tui.chat.usage_report import totals
from tui.context.reduction.compaction import compaction_report
from tui.context.reduction.records import TrimState
from tui.context.usage.usage import ContextUsage
from tui.errors import ExpectedError
from tui.messages import Attachment, Message, Part, Text
from tui.providers.base import ProviderError
from tui.text.clean import abbreviated
from tui.text.numbers import Cost

TITLE_LENGTH = 60  # characters
LAST_MODELS = "last_models"  # key in the store's state: provider -> model, and "" -> the full name of the last one

T = TypeVar("T")


class ChatSession:
    """One conversation. It does one thing at a time, as a task that `cancel` ends.

    `send`, `retry`, `compact` and `compact_for` are async iterators of `SessionEvent`s that end with `TurnFinished`.
    Every other change raises `StoreError` if it can't be stored.
    """

    def __init__(self, conversation: Conversation, services: Services) -> None:
        self.conversation = conversation
        self._services = services
        self._meter = Meter(conversation, services)
        self.compactor = Compactor(conversation, self._meter, services, self._emit, self._start)
        self._fitter = RequestFitter(conversation, self._meter, self.compactor, self._emit)
        self.tools = SessionTools(conversation, services, self._emit)
        conversation.target = replace(conversation.target, reasoning=services.settings.reasoning)
        conversation.target = self._target_for(f"{self.provider}/{self.model}")
        self._cost: tuple[int, Cost] | None = None  # after how many calls of this program, and what it was
        self._task: asyncio.Task[Any] | None = None
        self._why_cancelled = ""
        self._events: asyncio.Queue[SessionEvent | None] = asyncio.Queue()

    # -- one thing at a time -------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether a turn or a compaction is running."""
        return self._task is not None

    def cancel(self, why: str = "") -> None:
        """Stop the running task; what arrived is kept, with `why` ("": the person stopped it). Nothing if none runs."""
        if self._task is not None:  # a second call before it has noticed would replace the reason
            self._why_cancelled = self._why_cancelled or why
            self._task.cancel(self._why_cancelled or None)

    async def stop(self) -> None:
        """`cancel`, and wait until what arrived is stored."""
        self.cancel()
        if self._task is not None:
            await asyncio.wait([self._task])

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        if self._task is not None:
            work.close()
            raise RuntimeError("a turn is running")
        self._why_cancelled = ""
        task = self._task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._task = None
        self._events.put_nowait(None)

    def _emit(self, event: SessionEvent) -> None:
        self._events.put_nowait(event)

    async def _events_of(self, action: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[SessionEvent]:
        """Run `action` as the session's task and yield its events. Leaving the iterator early cancels it."""
        task = self._start(action())
        events = self._events = asyncio.Queue()  # the task begins with the next await
        try:
            while (event := await events.get()) is not None:
                yield event
        finally:
            task.cancel()  # nothing if it has ended
            await uninterrupted(asyncio.wait([task]))  # then `_ended` was called too
        if not task.cancelled():
            task.result()
        yield TurnFinished()

    async def prepare(self) -> None:
        """Load what the next message needs while it is being written. What is wrong with it shows when it is sent."""
        await self._services.prepare(self.provider)

    # -- turns ---------------------------------------------------------------------------------------------------

    def send(self, text: str, attachments: Sequence[Attachment] = ()) -> AsyncIterator[SessionEvent]:
        """Add the person's message and answer it. The message is stored before anything is sent."""
        parts: tuple[Part, ...] = (*attachments, *((Text(text),) if text else ()))
        message = Message("user", parts, id=new_id(), created_at=time.time())

        async def action() -> None:
            conversation = self.conversation
            try:
                if not conversation.info.title and text.strip():
                    beginning = text.lstrip()[: 100 * TITLE_LENGTH]  # splitting megabytes takes a fifth of a second
                    await conversation.update(title=abbreviated(" ".join(beginning.split()), TITLE_LENGTH))
                await conversation.add_message(message)
                self._emit(MessageAdded(message))
            except StoreError as error:
                self._emit(TurnFailed(f"{error}. The message was not sent"))
            else:
                await self._answer()

        return self._events_of(action)

    def retry(self) -> AsyncIterator[SessionEvent]:
        """Ask again: what followed the person's last message is set aside, stored and not sent."""

        async def action() -> None:
            answers = self.conversation.last_answers()
            if answers is None:
                self._emit(TurnFailed("There is nothing to retry yet: write a message first."))
                return
            try:
                await self.conversation.set_aside(answers)
            except StoreError as error:
                self._emit(TurnFailed(str(error)))
            else:
                await self._answer()

        return self._events_of(action)

    async def _answer(self) -> None:
        turn = Turn(self.conversation, self._meter, self._fitter, self._services, self.tools, self._emit)
        try:
            try:
                await turn.run()
            finally:
                if turn.answered:  # the next session begins with this model
                    used = {self.provider: self.model, "": f"{self.provider}/{self.model}"}
                    change = partial(self._services.store.change_state, LAST_MODELS, lambda models: {**models, **used})
                    await uninterrupted(asyncio.to_thread(change))
        except ProviderError as error:
            self._emit(TurnFailed(failure_text(error)))
        except ExpectedError as error:
            self._emit(TurnFailed(str(error)))

    # -- compaction ----------------------------------------------------------------------------------------------

    def compact(self, instructions: str = "") -> AsyncIterator[SessionEvent]:
        """`/compact`: summarise the older part now. Reports the result, or why not; nothing is lost either way."""

        async def action() -> None:
            await self._compact_with(self.compactor, self._meter, instructions)
            self._emit(UsageChanged(await self.refresh_usage()))

        return self._events_of(action)

    def compact_for(self, full_name: str) -> AsyncIterator[SessionEvent]:
        """Let the current model summarise the older part so that the rest fits another one, then switch to that.

        If it fails it says why, and neither the conversation nor the model has changed.
        """

        async def action() -> None:
            meter = await self._meter_for(full_name)
            compactor = Compactor(self.conversation, meter, self._services, self._emit, self._start)
            if await self._compact_with(compactor, meter, ""):
                await self.set_model(full_name)
                self._emit(Notice("info", f"{full_name} is the model from now on."))
            self._emit(UsageChanged(await self.refresh_usage()))

        return self._events_of(action)

    async def _compact_with(self, compactor: Compactor, meter: Meter, instructions: str) -> bool:
        try:
            return await compactor.run("manual", usage=await meter.usage(), instructions=instructions)
        except ExpectedError as error:
            self._emit(Notice("warning", f"{str(error).rstrip('.')}. Nothing was changed."))
        except asyncio.CancelledError:
            end_cancellation()
            self._emit(Notice("info", "Compaction cancelled. Nothing was changed."))
        return False

    async def undo(self) -> str | None:
        """Undo the newest compaction in force. Returns a line for the person, None if there is none."""
        record = await self.compactor.undo()
        return None if record is None else f"Undone: {compaction_report(record)}"

    # -- properties ----------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The session's id in the store."""
        return self.conversation.info.id

    @property
    def provider(self) -> str:
        """The part of the model's full name before "/"."""
        return self.conversation.target.provider

    @property
    def model(self) -> str:
        """The current model, without its provider."""
        return self.conversation.target.model

    @property
    def messages(self) -> Sequence[Message]:
        """The stored history, oldest first. Append-only."""
        return self.conversation.messages

    @property
    def system(self) -> str:
        """The system prompt, without memory files and instructions of servers."""
        return "".join(section.text for section in self.conversation.target.system if section.kind == "system")

    @property
    def reasoning_sent(self) -> str | None:
        """The effort that is sent: another one if the model does not support the requested one; None sends none."""
        return self._services.provider(self.provider).effort_sent(self.model, self.conversation.target.reasoning)

    # -- measuring -------------------------------------------------------------------------------------------

    @property
    def usage(self) -> ContextUsage | None:
        """The latest measurement of the next request; None before the first."""
        return self._meter.latest

    async def measure_stored(self) -> None:
        """Measure a stored conversation without asking its server.

        Other models' measurements of it are used too, if the current one has not measured it yet.
        """
        for provider, model in {(message.provider, message.model) for message in self.messages if message.usage}:
            await asyncio.to_thread(self._services.estimator.recall, provider, model)
        await self._measure_answered()
        if self.messages:
            await self._meter.usage()

    async def _measure_answered(self) -> None:
        """Find what the current model's last call measured, from which what has left the request since is deducted."""
        if (answered := await asyncio.to_thread(self.conversation.request_answered_last)) is not None:
            await asyncio.to_thread(self._meter.estimate, answered)

    async def refresh_usage(self) -> ContextUsage:
        """Measure the next request again, after asking for the window if that was not done yet."""
        await self._services.models.find(self.provider, self.model)
        await self.tools.prepare()
        return await self._meter.usage()

    def draft_tokens(self, text: str) -> int:
        """Tokens of a draft by the model's tokenizer. Slow for megabytes."""
        return self._services.counter.count_text(text, self.model)

    async def count_exactly(self) -> int | None:
        """The provider's own count of the next request, in tokens, which `usage` then uses.

        None if it has no such endpoint. Raises `ProviderError`.
        """
        tokens = await self._meter.count_request(parts=True)
        if tokens:
            await self._meter.usage()
        return tokens

    async def cost(self) -> Cost:
        """What this session cost so far. Summed again only after a call of this program."""
        calls = self._services.calls
        if self._cost is None or self._cost[0] != calls.finished:
            finished = calls.finished
            self._cost = finished, totals("", await asyncio.to_thread(calls.groups, self.id)).cost
        return self._cost[1]

    async def measured_for(self, full_name: str) -> ContextUsage:
        """The next request measured for another model ("provider/model"), in its window. Changes nothing.

        Raises `ProviderError` if the model can't be used.
        """
        return await (await self._meter_for(full_name)).usage_to_send()

    async def _meter_for(self, full_name: str) -> Meter:
        provider, _, model = full_name.partition("/")
        await self._services.models.find(provider, model)
        return Meter(self.conversation, self._services, self._target_for(full_name))

    def _target_for(self, full_name: str) -> Target:
        provider, _, model = full_name.partition("/")
        capabilities = self._services.provider(provider).capabilities(model)
        target = replace(
            self.conversation.target, provider=provider, model=model, capabilities=capabilities, max_output=None
        )
        return self.tools.updated(target)

    # -- changes ---------------------------------------------------------------------------------------------

    async def set_model(self, full_name: str) -> None:
        """Switch to another model, "provider/model". Raises `ProviderError` if it can't be used."""
        target = self._target_for(full_name)
        await self.conversation.update(provider=target.provider, model=target.model)
        self.conversation.target = target
        await self._measure_answered()

    async def set_rolling(self, on: bool) -> None:
        """Switch rolling context; if off, everything that was trimmed is sent again."""
        await self.conversation.update(rolling=on)
        await asyncio.to_thread(self._services.store.put_state, "rolling", "on" if on else "off")
        if not on and not self.conversation.state.trim.empty:
            await self.conversation.add_trim(TrimState(frontier=self.conversation.frontier))

    async def set_system(self, text: str) -> None:
        """Change the system prompt; "" uses none."""
        await self.conversation.add_record(RecordKind.SYSTEM, {"text": text})
        self.tools.update_offer()

    async def switch_memory(self, name: str, on: bool) -> None:
        """Switch a memory file (by its displayed name) on or off."""
        memory = self.conversation.memory.switched(name, on)
        await self.conversation.add_record(RecordKind.MEMORY, memory.to_json())
        self.conversation.memory = memory
        self.tools.update_offer()

    async def set_reasoning(self, effort: str | None) -> None:
        """Request this effort from now on."""
        self.conversation.target = replace(self.conversation.target, reasoning=effort)

    @property
    def learned(self) -> tuple[str, ...]:
        """What was learned about the current model, one line each: it affects requests and their measurement."""
        provider, able = self._services.provider(self.provider), self.conversation.target.capabilities
        lines = [*provider.learned(self.model), *self._services.models.lessons(self.provider, self.model)]
        if provider.capabilities(self.model).images and not able.images:
            lines.append("It refused images: text is sent in their place")
        lines += self._services.estimator.calibration(self.provider, self.model).lessons
        return tuple(lines)

    async def forget_learned(self) -> None:
        """Forget what was learned about the current model. A window that was set stays."""
        provider = self._services.provider(self.provider)
        provider.forget(self.model)
        # The estimator first: the model's facts tell it under which name its part is filed.
        for forget in (self._services.estimator.forget, self._services.models.forget):
            await asyncio.to_thread(forget, self.provider, self.model)
        self.conversation.target = self._target_for(f"{self.provider}/{self.model}")
        await self.refresh_usage()

    async def set_window(self, tokens: int | None) -> None:
        """`/window`: set the window, in tokens; None forgets what was set and learned."""
        models = self._services.models
        if tokens is None:
            await asyncio.to_thread(models.reset_window, self.provider, self.model)
        else:
            await asyncio.to_thread(models.set_window, self.provider, self.model, tokens)
        await self.refresh_usage()

    async def pin(self, message_id: str, on: bool) -> None:
        """Keep a message through trimming and compaction, or no longer."""
        await self.conversation.add_record(RecordKind.PIN, {"id": message_id, "on": on})

    async def exclude(self, message_id: str, on: bool) -> None:
        """Leave a message (with its tool calls' results) out of requests, or include it again."""
        await self.conversation.add_record(RecordKind.EXCLUDE, {"id": message_id, "on": on})

    def rewound(self, message_id: str) -> list[Message]:
        """The messages that `rewind` would set aside."""
        return history.rewound(self.messages, self.conversation.state, message_id)[0]

    async def rewind(self, message_id: str) -> None:
        """Set a message and all that follows it aside: they stay in the history and are not sent."""
        following, ended = history.rewound(self.messages, self.conversation.state, message_id)
        await self.conversation.set_aside([message.id for message in following])
        for record in ended:
            await self.compactor.take_back(record)

    async def export(self, path: Path, *, overwrite: bool = False) -> None:
        """Write the whole history; the suffix names the format (.md, .html, .jsonl). Raises `UsageError`."""
        from tui.chat.interchange.export import export_session

        await asyncio.to_thread(export_session, path, self._services.store, self.id, overwrite=overwrite)

"""What can be known of an open session and changed in it between turns."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tui.chat.calling.session_tools import SessionTools
from tui.chat.compaction.compactor import Compactor
from tui.chat.conversation import history
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.meter import Meter
from tui.chat.conversation.projection import Target
from tui.chat.interchange.export import export_session
from tui.chat.memory_files import MemoryFiles
from tui.chat.runtime.services import Services
from tui.context.reduction.compaction_rules import compaction_report
from tui.context.usage.usage import ContextUsage
from tui.messages import Message, SystemSection
from tui.providers.base import Capabilities


class OpenSession:
    """One conversation with one model at a time. Every change raises `StoreError` where it can't be kept."""

    def __init__(self, conversation: Conversation, services: Services) -> None:
        self._conversation = conversation
        self._services = services
        self._meter = Meter(conversation, services)
        self._compactor = Compactor(conversation, self._meter, services)
        self.tools = SessionTools(conversation, services)

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
    def capabilities(self) -> Capabilities:
        """What is known of the model in use."""
        return self._conversation.target.capabilities

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
    def not_sent(self) -> Mapping[str, str]:
        """Message id -> why it does not go out any more: "set aside", "excluded", "trimmed" or "compacted"."""
        return self._conversation.not_sent()

    @property
    def pinned(self) -> frozenset[str]:
        """Ids of the messages that neither trimming nor compaction takes away."""
        return self._conversation.state.pinned

    def restore_usage(self) -> None:
        """Show the number the session had when it was last used, if nothing has changed. Not on the event loop.

        What other models measured of it counts as it did then, where the one in use has not measured it yet.
        """
        for provider, model in {(message.provider, message.model) for message in self.messages if message.usage}:
            self._services.estimator.tracker.recall(provider, model)
        self._meter.restore()

    async def refresh_usage(self) -> ContextUsage:
        """Measure the next request anew: first ask for the window where that was not done yet."""
        await self._services.windows.find(self.provider, self.model)
        await self.tools.prepare()
        self.tools.aim()
        return await self._meter.usage()

    def draft_tokens(self, text: str) -> int | None:
        """Tokens of a draft by the model's tokenizer; None where it can't be counted. Slow for megabytes."""
        return self._services.counter.count_text(text, self.model)

    async def count_exactly(self) -> int | None:
        """The provider's own count of the next request, in tokens, which `usage` goes by then.

        None where it has no such endpoint. Raises `ProviderError`.
        """
        tokens = await self._meter.ask_count()
        if tokens:
            await self._meter.usage()
        return tokens

    async def cost(self) -> float | None:
        """US dollars spent on this session so far; None where a price is unknown."""
        return await asyncio.to_thread(self._services.calls.session_cost, self.id)

    @property
    def draft(self) -> str:
        """What stood in the composer when it was last kept."""
        return self._conversation.info.draft

    @property
    def system(self) -> str:
        """The system prompt, without memory files."""
        return "".join(s.text for s in self._conversation.target.system if s.kind == "system")

    @property
    def reasoning(self) -> str | None:
        """The wanted effort, one of `EFFORTS`; None is the provider's default."""
        return self._conversation.target.reasoning

    @property
    def reasoning_sent(self) -> str | None:
        """The effort that goes out: another one where the model does not take the wanted one; None asks for none."""
        return self._services.provider(self.provider).effort_sent(self.model, self.reasoning)

    @property
    def efforts(self) -> tuple[str, ...]:
        """The reasoning efforts that the model in use takes, as far as is known; () for none."""
        return self._services.provider(self.provider).efforts(self.model)

    @property
    def memory(self) -> MemoryFiles:
        """The memory files, those that are switched off included."""
        return self._conversation.memory

    async def measured_for(self, full_name: str) -> ContextUsage:
        """The next request as it would be with another model ("provider/model"), in its window. Changes nothing.

        Raises `ProviderError` where the model can't be used.
        """
        return await (await self._meter_for(full_name)).settled()

    async def _meter_for(self, full_name: str) -> Meter:
        provider, _, model = full_name.partition("/")
        found = self._services.provider(provider)
        await asyncio.gather(self._services.windows.find(provider, model), self.tools.box.support.find(found, model))
        return Meter(self._conversation, self._services, self._target_for(full_name))

    def _target_for(self, full_name: str) -> Target:
        provider, _, model = full_name.partition("/")
        capabilities = self._services.provider(provider).capabilities(model)
        target = replace(
            self._conversation.target, provider=provider, model=model, capabilities=capabilities, max_output=None
        )
        return replace(target, tools=self.tools.offered(target))

    # -- changing -------------------------------------------------------------------------------------------------

    async def set_model(self, full_name: str) -> None:
        """Go on with another model, "provider/model". Raises `ProviderError` where it can't be used."""
        target = self._target_for(full_name)
        await self._conversation.update(provider=target.provider, model=target.model)
        self._conversation.aim(target)

    async def set_rolling(self, on: bool) -> None:
        """Switch rolling context; switched off, everything that was trimmed goes out again."""
        await self._conversation.update(rolling=on)
        await asyncio.to_thread(self._services.store.put_state, "rolling", "on" if on else "off")
        trim = self._conversation.state.trim
        if not on and not trim.empty:
            empty = replace(trim, cuts=(), dropped=frozenset(), frontier=self._conversation.frontier)
            await self._conversation.add_record(history.TRIM, {"state": empty.to_json(), "messages": 0, "tokens": 0})

    async def set_system(self, text: str) -> None:
        """Use another system prompt from now on; "" uses none."""
        own = (SystemSection("system", "system prompt", text),) if text.strip() else ()
        memory = tuple(s for s in self._conversation.target.system if s.kind == "memory")
        await self._conversation.add_record(history.SYSTEM, {"text": text})
        self._conversation.aim(replace(self._conversation.target, system=own + memory))

    async def switch_memory(self, name: str, on: bool) -> None:
        """Send a memory file (by its shown name) from now on, or no longer."""
        memory = self.memory.switched(name, on)
        await self._conversation.add_record(history.MEMORY, memory.to_json())
        self._conversation.memory = memory
        own = tuple(s for s in self._conversation.target.system if s.kind == "system")
        self._conversation.aim(replace(self._conversation.target, system=own + memory.sections()))

    async def set_reasoning(self, effort: str | None) -> None:
        """Ask for this effort from now on."""
        self._conversation.aim(replace(self._conversation.target, reasoning=effort))

    async def rename(self, title: str) -> None:
        """Set the title."""
        await self._conversation.update(title=title)

    async def save_draft(self, text: str) -> None:
        """Keep what stands in the composer."""
        await self._conversation.update(draft=text)

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
        following, ended = history.rewound(self.messages, self._conversation.state, message_id)
        await self._conversation.set_aside(following)
        for record in ended:
            await self._compactor.take_back(record)

    async def undo(self) -> str | None:
        """Take the newest compaction in force back. Returns a line for the person, None when there is none."""
        record = await self._compactor.undo()
        return None if record is None else f"Taken back: {compaction_report(record)}"

    async def export(self, path: Path) -> None:
        """Write the whole history; the ending says the form (.md, .html, .jsonl). Raises OSError, ValueError."""
        await asyncio.to_thread(export_session, path, self._services.store, self.id)


def make_target(
    provider: str, model: str, services: Services, system: tuple[SystemSection, ...], session: str
) -> Target:
    """The target of a session, as yet without tools. Raises `ProviderError` where the provider can't be used."""
    return Target(
        provider,
        model,
        services.provider(provider).capabilities(model),
        system,
        reasoning=services.settings.reasoning,
        session=session,
    )

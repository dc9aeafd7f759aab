"""The tools of one conversation: what it offers, what was switched, and the calls that wait for a person's word."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from tui.chat.calling.tool_loading import ToolLoading
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import ApprovalAsked, Emit, Notice
from tui.chat.conversation.history import RecordKind
from tui.chat.conversation.projection import Target
from tui.chat.runtime.services import Services
from tui.chat.store.database import StoreError
from tui.chat.store.ids import new_id
from tui.config.tools import Rule
from tui.context.reduction.deferral import ToolPlan
from tui.context.usage.rows import UsageItem
from tui.messages import SystemSection, ToolCall, ToolSchema
from tui.providers.base import ProviderError
from tui.tools.approval import Decision, Remembered, fingerprint, matches, verdict
from tui.tools.base import Tool
from tui.tools.tool_search import SEARCH

log = logging.getLogger(__name__)

OFF_BY_DEFAULT = frozenset({"local", "demo"})
"""Providers whose models are too small for tools: `/tools on` tries them all the same."""


@dataclass(frozen=True, slots=True)
class ToolLine:
    """A tool as `/tools` lists it. `tokens` is its schema's cost, None unknown; `source` says how that is known.

    `used_at` is in seconds since the epoch, 0.0 for never.
    """

    name: str
    origin: str
    description: str
    tokens: int | None
    source: str
    on: bool
    rule: Rule
    read_only: bool
    used_at: float


class SessionTools:
    """What a session and its turns ask about tools. Lives as long as the session."""

    def __init__(self, conversation: Conversation, services: Services, emit: Emit) -> None:
        self._emit = emit
        self._conversation = conversation
        self._services = services
        self.box = services.tools
        self._allowed: set[tuple[str, str]] = set()  # (name, fingerprint), for this conversation
        self._waiting: dict[str, asyncio.Future[Decision]] = {}
        self.loading = ToolLoading(conversation, services, self.all_on, self.update_offer)
        self.box.on_change(self.update_offer)
        self.update_offer()

    # -- what is offered -----------------------------------------------------------------------------------------

    def update_offer(self) -> None:
        """Let the next request offer what is there and on now; the target stays the same object if that is the same."""
        target = self._conversation.target
        updated = self.updated(target)
        if updated != target:
            self._conversation.set_target(updated)

    def updated(self, target: Target) -> Target:
        """`target` with what is offered to its model now, and how the servers say that is used."""
        return replace(target, tools=self.offered(target), system=self._system(target))

    def _system(self, target: Target) -> tuple[SystemSection, ...]:
        others = tuple(section for section in target.system if section.kind != "instructions")
        servers = {tool.origin for tool in self.all_on(target)}
        return others + tuple(section for section in self.box.instructions() if section.name in servers)

    async def wait_until_started(self) -> None:
        """Before a message is answered: give servers that start a moment, if their tools would be offered."""
        if self.waits_for_servers:
            await self.box.wait_until_started()

    @property
    def waits_for_servers(self) -> bool:
        """Whether tools of servers would be offered to the model in use."""
        target = self._conversation.target
        return self.takes_tools(target) and self.is_on("", target)

    async def prepare(self) -> None:
        """Ask whether the model calls tools, and count them, where that was not done: what goes out depends on it."""
        target = self._conversation.target
        await self.box.support.find(self._services.provider(target.provider), target.model)
        self.update_offer()
        await self.loading.prepare(self._conversation.target)

    @property
    def plan(self) -> ToolPlan:
        """What goes out now, and what waits until the model searches for it."""
        return self.loading.plan(self._conversation.target)

    @property
    def takes_any(self) -> bool:
        """Whether the model in use calls tools, as far as that is known."""
        return self.takes_tools(self._conversation.target)

    @property
    def off_by_default(self) -> bool:
        """Whether tools are off for the model in use unless they are switched on."""
        return self._conversation.target.provider in OFF_BY_DEFAULT

    def offered(self, target: Target) -> tuple[ToolSchema, ...]:
        """The schemas that go out to `target`: of the tools that are on, those that need not wait."""
        return self.loading.plan(target).sent

    def all_on(self, target: Target) -> tuple[ToolSchema, ...]:
        """The schemas of the tools that are on for `target`, if its model takes tools."""
        if not self.takes_tools(target):
            return ()
        schemas = [tool.schema for tool in self.box.tools() if self.is_on(tool.schema.name, target)]
        return self._as_sent(schemas, target)

    def _as_sent(self, schemas: Sequence[ToolSchema], target: Target) -> tuple[ToolSchema, ...]:
        try:
            return self._services.provider(target.provider).tools_sent(target.model, schemas)
        except ProviderError:  # it is not set up any more: nothing goes out to it
            return tuple(schemas)

    def takes_tools(self, target: Target) -> bool:
        """Whether the model calls tools, as far as that is known."""
        return target.capabilities.tools and self.box.support.takes_tools(target.provider, target.model) is not False

    async def without(self) -> None:
        """The server refused the tools: the model is offered none from now on."""
        target = self._conversation.target
        await asyncio.to_thread(self.box.support.learn, target.provider, target.model, False)
        self.update_offer()

    async def offer_again(self) -> None:
        """Take `without` back: the server refuses for another reason."""
        target = self._conversation.target
        await asyncio.to_thread(self.box.support.forget, target.provider, target.model)
        self.update_offer()

    def is_on(self, name: str, target: Target) -> bool:
        """Whether a tool is on: by the last switch that names it, else by the settings and the kind of model."""
        on = target.provider not in OFF_BY_DEFAULT and not matches(name, self.box.settings.off)
        for pattern, switched in self._conversation.state.tools:
            if fnmatchcase(name, pattern):
                on = switched
        return on

    async def switch(self, pattern: str, on: bool) -> list[str]:
        """Switch the tools whose name fits `pattern`. Returns their names; nothing changes where there are none."""
        names = [tool.schema.name for tool in self.box.tools() if fnmatchcase(tool.schema.name, pattern)]
        if names:
            await self._conversation.add_record(RecordKind.TOOLS, {"name": pattern, "on": on})
            self.update_offer()
        return names

    def find(self, name: str) -> Tool | None:
        """The tool the model may call by that name: one that is on, or the search as long as tools wait behind it."""
        target = self._conversation.target
        if name == SEARCH:
            return self.loading.search_tool(target)
        return self.box.find(name) if self.is_on(name, target) else None

    @property
    def names(self) -> list[str]:
        """The names of what is offered now."""
        return [tool.name for tool in self._conversation.target.tools]

    # -- approval ------------------------------------------------------------------------------------------------

    def rule(self, tool: Tool, *, must_ask: bool = False, remembered: Mapping[str, Remembered] | None = None) -> Rule:
        """Whether a call runs, asks or is refused, by what is `remembered` now. Not on the event loop."""
        return verdict(
            tool,
            rules=self.box.settings.rules,
            remembered=self.box.remembered() if remembered is None else remembered,
            session=self._allowed,
            must_ask=must_ask,
        )

    async def ask(self, call: ToolCall, tool: Tool, arguments: Mapping[str, Any], why: str) -> Decision:
        """Wait for a person's word on a call, and remember it where that was said.

        A call that asks for a reason of its own (`why`) asks each time: the answer is for it alone.
        """
        asked = ApprovalAsked(new_id(), call, arguments, tool.schema.origin, tool.schema.description, why)
        answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._waiting[asked.id] = answer
        try:
            self._emit(asked)
            decision = await answer
        finally:
            del self._waiting[asked.id]
        if why:
            return "no" if decision in ("no", "never") else "once"
        if decision == "session":
            self._allowed.add((tool.schema.name, fingerprint(tool)))
        elif decision in ("always", "never"):
            rule: Rule = "allow" if decision == "always" else "never"
            try:
                await asyncio.to_thread(self.box.remember, Remembered(tool.schema.name, rule, fingerprint(tool)))
            except StoreError as error:
                self._emit(Notice("error", f"{error}. Your answer holds until chatctx ends"))
        return decision

    def approve(self, ask_id: str, decision: Decision) -> None:
        """A person's answer to `ApprovalAsked`. Does nothing for a question that is not open any more."""
        answer = self._waiting.get(ask_id)
        if answer is not None and not answer.done():
            answer.set_result(decision)

    async def remembered(self) -> Sequence[Remembered]:
        """The answers that hold for all conversations, by tool."""
        answers = await asyncio.to_thread(self.box.remembered)
        return [answers[name] for name in sorted(answers)]

    async def forget(self, name: str) -> None:
        """Ask again for this tool, here and everywhere."""
        self._allowed = {pair for pair in self._allowed if pair[0] != name}
        await asyncio.to_thread(self.box.forget, name)

    def note_use(self, names: AbstractSet[str]) -> None:
        """These were run just now. Not on the event loop."""
        try:
            if names:
                self.box.note_use(names, time.time())
        except StoreError as error:  # only when they were used last is lost
            log.warning("not remembered: %s", error)

    # -- for the screen ------------------------------------------------------------------------------------------

    async def lines(self, items: Sequence[UsageItem] = ()) -> Sequence[ToolLine]:
        """Every tool there is; `items` are the tools' rows of the latest measure."""
        return await asyncio.to_thread(self._lines, {item.ref: item for item in items})

    def _lines(self, items: Mapping[str, UsageItem]) -> Sequence[ToolLine]:
        used, answers = self.box.last_used(), self.box.remembered()
        return [self._line(tool, items.get(tool.schema.name), used, answers) for tool in self.box.tools()]

    def _line(
        self, tool: Tool, item: UsageItem | None, used: Mapping[str, Any], answers: Mapping[str, Remembered]
    ) -> ToolLine:
        schema, target = tool.schema, self._conversation.target
        counter, (sent,) = self._services.counter, self._as_sent([schema], target)
        tokens = item.tokens if item else counter.count_tool(sent, target.model)
        return ToolLine(
            schema.name,
            schema.origin,
            schema.description,
            tokens,
            item.source if item else "estimated",
            self.takes_tools(target) and self.is_on(schema.name, target),
            self.rule(tool, remembered=answers),
            tool.read_only,
            float(used.get(schema.name, 0.0)),
        )

    async def full_text(self, sha256: str) -> str | None:
        """All of a result that was cut, by `ToolResult.full`; None where it is not kept here."""
        data = await asyncio.to_thread(self._services.store.blob, sha256)
        return None if data is None else data.decode("utf-8", "surrogatepass")

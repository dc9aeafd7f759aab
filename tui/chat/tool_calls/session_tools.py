"""The tools of one conversation: which are offered, deferred or switched off, and calls waiting for approval."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import ApprovalAsked, Emit, Notice
from tui.chat.conversation.history import RecordKind
from tui.chat.conversation.projection import Target
from tui.chat.runtime.services import Services
from tui.chat.store.database import StoreError, new_id
from tui.config.settings import Rule
from tui.context.usage.limits import ModelLimits, Percent, Tokens
from tui.context.usage.rows import UsageItem
from tui.messages import BUILT_IN, SystemSection, ToolCall, ToolSchema
from tui.tools.approval import Decision, Remembered, fingerprint, matches, verdict
from tui.tools.base import Tool, ToolOutput
from tui.tools.tool_search import DEFAULT_MATCHES, MAX_MATCHES, SEARCH, answer, search, search_schema

log = logging.getLogger(__name__)

OFF_BY_DEFAULT = frozenset({"local", "demo"})
"""Providers whose models are too small for tools; `/tools on` enables them anyway."""

CHARACTERS_PER_TOKEN = 4  # of a schema, until the tokenizer has counted it


@dataclass(frozen=True, slots=True)
class ToolLine:
    """A tool in `/tools`. `tokens` is the size of its schema, None if unknown; `source` is where the figure comes from.

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
    """The tools of a session, for the session and its turns."""

    def __init__(self, conversation: Conversation, services: Services, emit: Emit) -> None:
        self._emit = emit
        self._conversation = conversation
        self._services = services
        self.box = services.tools
        self._allowed: set[tuple[str, str]] = set()  # (name, fingerprint), for this conversation
        self._waiting: dict[str, asyncio.Future[Decision]] = {}
        self._costs: dict[tuple[str, ToolSchema], int] = {}  # (model, tool) -> tokens

    # -- offering tools -----------------------------------------------------------------------------------------

    def update_offer(self) -> None:
        """Put the tools that are available and on into the next request, and the system prompt as it is now."""
        self._conversation.target = self.updated(self._conversation.target)

    def updated(self, target: Target) -> Target:
        """`target` with the tools that are offered to its model now, and what stands before the messages.

        Also with the order of roles that the provider has meanwhile learned: tools are what it matters to.
        """
        learned = self._services.provider(target.provider).capabilities(target.model)
        target = replace(target, capabilities=replace(target.capabilities, bridges=learned.bridges))
        tools = self._all_on(target)
        servers = {tool.origin for tool in tools}
        text, memory = self._conversation.state.system, self._conversation.memory
        prompt = SystemSection("system", "system prompt", self._services.settings.system if text is None else text)
        instructions = (section for section in self._services.servers.instructions() if section.name in servers)
        system = (*((prompt,) if prompt.text.strip() else ()), *memory.sections(), *instructions)
        return replace(target, tools=self._planned(tools, target).sent, system=system)

    @property
    def waits_for_servers(self) -> bool:
        """Whether tools of servers would be offered to the model in use."""
        target = self._conversation.target
        return self.takes_tools(target) and self.is_on("", target)

    async def prepare(self) -> None:
        """Count new tools, so that the next request has those that fit."""
        target = self._conversation.target
        model, counter = target.model, self._services.counter
        new = [tool for tool in self._all_on(target) if tool.origin != BUILT_IN and (model, tool) not in self._costs]
        if new:
            counts = await asyncio.to_thread(lambda: {(model, tool): counter.count_tool(tool, model) for tool in new})
            self._costs.update(counts)
        self.update_offer()

    @property
    def plan(self) -> ToolPlan:
        """The tools that are sent, and those deferred until the model searches for them."""
        target = self._conversation.target
        return self._planned(self._all_on(target), target)

    def _planned(self, tools: tuple[ToolSchema, ...], target: Target) -> ToolPlan:
        """Cheap: counts nothing."""
        setting = self._services.settings.tools.defer
        if setting == "off" or not tools:
            return ToolPlan(tools)
        costs = {tool: self._costs.get((target.model, tool), _rough_cost(tool)) for tool in tools}
        budget = schema_budget(self._services.models.limits(target.provider, target.model), setting)
        return plan_tools(tools, costs, budget, loaded=self._conversation.state.loaded)

    @property
    def takes_any(self) -> bool:
        """Whether the current model supports tools, as far as known."""
        return self.takes_tools(self._conversation.target)

    @property
    def off_by_default(self) -> bool:
        """Whether tools are off for the current model unless switched on."""
        return self._conversation.target.provider in OFF_BY_DEFAULT

    def _all_on(self, target: Target) -> tuple[ToolSchema, ...]:
        """The schemas of the tools that are on for `target`, if its model supports tools."""
        if not self.takes_tools(target):
            return ()
        schemas = [tool.schema for tool in self.box.tools() if self.is_on(tool.schema.name, target)]
        return self._services.provider(target.provider).tools_sent(target.model, schemas)

    def takes_tools(self, target: Target) -> bool:
        """Whether the model supports tools, as far as known."""
        return (
            target.capabilities.tools and self._services.models.takes_tools(target.provider, target.model) is not False
        )

    async def learn_support(self, takes_tools: bool | None) -> None:
        """False: the server refused the tools, and none are offered from now on; None takes that back."""
        target = self._conversation.target
        await asyncio.to_thread(self._services.models.learn_tools, target.provider, target.model, takes_tools)
        self.update_offer()

    def is_on(self, name: str, target: Target) -> bool:
        """Whether a tool is on: by the last switch that matches it, else by the settings and the kind of model."""
        on = target.provider not in OFF_BY_DEFAULT and not matches(name, self.box.settings.off)
        for pattern, switched in self._conversation.state.tools:
            if fnmatchcase(name, pattern):
                on = switched
        return on

    async def switch(self, pattern: str, on: bool) -> list[str]:
        """Switch the tools that match `pattern`. Returns their names; does nothing if there are none."""
        names = [tool.schema.name for tool in self.box.tools() if fnmatchcase(tool.schema.name, pattern)]
        if names:
            await self._conversation.add_record(RecordKind.TOOLS, {"name": pattern, "on": on})
            self.update_offer()
        return names

    def find(self, name: str) -> Tool | None:
        """The tool that the model may call by that name: one that is on, or the search while tools are deferred."""
        if name == SEARCH:
            schema = next((tool for tool in self.plan.sent if tool.name == SEARCH), None)
            return None if schema is None else Tool(schema, read_only=True, run=self._search)
        return self.box.find(name) if self.is_on(name, self._conversation.target) else None

    async def _search(self, arguments: Mapping[str, Any]) -> ToolOutput:
        """Loading only changes what is sent and its cost: a loaded tool still asks before it runs."""
        query, limit = str(arguments["query"]), min(MAX_MATCHES, max(1, int(arguments.get("limit", DEFAULT_MATCHES))))
        always_sent = {tool.name for tool in self.plan.sent} - set(self._conversation.state.loaded)
        all_on = self._all_on(self._conversation.target)
        tools = [tool for tool in all_on if tool.origin != BUILT_IN and tool.name not in always_sent]
        matching = await asyncio.to_thread(search, query, tools, limit)
        loaded = self._conversation.state.loaded  # read now: another search may have run at the same time
        if new := [tool.name for tool in matching if tool.name not in loaded]:
            await self._conversation.add_record(RecordKind.LOADED, {"names": new})
            self.update_offer()
        return ToolOutput(answer(query, matching, tools, loaded))

    @property
    def names(self) -> list[str]:
        """The names of the tools that would be offered now."""
        return [tool.name for tool in self.plan.sent]

    # -- approval ------------------------------------------------------------------------------------------------

    def rule(self, tool: Tool, *, must_ask: bool = False, remembered: Mapping[str, Remembered] | None = None) -> Rule:
        """Whether a call runs, asks or is refused, by the answers `remembered` now. Not on the event loop."""
        return verdict(
            tool,
            rules=self.box.settings.rules,
            remembered=self.box.remembered() if remembered is None else remembered,
            session=self._allowed,
            must_ask=must_ask,
        )

    async def ask(self, call: ToolCall, tool: Tool, arguments: Mapping[str, Any], why: str) -> Decision:
        """Ask a person to approve a call, and store the answer if they say so.

        A call with a special reason (`why`) asks each time: the answer is for this call alone.
        """
        question = ApprovalAsked(new_id(), call, arguments, tool.schema.origin, tool.schema.description, why)
        answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._waiting[question.id] = answer
        try:
            self._emit(question)
            decision = await answer
        finally:
            del self._waiting[question.id]
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
        """Answer an `ApprovalAsked`. Ignored if the question is not open any more."""
        answer = self._waiting.get(ask_id)
        if answer is not None and not answer.done():
            answer.set_result(decision)

    async def remembered(self) -> Sequence[Remembered]:
        """The stored answers for all conversations, by tool."""
        answers = await asyncio.to_thread(self.box.remembered)
        return [answers[name] for name in sorted(answers)]

    async def forget(self, name: str) -> None:
        """Ask again for this tool, in all conversations."""
        self._allowed = {pair for pair in self._allowed if pair[0] != name}
        await asyncio.to_thread(self.box.forget, name)

    # -- for the screen ------------------------------------------------------------------------------------------

    async def lines(self, items: Sequence[UsageItem] = ()) -> Sequence[ToolLine]:
        """Every tool; `items` are the tools row's items of the latest measurement."""
        target, by_name = self._conversation.target, {item.ref: item for item in items}

        def read() -> Sequence[ToolLine]:
            used, answers = self.box.last_used(), self.box.remembered()
            provider, counter = self._services.provider(target.provider), self._services.counter
            lines = []
            for tool in self.box.tools():
                schema, item = tool.schema, by_name.get(tool.schema.name)
                (sent,) = provider.tools_sent(target.model, [schema])
                tokens = item.tokens if item else counter.count_tool(sent, target.model)
                source = item.source if item else "estimated"
                on = self.takes_tools(target) and self.is_on(schema.name, target)
                rule, used_at = self.rule(tool, remembered=answers), float(used.get(schema.name, 0.0))
                about = (schema.name, schema.origin, schema.description)
                lines.append(ToolLine(*about, tokens, source, on, rule, tool.read_only, used_at))
            return lines

        return await asyncio.to_thread(read)

    async def full_text(self, sha256: str) -> str | None:
        """The whole text of a result that was cut, by `ToolResult.full`; None if it is not stored here."""
        data = await asyncio.to_thread(self._services.store.blob, sha256)
        return None if data is None else data.decode("utf-8", "surrogatepass")


# -- which schemas are sent, and which are deferred until the model asks for them --------------------------------------

DEFAULT_SHARE = Percent(10)
"""Of the window, for the schemas of all servers."""

DEFAULT_MAX = 20_000
"""Tokens, likewise: that share of a large window would be too much for every request."""

MAX_TOOLS = 128
"""Tools per request: OpenAI refuses more ("array too long. Expected an array with maximum length 128")."""


@dataclass(frozen=True, slots=True)
class ToolPlan:
    """The tools of a request: `sent` in this order; `tokens` is what the `deferred` ones would cost."""

    sent: tuple[ToolSchema, ...]
    deferred: tuple[ToolSchema, ...] = ()
    tokens: int = 0


def schema_budget(limits: ModelLimits, setting: Percent | Tokens | None) -> int:
    """Token budget for the schemas of MCP servers; a percentage is of the window, None is the default."""
    if isinstance(setting, Tokens):
        return setting.value
    if limits.context is None:
        return DEFAULT_MAX
    return min(DEFAULT_MAX, DEFAULT_SHARE.of(limits.context)) if setting is None else setting.of(limits.context)


def _rough_cost(tool: ToolSchema) -> int:
    """Tokens of a schema that the tokenizer has not counted yet."""
    return (len(tool.name) + len(tool.description) + len(tool.parameters)) // CHARACTERS_PER_TOKEN


def plan_tools(
    tools: Sequence[ToolSchema], costs: Mapping[ToolSchema, int], budget: int, *, loaded: Sequence[str]
) -> ToolPlan:
    """Decide which of `tools` to send; `costs` and `budget` are in tokens.

    If the servers' schemas exceed the budget, or all number more than `MAX_TOOLS`, those of the most expensive servers
    are deferred, as few servers as possible, and a tool is added that finds them. Those it has found (`loaded`, in the
    order found) come last, so that everything before them stays unchanged: providers cache the tools as the beginning
    of a request.
    """
    servers: dict[str, list[ToolSchema]] = {}
    for tool in tools:
        if tool.origin != BUILT_IN:
            servers.setdefault(tool.origin, []).append(tool)
    sizes = {server: sum(costs[tool] for tool in offered) for server, offered in servers.items()}
    tokens, number = sum(sizes.values()), len(tools)
    if tokens <= budget and number <= MAX_TOOLS:
        return ToolPlan(tuple(tools))
    deferred_servers: set[str] = set()
    for server in sorted(servers, key=lambda server: (-sizes[server], server)):
        if tokens <= budget and number < MAX_TOOLS:  # minus the search tool itself
            break
        deferred_servers.add(server)
        tokens -= sizes[server]
        number -= len(servers[server])
    always = [tool for tool in tools if tool.origin not in deferred_servers]
    searched = {tool.name: tool for tool in tools if tool.origin in deferred_servers}
    offered = [searched[name] for name in dict.fromkeys(loaded) if name in searched]
    offered = offered[-max(1, MAX_TOOLS - 1 - len(always)) :]  # those found earliest are deferred again
    names = {tool.name for tool in offered}
    deferred = tuple(tool for tool in searched.values() if tool.name not in names)
    search_tool = search_schema({server: len(servers[server]) for server in sorted(deferred_servers)})
    return ToolPlan((*always, search_tool, *offered), deferred, sum(costs[tool] for tool in deferred))

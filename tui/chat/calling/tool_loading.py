"""Deferred tools of one conversation: which schemas are sent, and loading those the model asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.history import RecordKind
from tui.chat.conversation.projection import Target
from tui.chat.runtime.services import Services
from tui.context.reduction.deferral import BUILT_IN, ToolPlan, plan_tools, schema_budget
from tui.messages import ToolSchema
from tui.tools.base import Tool, ToolOutput
from tui.tools.tool_search import DEFAULT, MOST, SEARCH, answer, search, search_schema

ROUGHLY = 4  # characters per token, until the tokenizer has counted


class ToolLoading:
    """Plans which tools are sent. `offered` gives all tools that are on; `update_offer` applies the plan."""

    def __init__(
        self,
        conversation: Conversation,
        services: Services,
        offered: Callable[[Target], Sequence[ToolSchema]],
        update_offer: Callable[[], None],
    ) -> None:
        self._conversation = conversation
        self._services = services
        self._offered = offered
        self._update_offer = update_offer
        self._costs: dict[tuple[str, ToolSchema], int] = {}  # (model, tool) -> tokens

    def plan(self, target: Target) -> ToolPlan:
        """The plan for `target`. Cheap: counts nothing."""
        tools = tuple(self._offered(target))
        setting = self._services.settings.tools.defer
        if setting == "off" or all(tool.origin == BUILT_IN for tool in tools):
            return ToolPlan(tools)
        return plan_tools(
            tools,
            [self._cost(tool, target.model) for tool in tools],
            schema_budget(self._services.windows.limits(target.provider, target.model), setting),
            loaded=self._conversation.state.loaded,
            search=search_schema,
        )

    async def prepare(self, target: Target) -> None:
        """Count new tools, off the event loop; then the plan is exact."""
        model = target.model
        tools = [t for t in self._offered(target) if t.origin != BUILT_IN and (model, t) not in self._costs]
        if tools:
            counts = await asyncio.to_thread(lambda: [self._services.counter.count_tool(t, model) for t in tools])
            counted = {(model, t): count for t, count in zip(tools, counts, strict=True) if count is not None}
            self._costs.update(counted)
            self._update_offer()

    def _cost(self, tool: ToolSchema, model: str) -> int:
        rough = (len(tool.name) + len(tool.description) + len(tool.parameters)) // ROUGHLY
        return self._costs.get((model, tool), rough)

    def search_tool(self, target: Target) -> Tool | None:
        """The tool that loads others; None if none is deferred."""
        schema = next((tool for tool in self.plan(target).sent if tool.name == SEARCH), None)
        return None if schema is None else Tool(schema, read_only=True, run=self._search)

    async def _search(self, arguments: Mapping[str, Any]) -> ToolOutput:
        """Loading only changes what is sent and its cost: a loaded tool still asks before it runs."""
        query, limit = str(arguments["query"]), min(MOST, max(1, int(arguments.get("limit", DEFAULT))))
        target = self._conversation.target
        eager = {tool.name for tool in self.plan(target).sent} - set(self._conversation.state.loaded)
        tools = [tool for tool in self._offered(target) if tool.origin != BUILT_IN and tool.name not in eager]
        matching = await asyncio.to_thread(search, query, tools, limit)
        before = self._conversation.state.loaded
        if new := [tool.name for tool in matching if tool.name not in before]:
            await self._conversation.add_record(RecordKind.LOADED, {"names": new})
            self._update_offer()
        return ToolOutput(answer(query, matching, tools, before))

"""Which tool schemas are sent, and which are deferred until the model asks for them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tui.context.usage.limits import ModelLimits, Percent, Tokens
from tui.messages import BUILT_IN, ToolSchema

DEFAULT_SHARE = Percent(10)
"""Of the window, for the schemas of all servers."""

DEFAULT_MOST = 20_000
"""Tokens, likewise, since that share of a large window is a lot for every request."""

MOST_TOOLS = 128
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
        return DEFAULT_MOST
    return min(DEFAULT_MOST, DEFAULT_SHARE.of(limits.context)) if setting is None else setting.of(limits.context)


def plan_tools(
    tools: Sequence[ToolSchema],
    costs: Sequence[int],
    budget: int | None,
    *,
    loaded: Sequence[str],
    search: Callable[[Mapping[str, int]], ToolSchema],
) -> ToolPlan:
    """Decide which of `tools` to send; `costs` are in tokens. A `budget` of None sends everything.

    If the servers' schemas exceed the budget, or number more than `MOST_TOOLS`, those of the most expensive servers are
    deferred, as few servers as possible. `search` makes the tool that finds them, from the number of deferred tools of
    each server. Tools it has found (`loaded`, in the order found) come last, so that everything before them stays
    unchanged: providers cache the tools as the beginning of a request.
    """
    by_server: dict[str, int] = {}
    for tool, cost in zip(tools, costs, strict=True):
        if tool.origin != BUILT_IN:
            by_server[tool.origin] = by_server.get(tool.origin, 0) + cost
    tokens, number = sum(by_server.values()), len(tools)
    if budget is None or (tokens <= budget and number <= MOST_TOOLS):
        return ToolPlan(tuple(tools))
    waiting: set[str] = set()
    for server in sorted(by_server, key=lambda server: (-by_server[server], server)):
        if tokens <= budget and number < MOST_TOOLS:  # minus the search tool itself
            break
        waiting.add(server)
        tokens -= by_server[server]
        number -= sum(tool.origin == server for tool in tools)
    always = [tool for tool in tools if tool.origin not in waiting]
    late = {tool.name: (tool, cost) for tool, cost in zip(tools, costs, strict=True) if tool.origin in waiting}
    counts = {server: sum(tool.origin == server for tool, _ in late.values()) for server in sorted(waiting)}
    loaded_tools = [late[name][0] for name in dict.fromkeys(loaded) if name in late]
    loaded_tools = loaded_tools[-max(1, MOST_TOOLS - 1 - len(always)) :]  # those found earliest are deferred again
    names = {tool.name for tool in loaded_tools}
    deferred = [(tool, cost) for tool, cost in late.values() if tool.name not in names]
    return ToolPlan(
        (*always, search(counts), *loaded_tools), tuple(tool for tool, _ in deferred), sum(cost for _, cost in deferred)
    )

"""`chatctx context`: what the next request of a session costs, as a table or as JSON."""

from __future__ import annotations

import asyncio
import gc
import json
import shutil

from tui.chat.store.database import damage_lines
from tui.chat.workspace import Workspace
from tui.cli import complain, write
from tui.config.settings import Settings
from tui.context.reduction.deferral import ToolPlan
from tui.context.usage.usage import ContextUsage, usage_to_json


def run(settings: Settings, *, session: str | None, as_json: bool) -> int:
    """Measure and print. Changes nothing in the session."""
    gc.disable()  # a long conversation has no garbage; looking for it takes a quarter of the time
    usage, plan = asyncio.run(_measure(settings, session))
    if as_json:
        deferred = {"tools": len(plan.deferred), "tokens": plan.tokens}
        write(json.dumps(usage_to_json(usage) | {"deferred": deferred}))
    else:
        _print(usage, plan)
    return 0


async def _measure(settings: Settings, ident: str | None) -> tuple[ContextUsage, ToolPlan]:
    """Measure with the tools that MCP servers had at their last run; none is started."""
    workspace = await Workspace.open(settings)
    try:
        session = await workspace.resume(ident, look=True)
        usage = await session.refresh_usage()
        for line in damage_lines(workspace.store.damage):
            complain(line)
        return usage, session.tools.plan
    finally:
        await workspace.close()


def _print(usage: ContextUsage, plan: ToolPlan) -> None:
    """The panel's lines, without colour."""
    from tui.views.context_table import context_lines
    from tui.views.tool_lines import deferred_words

    hints = {"tools": deferred_words(len(plan.deferred), plan.tokens)} if plan.deferred else {}
    width = max(40, shutil.get_terminal_size((100, 24)).columns)
    for line in context_lines(usage, width, hints=hints):
        write(line.content.plain)

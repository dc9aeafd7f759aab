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
from tui.context.usage.usage import usage_to_json


def run(settings: Settings, *, session: str | None, as_json: bool) -> int:
    """Measure and print. Changes nothing in the session."""
    gc.disable()  # a long conversation has no garbage; looking for it takes a quarter of the time
    write(asyncio.run(_measured(settings, session, as_json=as_json)))
    return 0


async def _measured(settings: Settings, ident: str | None, *, as_json: bool) -> str:
    """Measure with the tools that MCP servers had at their last run; none is started."""
    workspace = await Workspace.open(settings)
    try:
        session = await workspace.resume(ident, look=True)
        if as_json:
            usage, plan = await session.refresh_usage(), session.tools.plan
            deferred = {"tools": len(plan.deferred), "tokens": plan.tokens}
            text = json.dumps(usage_to_json(usage) | {"deferred": deferred})
        else:
            from tui.views.context_table import ContextView

            width = max(40, shutil.get_terminal_size((100, 24)).columns)
            lines = await ContextView(session, workspace, picture_rows=3).lines(width)
            text = "\n".join(line.plain for line in lines)
        for line in damage_lines(workspace.store.damage):
            complain(line)
        return text
    finally:
        await workspace.close()

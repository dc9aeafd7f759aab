"""`chatctx context`: what the next request of a session costs, as a table or as JSON."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from argparse import Namespace

from tui.chat.workspace import Workspace
from tui.cli.listing import write
from tui.config import Settings
from tui.context.usage import ContextUsage, usage_to_json


def run(args: Namespace, settings: Settings) -> int:
    """Measure and print. Changes nothing in the session."""
    usage = asyncio.run(_measure(args, settings))
    if args.json:
        write(json.dumps(usage_to_json(usage)))
    else:
        _print(usage)
    return 0


async def _measure(args: Namespace, settings: Settings) -> ContextUsage:
    workspace = await Workspace.open(settings)
    try:
        session = await workspace.resume(args.session, look=True)
        return await session.refresh_usage()
    finally:
        await workspace.close()


def _print(usage: ContextUsage) -> None:
    """The panel's own lines, without colour where standard output is no terminal."""
    from rich.console import Console

    from tui.widgets.context_table import context_lines

    width = max(40, shutil.get_terminal_size((100, 24)).columns)
    console = Console(file=sys.stdout, width=width, highlight=False, soft_wrap=True)
    for line in context_lines(usage, width):
        console.print(line.content.plain, markup=False)

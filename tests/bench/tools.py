"""`python -m tests.bench tools`: what 200 tools of an MCP server cost, with all of them sent and with deferred loading.

A real MCP server (tests/tools/mcp/naughty_server.py, by the official SDK) and the real llama.cpp server, whose template
writes the tools into the prompt. Each row is a new conversation: what `/context` predicts before anything was measured,
and what the model's server then counts for the same request.
"""

from __future__ import annotations

import asyncio
import copy
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests import local_server
from tests.corpus import REPOSITORY
from tui.chat.store.database import new_id
from tui.chat.turn.session import ChatSession
from tui.chat.workspace import Workspace
from tui.config.settings import ProviderSettings, Settings, ToolSettings
from tui.context.usage.usage import ContextUsage
from tui.messages import Message, Text

COUNT = 200
WINDOW = 65_536
"""Tokens the conversation is told; the model's server only counts."""

WITHOUT, ALL_SENT, DEFERRED = "no tools", f"{COUNT} tools, all sent", f"{COUNT} tools, deferred"
WAYS = (WITHOUT, ALL_SENT, DEFERRED)
NAUGHTY = Path(__file__).parents[1] / "tools" / "mcp" / "naughty_server.py"
TEMPLATE = REPOSITORY.parent / "shared" / "tools" / "chatml_think_tools.jinja"


@dataclass(frozen=True, slots=True)
class Cost:
    """One way to offer the tools. Tokens of the next request; `deferred` is what the screen says is not sent."""

    name: str
    tools: int
    predicted: int
    measured: int
    shown: int  # once the server has counted
    row: int
    deferred: int


async def measure(url: str, model: str, folder: Path) -> list[Cost]:
    """The three totals, with the model at `url`; the built-in tools are off in all of them."""
    command = {"command": sys.executable, "args": [str(NAUGHTY), "many", str(COUNT)]}
    settings = Settings(
        model=f"real/{model}",
        providers={"real": ProviderSettings(kind="anthropic", base_url=url)},
        data_dir=folder,
        log_dir=folder,
        tools=ToolSettings(off=("read_file", "list_files", "search_files"), wait=60.0),
        mcp_servers={"erp": command},
    )
    workspace = await Workspace.open(settings)
    try:
        workspace.servers.start()
        await workspace.servers.hub.wait_until_started(60.0)
        sessions = [await _session(workspace, way) for way in WAYS]
        predicted = [await session.refresh_usage() for session in sessions]  # all of them before anything is counted
        return [
            await _cost(name, session, usage) for name, session, usage in zip(WAYS, sessions, predicted, strict=True)
        ]
    finally:
        await workspace.close()


async def _session(workspace: Workspace, way: str) -> ChatSession:
    """A conversation that offers the server's tools in one of the `WAYS`."""
    settings = workspace.settings
    if way == ALL_SENT:
        everything = replace(settings, tools=replace(settings.tools, defer="off"))
        services, workspace.services = workspace.services, copy.copy(workspace.services)
        workspace.services.settings = everything
        session = await workspace.new_session()
        workspace.services = services
    else:
        session = await workspace.new_session()
    if way == WITHOUT:
        await session.tools.switch("*", False)
    await session.set_window(WINDOW)
    await session.set_system("Answer briefly.")
    await session.conversation.add_message(Message("user", (Text("What is a shipment?"),), id=new_id()))
    return session


async def _cost(name: str, session: ChatSession, predicted: ContextUsage) -> Cost:
    measured = await session.count_exactly()
    shown = await session.refresh_usage()
    row = next((row.tokens for row in predicted.rows if row.key == "tools"), 0)
    plan = session.tools.plan
    return Cost(name, len(plan.sent), predicted.total, measured or 0, shown.total, row, plan.tokens)


def table(costs: Sequence[Cost]) -> str:
    """For people."""
    lines = [
        f"{'':<24}{'tools sent':>11}{'predicted':>11}{'measured':>10}{'off by':>9}"
        f"{'then shown':>12}{'tools row':>11}{'not sent':>10}"
    ]
    for cost in costs:
        error = 100 * (cost.predicted - cost.measured) / cost.measured
        lines.append(
            f"{cost.name:<24}{cost.tools:>11,}{cost.predicted:>11,}{cost.measured:>10,}{error:>+8.1f}%{cost.shown:>12,}"
            f"{cost.row:>11,}{cost.deferred:>10,}"
        )
    return "\n".join(lines)


def main(_arguments: Sequence[str]) -> int:
    """Start both servers, print the table."""
    from tui.providers.local import LocalServer

    with tempfile.TemporaryDirectory() as folder:
        server = LocalServer(window=4_096, template=TEMPLATE, api_key="")
        url = local_server.start(server)
        try:
            print(table(asyncio.run(measure(url, server.model, Path(folder)))))
        finally:
            server.stop()
    return 0

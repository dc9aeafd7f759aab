"""The SDK is loaded with the first server that starts, and not without one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import asyncio, sys
from pathlib import Path
from tui.chat.workspace import Workspace
from tui.config.settings import Settings
import tui.screens.tools, tui.commands.mcp

async def main():
    folder = Path(sys.argv[1])
    servers = {"a": {"command": "x", "disabled": True}, "b": {"comand": "y"}}
    workspace = await Workspace.open(Settings(model="demo", data_dir=folder, log_dir=folder, mcp_servers=servers))
    workspace.servers.start()
    await workspace.servers.hub.wait_until_started(60.0)
    await workspace.new_session()
    print([server.status.state for server in workspace.servers.listed])
    await workspace.close()

asyncio.run(main())
print(" ".join(name for name in ("mcp", "mcp_types", "starlette", "uvicorn", "jsonschema") if name in sys.modules))
"""


@pytest.mark.slow
def test_nothing_of_the_sdk_is_loaded_where_no_server_starts(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    states, loaded = run.stdout.splitlines()
    assert states == "['off', 'failed']"
    assert loaded == ""

"""Tools under `chatctx ask`, where nobody can be asked: what is allowed runs, what would ask is refused and named."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from tests.chat.fakes import FakeWorkspace, ScriptedProvider, answer, open_workspace
from tests.chat.tool_calls.tool_calls import Source, calls
from tests.tools.mcp.in_memory import by_hand
from tui.cli.subcommands.ask import _stream, ask
from tui.config.settings import ToolSettings


@pytest.mark.parametrize(
    ("allowed", "ran", "notices"),
    [
        ((), [], ["calls write", "write was not run: nobody can be asked; --allow write"]),
        (("wr*",), ["write"], ["calls write"]),
    ],
)
async def test_what_is_not_allowed_is_refused_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], allowed: tuple[str, ...], ran: list[str], notices: list[str]
) -> None:
    source = Source("gh", write=lambda _: "written")
    provider = ScriptedProvider([calls("write"), answer("done")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        outcome = await _stream(await workspace.new_session(), "do it", [], silent=False, allowed=allowed)
    out, err = capsys.readouterr()
    assert source.ran == ran
    assert outcome.report() == 0
    assert out.endswith("done\n")
    assert err.splitlines() == [f"chatctx: {line}" for line in notices]


async def asked_with(workspace: FakeWorkspace, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.cli.subcommands.ask.Workspace.open", AsyncMock(return_value=workspace))
    await workspace.servers.load(folder)
    assert await ask(workspace.settings, question="hi") == 0


async def test_a_server_that_did_not_start_is_told_with_the_line_that_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mcp")
    complaint = "echo \"npm error 404  'x@*' is not in this registry.\" >&2; echo 'npm error A complete log of it' >&2"
    gone = {"gone": {"command": "sh", "args": ["-c", f"{complaint}; exit 1"]}}
    provider, wait = ScriptedProvider([answer("done")]), ToolSettings(wait=60)
    async with open_workspace(tmp_path, provider, tool_settings=wait, mcp_servers=gone) as workspace:
        await asked_with(workspace, tmp_path, monkeypatch)
    out, err = capsys.readouterr()
    assert out == "done\n"
    assert err.splitlines() == [
        "chatctx: MCP server gone: it ended before it was ready ('x@*' is not in this registry). /mcp shows more.",
    ]


async def test_a_server_that_was_not_there_in_time_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mcp")
    monkeypatch.setattr("tui.tools.mcp.connection.open_transport", lambda *_: by_hand(lambda *_: None))
    provider, wait = ScriptedProvider([answer("done")]), ToolSettings(wait=0)
    async with open_workspace(
        tmp_path, provider, tool_settings=wait, mcp_servers={"late": {"command": "none"}}
    ) as workspace:
        await asked_with(workspace, tmp_path, monkeypatch)
    assert capsys.readouterr().err.splitlines() == [
        "chatctx: MCP server late was not there in time: its tools were not offered. [tools] wait says how long it is"
        " waited for.",
    ]

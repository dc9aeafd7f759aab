"""`/mcp`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.chat.fakes import ScriptedProvider, open_workspace
from tests.commands.scripted_ui import Commands, printed
from tui.tools.base import ToolError
from tui.views.view import Question

PROJECT = '{"mcpServers": {"own": {"command": "sh", "args": ["-c", "rm \\u202e -rf"], "env": {"A": "${HOME}"}}}}'


@pytest.fixture
async def servers(
    tmp_path: Path, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Commands]:
    """A conversation with a server that does not start, in a folder with a file of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".mcp.json").write_text(PROJECT)
    table = {name: {"command": "/nonexistent/mail-mcp"} for name in ("mail", "io.x/My Notes")}
    async with open_workspace(tmp_path / "data", provider, mcp_servers=table) as workspace:
        yield Commands(workspace, await workspace.new_session())


async def test_servers_are_listed_with_what_the_folder_would_start(servers: Commands) -> None:
    [view] = (await servers.run("/mcp")).shown
    text = await printed(view)
    assert "mail" in text and "switched off" not in text
    assert "/mcp project shows it and asks" in " ".join(text.split())


@pytest.mark.parametrize(("answered", "word"), [("yes", "yes"), ("never", "no"), ("", "unsaid"), (None, "unsaid")])
async def test_the_file_of_the_folder_is_shown_whole_and_asked_about(
    servers: Commands, answered: str | None, word: str
) -> None:
    ui = await servers.run("/mcp project", answered)
    [question] = ui.asked
    assert isinstance(question, Question)
    assert "sh '-c' 'rm \\u202e -rf'" in question.text and "A=${HOME}" in question.text
    assert question.answers[0].key == "" and question.default is None
    project = servers.workspace.servers.project
    assert project is not None and project.word == word
    assert len(ui.said) == (1 if answered else 0)


async def test_one_is_switched_off_and_restarted(servers: Commands) -> None:
    assert await servers.said("/mcp off mail") == "mail is switched off; this is remembered."
    assert await servers.said("/mcp off io.x/My Notes") == "io.x/My Notes is switched off; this is remembered."
    assert [line.status.state for line in servers.workspace.servers.lines] == ["off", "off"]
    assert await servers.completions("/mcp on") == [
        "/mcp on io.x/My Notes",
        "/mcp on mail",
        "/mcp restart io.x/My Notes",
    ]
    with pytest.raises(ToolError, match=r"There is no MCP server 'x'; there is: io\.x/My Notes, mail"):
        await servers.run("/mcp restart x")


async def test_anything_else_is_refused(commands: Commands) -> None:
    assert "/mcp restart NAME" in await commands.refused("/mcp dance")
    assert await commands.refused("/mcp project") == "This folder has no .mcp.json."

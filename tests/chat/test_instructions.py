"""What MCP servers say of how they are to be used: sent, counted in its own row, capped, switched, remembered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chat.fakes import FakeWorkspace, answer, drain
from tests.chat.test_servers import opened_workspace
from tests.commands.scripted_ui import Commands, printed
from tests.tools.mcp.in_memory import by_hand, initialized, offering
from tui.chat.turn.session import ChatSession
from tui.config.settings import ToolSettings

TEXT = "Search before you answer.\n\nNever guess a path."
SENT = f"Instructions from the MCP server s:\n\n{TEXT}"


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes every server one that says this of itself."""

    def with_instructions(text: object) -> None:
        answers = offering(initialize=lambda params, _: initialized(params, instructions=text))
        monkeypatch.setattr("tui.tools.mcp.connection.open_transport", lambda *_: by_hand(answers))

    return with_instructions


async def sections_sent(workspace: FakeWorkspace, session: ChatSession) -> list[str]:
    """The sections of instructions that went out with a question."""
    workspace.fake.script.append(answer())
    await drain(session.send("hello"))
    sections = workspace.fake.requests[-1].system
    return [section.text for section in sections if section.kind == "instructions"]


SERVER = {"s": {"command": "none"}}


async def test_they_go_to_the_model_and_are_counted_in_their_row(tmp_path: Path, serve: Any) -> None:
    serve(TEXT)
    async with opened_workspace(tmp_path, mcp_servers=SERVER) as workspace:
        workspace.servers.start()
        session = await workspace.new_session()
        assert await sections_sent(workspace, session) == [SENT]
        usage = session.usage
        assert usage is not None
        (row,) = [row for row in usage.rows if row.key == "instructions"]
        assert ([item.ref for item in row.items], row.tokens > 10) == (["s"], True)
        assert sum(row.tokens for row in usage.rows) == usage.total


async def test_they_are_switched_off_and_on_for_good_and_go_with_the_tools(tmp_path: Path, serve: Any) -> None:
    serve(TEXT)
    async with opened_workspace(tmp_path, mcp_servers=SERVER) as workspace:
        workspace.servers.start()
        session = await workspace.new_session()
        commands = Commands(workspace, session)
        assert await sections_sent(workspace, session) == [SENT]
        assert (
            await commands.output("/mcp instructions off s")
            == "The instructions of s are not sent; this is remembered."
        )
        assert await sections_sent(workspace, session) == []
        assert "instructions · not sent" in await printed((await commands.run("/mcp")).views[0])
    async with opened_workspace(tmp_path, mcp_servers=SERVER) as workspace:
        workspace.servers.start()
        session = await workspace.new_session()
        assert await sections_sent(workspace, session) == []
        await workspace.servers.switch_instructions("s", True)
        assert await sections_sent(workspace, session) == [SENT]
        await session.set_system("Be brief.")
        assert await sections_sent(workspace, session) == [SENT]
        await session.tools.switch("s__*", False)
        assert await sections_sent(workspace, session) == []


async def test_they_are_there_before_the_server_is(tmp_path: Path, serve: Any) -> None:
    serve(TEXT)
    async with opened_workspace(tmp_path, mcp_servers=SERVER) as workspace:
        workspace.servers.start()
        await sections_sent(workspace, await workspace.new_session())
    async with opened_workspace(tmp_path, mcp_servers=SERVER) as workspace:
        session = await workspace.new_session()  # not started
        assert await sections_sent(workspace, session) == [SENT]


@pytest.mark.parametrize(
    ("settings", "server", "sent"),
    [
        (ToolSettings(instructions="off"), {}, []),
        (ToolSettings(), {"instructions": False}, []),
        (ToolSettings(instructions=10_000), {}, [f"Instructions from the MCP server s:\n\n{TEXT}"]),
    ],
)
async def test_settings_switch_them(
    tmp_path: Path, serve: Any, settings: ToolSettings, server: dict[str, Any], sent: list[str]
) -> None:
    serve(TEXT)
    async with opened_workspace(
        tmp_path, mcp_servers={"s": {"command": "none", **server}}, tools=settings
    ) as workspace:
        workspace.servers.start()
        assert await sections_sent(workspace, await workspace.new_session()) == sent


async def test_what_is_longer_than_the_cap_is_cut_and_says_so(tmp_path: Path, serve: Any) -> None:
    serve("A sentence of many.\n" * 5_000)
    settings = ToolSettings(instructions=200)
    async with opened_workspace(tmp_path, mcp_servers=SERVER, tools=settings) as workspace:
        workspace.servers.start()
        (text,) = await sections_sent(workspace, await workspace.new_session())
        assert len(text) < 2_000
        assert "left out here. [tools] instructions in the configuration sets the limit" in text


@pytest.mark.parametrize("text", ["", "  \n ", None])
async def test_none_are_no_section(tmp_path: Path, serve: Any, text: object) -> None:
    serve(text)
    async with opened_workspace(tmp_path, mcp_servers=SERVER) as workspace:
        workspace.servers.start()
        assert await sections_sent(workspace, await workspace.new_session()) == []

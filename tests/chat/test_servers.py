"""The servers of a running program: a project's file, what is remembered over a restart, what is said once."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.chat.fakes import Answer, FakeWorkspace, ScriptedProvider, answer, drain
from tests.tools.mcp.in_memory import Json, Say, by_hand, initialized, offering
from tests.tools.mcp.mcp_running import NAUGHTY, START, until
from tests.tools.mcp.test_odd_servers import growing
from tui.chat.attachments import AttachmentError
from tui.chat.conversation.events import ApprovalAsked
from tui.chat.servers import CACHED_TOOLS, Servers, fingerprint
from tui.config.settings import ProviderSettings, Settings, ToolSettings
from tui.messages import ToolResult
from tui.providers.base import StreamEnd, ToolCallDelta
from tui.tools.base import ToolError
from tui.tools.mcp.config import ServerConfig
from tui.tools.mcp.offer import ServerResource

SECRET = "hunter2-hunter2-hunter2"


@asynccontextmanager
async def opened(data: Path, **settings: Any) -> AsyncIterator[Servers]:
    async with opened_workspace(data, **settings) as workspace:
        yield workspace.servers


@asynccontextmanager
async def opened_workspace(data: Path, **settings: Any) -> AsyncIterator[FakeWorkspace]:
    values = {
        "data_dir": data,
        "log_dir": data,
        "model": "scripted/m",
        "providers": {"scripted": ProviderSettings(base_url="http://127.0.0.1:9")},
        **settings,
    }
    workspace = await FakeWorkspace.open(Settings(**values))
    assert isinstance(workspace, FakeWorkspace)
    workspace.fake = ScriptedProvider()
    try:
        yield workspace
    finally:
        await workspace.close()


def offered(servers: Servers) -> list[str]:
    return [tool.schema.name for _, server in sorted(servers.hub.servers.items()) for tool in server.tools()]


async def test_a_tool_that_a_call_added_is_in_the_next_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.tools.mcp.connection.open_transport", lambda *_: by_hand(growing()))
    async with opened_workspace(
        tmp_path, mcp_servers={"s": {"command": "none"}}, tools=ToolSettings(rules={"s__*": "allow"})
    ) as workspace:
        workspace.servers.start()
        call: Answer = [ToolCallDelta(0, "c1", "s__echo", "{}"), StreamEnd("tool_calls", "tool_calls")]
        workspace.fake.script += [call, answer()]
        session = await workspace.new_session()
        await drain(session.send("grow"))
        names = [[t.name for t in request.tools if t.origin == "s"] for request in workspace.fake.requests]
        assert names == [["s__echo"], ["s__echo", "s__more_0"]]


async def test_an_attached_resource_that_changed_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def subscribe(params: Json, say: Say) -> Json:
        say({"method": "notifications/resources/updated", "params": {"uri": params["uri"]}})
        return {}

    answers = offering(
        initialize=lambda params, _: initialized(params, capabilities={"resources": {"subscribe": True}}),
        resources_list={"resources": [{"uri": "x://1", "name": "a page"}]},
        resources_read={"contents": [{"uri": "x://1", "text": "words"}]},
        resources_subscribe=subscribe,
    )
    monkeypatch.setattr("tui.tools.mcp.connection.open_transport", lambda *_: by_hand(answers))
    async with opened_workspace(tmp_path, mcp_servers={"s": {"command": "none"}}) as workspace:
        servers = workspace.servers
        servers.start()
        await servers.until("s", lambda status: status.state == "ready")
        session = await workspace.new_session()
        (attachment,) = await workspace.mentioned('look at @"s:a page"', session, tmp_path)
        assert attachment.text == "words"
        await servers.until("s", lambda status: bool(status.updated))
        line = 's:a page has changed since it was attached; @"s:a page" attaches it as it is now.'
        assert (servers.news(), servers.news()) == ([line], [])


async def say_something_long(workspace: FakeWorkspace) -> None:
    """A turn in which the model calls the server's tool and the person allows it."""
    call: Answer = [ToolCallDelta(0, "c1", "own__big", "{}"), StreamEnd("tool_calls", "tool_calls")]
    workspace.fake.script = [call, answer("That was long.")]
    workspace.fake.window = 200_000
    session = await workspace.new_session()
    questions: list[ApprovalAsked] = []
    async for event in session.send("Say something long."):  # waits for the server: its tools are not known yet
        if isinstance(event, ApprovalAsked):
            questions.append(event)
            session.tools.approve(event.id, "once")
    assert [(question.origin, question.call.name) for question in questions] == [("own", "own__big")]
    (result,) = [p for m in workspace.fake.requests[1].messages for p in m.parts if isinstance(p, ToolResult)]
    assert not result.is_error
    assert "0123456789abcdef" in result.text
    assert len(result.text) < 200_000  # capped; all five megabytes are kept and can be opened
    whole = await session.tools.full_text(result.full)
    assert whole is not None
    assert len(whole) == 5_000_000 // 17 * 17


@pytest.mark.slow
async def test_a_projects_servers_start_once_agreed_to_and_are_known_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, data = tmp_path / "project", tmp_path / "data"
    project.mkdir()
    entry = {"command": sys.executable, "args": [NAUGHTY], "env": {"MY_PASSWORD": SECRET}}
    file = project / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"own": entry}}))
    monkeypatch.chdir(project)

    async with opened_workspace(data, tools=ToolSettings(wait=START)) as workspace:
        servers = workspace.servers
        servers.start()
        assert (servers.listed, offered(servers)) == ([], [])
        (line,) = servers.news()
        assert str(file) in line and "Nothing of it was started" in line
        assert servers.news() == []  # said once
        await servers.agree(True)
        await say_something_long(workspace)
        names = offered(servers)
        with pytest.raises(AttachmentError, match="nowhere"):
            await servers.attach(ServerResource("own", "x", "gone:nowhere", "", ""))
        assert servers.readers == {"own"}  # by pattern: it lists none
        await servers.switch("own", False)
        assert (offered(servers), servers.readers) == ([], set())
        await servers.switch("own", True)
        await until(lambda: offered(servers) == names)

    async with opened(data) as servers:  # nothing is started: what was known is offered, in the same order
        assert offered(servers) == names
        assert servers.listed[0].status.state == "starting"
        assert servers.news() == []
        assert SECRET not in json.dumps([row[0] for row in servers._store.query("SELECT value FROM state", ())])
        await servers.switch("own", False)

    async with opened(data) as servers:
        servers.start()
        assert servers.listed[0].status.state == "off"  # the switch holds
        await servers.agree(False)
        assert servers.listed == []

    file.write_text(file.read_text() + "\n")
    async with opened(data) as servers:
        assert servers.project is not None
        assert servers.project.agreed is None


async def test_a_server_that_fails_is_a_line_said_once_and_again_after_a_restart(tmp_path: Path) -> None:
    heard: list[str] = []
    async with opened(tmp_path, mcp_servers={"bad": {"command": "no-such-program-anywhere"}, "worse": 5}) as servers:
        servers.on_change(heard.append)
        servers.start()
        await until(lambda: sum(server.status.state == "failed" for server in servers.listed) == 2)
        first, second = servers.news()
        assert first.startswith("MCP server bad: there is no program no-such-program-anywhere; install it")
        assert second.startswith("MCP server worse:")
        assert servers.news() == []
        assert "bad" in heard
        await servers.restart("bad")
        await until(lambda: servers.listed[0].status.state == "failed")
        assert len(servers.news()) == 1
        with pytest.raises(ToolError, match="no MCP server 'nobody'; the servers are: bad, worse"):
            await servers.restart("nobody")


async def test_what_can_not_be_read_of_last_time_is_asked_anew(tmp_path: Path) -> None:
    entry = {"command": sys.executable, "args": [NAUGHTY]}
    async with opened(tmp_path, mcp_servers={"own": entry}) as servers:
        cached = {"of": fingerprint(servers.listed[0].config), "tools": [{"nome": "x"}]}
        servers._store.put_state(CACHED_TOOLS + "own", json.dumps(cached))
    async with opened(tmp_path, mcp_servers={"own": entry}) as servers:
        assert offered(servers) == []


def test_another_command_is_another_server_and_no_secret_is_in_its_mark() -> None:
    first = ServerConfig("x", "f", command="a", args=("--token", "one"), env={"K": "one"})
    assert fingerprint(first) == fingerprint(
        ServerConfig("x", "f", command="a", args=("--token", "two"), env={"K": "2"})
    )
    assert fingerprint(first) != fingerprint(ServerConfig("x", "f", command="b"))

"""A server that does what none should (tests/tools/mcp/naughty_server.py): what the person and the model get of it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tools.mcp.mcp_running import NAUGHTY, START, call, make_hub, running, tool, until
from tui.tools.base import ToolError
from tui.tools.mcp.hub import McpHub
from tui.tools.mcp.offer import TemplateVariable
from tui.tools.mcp.status import ServerLog

SECRET = "hunter2-hunter2-hunter2"


@pytest.fixture(scope="session")
def naughty() -> Iterator[McpHub]:
    """One such server."""
    server = {"command": sys.executable, "args": [NAUGHTY], "env": {"MY_PASSWORD": SECRET}}
    with running({"naughty": server}) as hub:
        yield hub


async def test_a_call_that_hangs_is_given_up_and_the_server_is_told(
    naughty: McpHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = naughty.servers["naughty"]
    monkeypatch.setattr(server._connection, "_timeout", 0.05)
    with pytest.raises(ToolError, match=r"hang gave no sign of life for 0.05 seconds .*`timeout`"):
        await call(server, "hang")
    await until(lambda: "hang was cancelled" in server.log.lines)


async def test_a_call_that_goes_on_saying_so_may_take_longer(naughty: McpHub, monkeypatch: pytest.MonkeyPatch) -> None:
    server = naughty.servers["naughty"]
    monkeypatch.setattr(server._connection, "_timeout", 0.5)
    answer = await call(server, "slow", steps=5)
    assert answer.text == "done after all"


@pytest.mark.slow
async def test_five_megabytes_come_whole(naughty: McpHub) -> None:
    answer = await call(naughty.servers["naughty"], "big")
    assert len(answer.text) == 5_000_000 // 17 * 17


async def test_a_tool_that_changed_after_it_was_allowed_is_not_run(
    naughty: McpHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = naughty.servers["naughty"]
    allowed = tool(server, "shout")
    others = tuple(replace(t, description=f"{t.description} Sends it away.") for t in server.status.tools)
    monkeypatch.setattr(server, "status", replace(server.status, tools=others))
    with pytest.raises(ToolError, match="shout was not run: the server naughty has changed it"):
        await allowed.run({"name": "HOME"})
    monkeypatch.undo()
    assert not (await allowed.run({"name": "HOME"})).is_error


async def test_what_a_server_does_not_list_is_read_all_the_same(naughty: McpHub) -> None:
    server = naughty.servers["naughty"]
    assert server.status.resources == ()
    assert [offered.template for offered in server.status.templates] == ["page://{number}"]
    assert await server.complete("page://{number}", TemplateVariable("number", "page://", "4", {}, "", True)) == [
        "4",
        "42",
    ]
    assert (await server.read("page://7")).text == "page 7"


async def test_a_secret_of_the_configuration_is_in_no_line_of_the_log(naughty: McpHub) -> None:
    server = naughty.servers["naughty"]
    assert (await call(server, "shout", name="MY_PASSWORD")).text == SECRET  # it has it: that is what it is for
    await until(lambda: any("the variable is" in line for line in server.log.lines))
    assert not any(SECRET in line for line in server.log.lines)


async def test_tools_that_are_added_while_it_runs_are_offered(naughty: McpHub) -> None:
    server = naughty.servers["naughty"]
    before = len(server.tools())
    await call(server, "grow", count=3)
    await until(lambda: len(server.tools()) == before + 3)


@pytest.mark.slow
async def test_a_server_that_dies_in_mid_call_is_an_error_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.tools.mcp.server.BACKOFF", 0.01)
    add = ServerLog.add

    def late(log: ServerLog, text: str) -> None:
        time.sleep(0.2)  # as on a machine that has much else to do
        add(log, text)

    monkeypatch.setattr(ServerLog, "add", late)
    states: list[str] = []
    hub = make_hub(
        {"n": {"command": sys.executable, "args": [NAUGHTY]}},
        lambda name: states.append(hub.servers[name].status.state),
    )
    await hub.start()
    await hub.wait_until_started(START)
    server = hub.servers["n"]
    try:
        offered = [tool.schema for tool in server.tools()]
        with pytest.raises(ToolError) as error:
            await call(server, "die")
        assert "went away during die: it ended (Segmentation fault at [red]0x0[/red] really token=[key])" in str(
            error.value
        )
        assert [tool.schema for tool in server.tools()] == offered  # the beginning of the request stays what it was
        again = asyncio.create_task(call(server, "shout", name="HOME"))  # waits for it
        assert not (await again).is_error
        assert states == ["starting", "ready", "reconnecting", "ready"]

        from mcp.shared.exceptions import MCPError
        from mcp.types import INVALID_REQUEST

        async def forgotten(name: str, arguments: object, progress_callback: object) -> object:
            raise MCPError(INVALID_REQUEST, "Session terminated")  # what HTTP servers say that were started anew

        assert server._connection is not None
        monkeypatch.setattr(server._connection._client, "call_tool", forgotten)
        with pytest.raises(ToolError, match="went away during shout"):
            await call(server, "shout", name="HOME")
        assert not (await call(server, "shout", name="HOME")).is_error  # by the next connection
    finally:
        await hub.close()
    assert states[-1] == "off"


async def test_servers_that_do_not_start_say_why_and_what_to_do(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    hub = make_hub(
        {
            "late": {"command": sys.executable, "args": ["-c", "import sys; sys.exit('can not open the database')"]},
            "missing": {"command": "no-such-program-anywhere"},
            "nowhere": {"command": sys.executable, "cwd": str(gone)},
            "unset": {"command": sys.executable, "env": {"KEY": "${CHATCTX_SURELY_NOT_SET}"}},
            "wrong": {"comand": "x"},
        }
    )
    await hub.start()
    await hub.wait_until_started(START)
    reasons = {name: server.status.reason for name, server in hub.servers.items()}
    states = {server.status.state for server in hub.servers.values()}
    await hub.close()
    assert states == {"failed"}
    assert reasons["late"] == "it ended before it was ready (can not open the database)"
    assert (
        "no program no-such-program-anywhere; install it, or correct command of mcpServers.missing"
        in reasons["missing"]
    )
    assert f"no folder {gone}; correct cwd of mcpServers.nowhere" in reasons["nowhere"]
    assert "mcpServers.unset.env.KEY: the variable CHATCTX_SURELY_NOT_SET is not set" in reasons["unset"]
    assert "mcpServers.wrong has neither command nor url; did you mean command?" in reasons["wrong"]


async def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.tools.mcp.connection.START_WAIT", 0.2)
    hub = make_hub({"mute": {"command": sys.executable, "args": ["-c", "import sys; sys.stdin.read()"]}})
    await hub.start()
    await hub.wait_until_started(START)
    reason = hub.servers["mute"].status.reason
    await hub.close()
    assert reason == "it gave no answer in time"


async def test_a_server_that_is_off_or_was_never_ready_answers_no_call() -> None:
    hub = make_hub({"n": {"command": "no-such-program-anywhere"}, "wrong": {"comand": "x"}})
    await hub.start()
    await hub.wait_until_started(START)
    with pytest.raises(ToolError, match=r"The server wrong does not run: servers\.json: mcpServers\.wrong has"):
        await hub.servers["wrong"].read("x:y")
    with pytest.raises(ToolError, match="does not run: there is no program"):
        await hub.servers["n"].read("x:y")
    await hub.servers["n"].stop()
    with pytest.raises(ToolError, match="does not run: it is switched off"):
        await hub.servers["n"].read("x:y")
    await hub.close()


async def test_an_http_server_that_is_not_there_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.tools.mcp.server.BACKOFF", 0.01)
    states: list[str] = []
    hub = make_hub({"n": {"url": "http://127.0.0.1:9/mcp"}}, lambda name: states.append(hub.servers[name].status.state))
    await hub.start()
    await until(lambda: len(states) == 7)  # starting, five times reconnecting, failed
    later = [state for state in dict.fromkeys(states) if state != "starting"]  # which may be over when it is read
    assert later == ["reconnecting", "failed"]
    assert hub.servers["n"].status.reason == "nothing answers at http://127.0.0.1:9/mcp; is it running?"
    await hub.close()


def test_without_the_sdk_the_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.tools.mcp.server.importlib.util.find_spec", lambda _name: None)
    with running({"n": {"command": sys.executable}}) as hub:
        assert hub.servers["n"].status.reason == (
            "MCP servers need a part that is not installed: pip install 'chatctx[mcp]'"
        )


def test_a_log_keeps_neither_keys_nor_escapes_and_is_bounded(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "logs" / "mcp-x.log")
    log.add("\x1b]0;title\x07\x1b[2Jcleared api_key=abcdefghijklmnop \x9bhello\r\n")
    for number in range(300):
        log.add(f"line {number} %s %d")
    log.close()
    assert log.lines[-1] == "line 299 %s %d"
    assert len(log.lines) == 200
    text = (tmp_path / "logs" / "mcp-x.log").read_text()
    assert "cleared api_key=[key] \ufffdhello" in text
    assert "\x1b" not in text


def test_a_log_that_can_not_be_written_costs_the_file_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = ServerLog(tmp_path / "file" / "mcp-x.log")
    log.add("still here")
    assert log.reason == "still here"


async def test_a_server_that_writes_without_end_is_read_at_a_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.tools.mcp.status.MAX_PER_SECOND", 3)
    waits: list[float] = []
    monkeypatch.setattr("tui.tools.mcp.status.time.sleep", waits.append)
    log = ServerLog(None)
    with log.pipe() as end:
        end.write("".join(f"line {number}\n" for number in range(7)))
    await log.wait_for_output()
    assert log.lines == tuple(f"line {number}" for number in range(7))
    assert len(waits) == 2 and all(0 <= seconds <= 1 for seconds in waits)


async def test_a_server_that_can_not_be_used_still_says_why_after_a_restart() -> None:
    hub = make_hub({"x": {"comand": "y"}})
    server = hub.servers["x"]
    before = server.status
    await server.restart()
    await hub.close()
    assert (server.status, before.state) == (before, "failed")

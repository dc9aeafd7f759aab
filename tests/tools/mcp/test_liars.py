"""Servers that lie (liar_server.py): they hold up nobody, and what they mean is taken where it can be."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.tools.mcp.mcp_running import START, call, make_hub, until
from tui.tools.mcp.server import McpServer
from tui.tools.mcp.transport import readable

LIAR = str(Path(__file__).parent / "liar_server.py")


@asynccontextmanager
async def liar(lie: str) -> AsyncIterator[tuple[McpServer, list[str]]]:
    """The server and the states it was in; ended at once afterwards."""
    states: list[str] = []
    hub = make_hub(
        {"l": {"command": sys.executable, "args": [LIAR, lie]}}, lambda _: states.append(hub.servers["l"].status.state)
    )
    await hub.start()
    await hub.wait_until_started(START)
    try:
        yield hub.servers["l"], states
    finally:
        async with asyncio.timeout(10):
            await hub.close()


async def test_half_characters_are_replaced_where_they_would_cost_the_whole_answer() -> None:
    async with liar("halves") as (server, _):
        assert [tool.schema.description for tool in server.tools()] == ["Says it.", "\ufffd"]
        assert (await call(server, "echo")).text == "b\ufffdll.txt"


async def test_an_answer_that_is_none_is_an_error_at_once() -> None:
    async with liar("no-answer") as (server, _):
        output = await asyncio.wait_for(call(server, "echo"), 10)
        assert (output.text, output.is_error) == ("the server's answer is not one that MCP knows", True)


@pytest.mark.parametrize("wrong", ['"jsonrpc":"1.0","result":{}', '"result":{}', '"jsonrpc":"2.0","error":"no"'])
def test_whatever_is_wrong_with_an_answer_who_waits_for_it_is_told(wrong: str) -> None:
    from mcp.types import jsonrpc_message_adapter

    with pytest.raises(ValueError) as caught:
        jsonrpc_message_adapter.validate_json(f'{{"id":7,{wrong}}}', by_name=False)
    assert readable(caught.value).message.id == 7


@pytest.mark.slow
async def test_a_storm_of_changes_tells_nobody_and_ends_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.tools.mcp.server.MAX_CHANGES", 500)
    monkeypatch.setattr("tui.tools.mcp.server.BACKOFF", 60.0)
    async with liar("storm") as (server, states):
        await until(lambda: server.status.state == "reconnecting")
        assert server.status.reason.startswith("it announces changes without end")
        await until(lambda: len(states) == 3)
        assert states == ["starting", "ready", "reconnecting"]


async def test_a_server_that_hangs_while_it_is_asked_again_holds_up_no_end() -> None:
    async with liar("hangs-later") as (server, _):
        await until(lambda: server._listing)


async def test_a_server_that_fails_while_it_is_stopped_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = make_hub({"l": {"command": sys.executable, "args": [LIAR, "storm"]}})
    server = hub.servers["l"]
    starts: list[None] = []

    async def fails() -> None:
        starts.append(None)
        server._set_state("ready")
        monkeypatch.setattr(server, "_connection", object())
        await server._signals.get()
        server._connection = None
        raise RuntimeError("in its last moment")

    monkeypatch.setattr(server, "_run_connection", fails)
    monkeypatch.setattr("tui.tools.mcp.server.BACKOFF", 0.0)
    await hub.start()
    await until(lambda: bool(starts))
    async with asyncio.timeout(10):
        await hub.close()
    assert (len(starts), server.status.state) == (1, "off")

"""A hostile MCP server over HTTP takes no memory without end, and is followed nowhere."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.hostile.server import Attack, begin, endless_line, gzip_body, hostile_server
from tui.providers.config import Dialect
from tui.providers.http.sse import TooLargeError
from tui.tools.mcp.config import ServerConfig, Transport
from tui.tools.mcp.connection import Connection
from tui.tools.mcp.status import ServerLog, TransportStatus, failure_reason

LIMIT = 2_000_000  # bytes


def opened(config: ServerConfig, status: TransportStatus) -> AbstractAsyncContextManager[None]:
    """A connection of which nobody hears anything."""
    connection = Connection(config, ServerLog(None), lambda _: None, lambda _: None, None)
    return connection.opened(status, None, None)


async def failure(url: str, transport: Transport) -> str:
    """Why no connection comes about."""
    config = ServerConfig("x", "mcp.json", transport, url=url, max_response=LIMIT, key="mcpServers.x")
    status = TransportStatus()
    try:
        async with asyncio.timeout(20), opened(config, status):
            return "connected"
    except (Exception, ExceptionGroup) as error:
        return failure_reason(error, config, status)[0]


@pytest.mark.parametrize(
    ("attack", "transport", "expected"),
    [
        (gzip_body, "http", "it sent more than 2.0 MB in one answer; maxResponse of mcpServers.x"),
        (endless_line, "http", "it sent more than 2.0 MB in one answer; maxResponse of mcpServers.x"),
        (endless_line, "sse", 'it sent more than 1.0 MB in one answer; type = "http" in mcpServers.x'),  # the SDK's own
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
async def test_an_answer_without_end_is_cut_off(attack: Attack, transport: Transport, expected: str) -> None:
    async with hostile_server(attack, "openai-chat") as url:
        assert expected in await failure(f"{url}/mcp", transport)


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_redirect_to_another_server_is_not_followed(transport: Transport) -> None:
    connections = []

    async def elsewhere(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
        connections.append(writer)
        await begin(writer, "application/json")

    async with hostile_server(elsewhere, "openai-chat") as other:

        async def redirect(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
            await begin(writer, "text/plain", 307, f"location: {other}/mcp")

        async with hostile_server(redirect, "openai-chat") as url:
            error = await failure(f"{url}/mcp", transport)
    assert f"redirects to {other}/mcp, and redirects are not followed; if that is right" in error and not connections


@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize(
    ("code", "reason"), [(403, "it answered 403 X; check headers of"), (404, "there is no MCP server at http")]
)
async def test_a_refusal_is_told_by_its_status(transport: Transport, code: int, reason: str) -> None:
    async def refuse(writer: asyncio.StreamWriter, _dialect: Dialect) -> None:
        await begin(writer, "text/plain", code)

    async with hostile_server(refuse, "openai-chat") as url:
        assert (await failure(f"{url}/mcp", transport)).startswith(reason)


def program(tmp_path: Path, script: str) -> ServerConfig:
    """A server of which standard output is what a Python script writes."""
    path = tmp_path / "server.py"
    path.write_text(script)
    args = ("-S", str(path))
    return ServerConfig("x", "mcp.json", command=sys.executable, args=args, max_response=LIMIT, key="mcpServers.x")


ENDLESS = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
BOMB = "import sys, time\nsys.stdout.write('[' + '[],' * 600_000 + '[]]\\n'); sys.stdout.flush(); time.sleep(60)"


@pytest.mark.parametrize("script", [ENDLESS, BOMB], ids=["endless", "bomb"])
async def test_a_line_of_a_program_without_end_is_cut_off(
    tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.05)
    config, status = program(tmp_path, script), TransportStatus()
    with pytest.raises((TooLargeError, ExceptionGroup)) as caught:
        async with asyncio.timeout(20), opened(config, status):
            pass
    expected = "it sent more than 2.0 MB in one answer; maxResponse of mcpServers.x in mcp.json allows more"
    assert (failure_reason(caught.value, config, status)[0], status.exceeded) == (expected, LIMIT)

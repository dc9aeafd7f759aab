"""The pace of an answer: what keeps it alive, and what arrived while the program itself stood still."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncGenerator
from unittest.mock import AsyncMock

import httpcore2
import httpx2
import pytest

from tests.providers.collect import collect
from tests.providers.replay import Answer
from tests.providers.serving import DIALECTS, REQUEST, pieces, serving
from tui.providers.config import Dialect
from tui.providers.http import bounds
from tui.providers.http.bounds import BoundedTransport, Pace, time_limit


@pytest.mark.parametrize("arrives", [True, False])
async def test_what_arrived_while_the_program_was_stopped_is_read(
    monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    monkeypatch.setattr(bounds, "LATE", 0.02)
    arrived = asyncio.Event()

    async def pieces() -> AsyncGenerator[bytes, None]:
        await arrived.wait()
        yield b"data"

    waiting = asyncio.create_task(Pace(0.01).wait_for(pieces()))
    await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    loop.call_soon(time.sleep, 0.05)  # stopped
    if arrives:
        loop.call_soon(loop.call_soon, arrived.set)
        assert await waiting == b"data"
    else:
        with pytest.raises(httpx2.ReadTimeout):
            await waiting


async def test_the_time_for_which_the_program_was_stopped_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, stopped = asyncio.get_running_loop(), 0.0

    async def pieces() -> AsyncGenerator[bytes, None]:
        nonlocal stopped
        stopped = 100.0
        yield b"less than a line, "
        for _ in range(9):
            await asyncio.sleep(0)
        yield b"and more"

    time_running = loop.time
    monkeypatch.setattr(loop, "time", lambda: time_running() + stopped)
    pace, arriving = Pace(60.0), pieces()
    assert [await pace.wait_for(arriving), await pace.wait_for(arriving)] == [b"less than a line, ", b"and more"]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_comments_keep_an_answer_alive_that_takes_longer_than_its_patience(
    monkeypatch: pytest.MonkeyPatch, dialect: Dialect
) -> None:
    class Slow(Pace):
        """As if each piece took 0.6 seconds."""

        async def wait_for(self, pieces: AsyncGenerator[bytes, None]) -> bytes | None:
            if self._waited >= self._patience:
                raise httpx2.ReadTimeout("nothing came")
            piece = await anext(pieces, None)
            self._waited += 0.6
            return piece

    monkeypatch.setattr(bounds, "Pace", Slow)
    async with serving(dialect, idle_timeout=1.0) as (server, provider):
        server.answers.append(Answer([*[b": processing\n\n"] * 5, *pieces(dialect)]))
        got = await collect(provider, REQUEST)
    assert (got.text, got.error) == ("Hello", None)


async def test_a_limit_that_is_set_anew_replaces_the_earlier_one() -> None:
    async with time_limit(0.0) as limit:
        limit(None)
        for _ in range(5):
            await asyncio.sleep(0)
        limit(0.0)
        limit(60.0)
        for _ in range(5):
            await asyncio.sleep(0)


async def test_a_server_that_takes_only_a_part_of_a_request_has_to_answer_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection = "httpcore2._async.http11.AsyncHTTP11Connection"
    monkeypatch.setattr(f"{connection}._send_request_body", AsyncMock(side_effect=httpcore2.WriteError))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with httpx2.AsyncClient(transport=BoundedTransport(1_000), timeout=0.1) as client, asyncio.timeout(60):
            with pytest.raises(httpx2.ReadTimeout):
                await client.post(url, content=b"x")


def test_a_name_server_that_does_not_answer_does_not_delay_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    released, answered = threading.Event(), threading.Event()

    def look_up(*_: object, **__: object) -> list[object]:
        released.wait(10)
        answered.set()
        return []

    async def ask() -> None:
        async with httpx2.AsyncClient(transport=BoundedTransport(1_000), trust_env=False) as client:
            async with asyncio.timeout(0.05):
                await client.get("http://name.invalid")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(TimeoutError):
        asyncio.run(ask())
    assert not answered.is_set()
    released.set()


@pytest.mark.parametrize(("silent", "error"), [(True, httpx2.ConnectTimeout), (False, httpx2.ConnectError)])
async def test_a_look_up_has_the_time_of_a_connection_and_fails_as_one(
    silent: bool, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()

    def look_up(*_: object, **__: object) -> list[object]:
        if silent:
            released.wait(10)
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    async with httpx2.AsyncClient(transport=BoundedTransport(1_000), timeout=0.05) as client:
        with pytest.raises(error):
            await client.get("http://name.invalid")
    released.set()
    assert "getaddrinfo" not in vars(asyncio.get_running_loop())

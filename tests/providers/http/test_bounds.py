"""The pace of an answer, while the program itself stands still."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator

import httpx2
import pytest

from tui.providers.http import bounds
from tui.providers.http.bounds import Pace


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

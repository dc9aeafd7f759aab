"""A hostile model server takes neither memory nor patience without end."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from tests.hostile.server import (
    FLOODS,
    TRICKLES,
    Attack,
    endless_answer,
    endless_header,
    endless_headers,
    hostile_server,
    pings,
)
from tests.hostile.victim import peak
from tests.providers.collect import collect
from tests.providers.serving import DIALECTS, REQUEST
from tui.providers.config import Dialect, ProviderConfig
from tui.providers.http import transport
from tui.providers.registry import make_provider

LIMIT = 8_000_000  # bytes


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_answer_without_end_is_cut_off_in_bounded_memory(dialect: Dialect) -> None:
    """Each attack in one of the dialects, text without end in all."""
    number = DIALECTS.index(dialect)
    attacks = list(dict.fromkeys(attack.__name__ for attack in (*FLOODS[number::3], endless_answer)))
    async with hostile_server(endless_answer, dialect) as url:
        victim = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.hostile.victim", url, dialect, str(LIMIT), *attacks),
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(120):
            errors, grown = json.loads((await victim.communicate())[0])
    assert list(errors) == attacks
    assert all("max_response" in error and "8.0 MB" in error for error in errors.values()), errors
    assert grown <= 3 * LIMIT


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("attack", TRICKLES, ids=lambda attack: attack.__name__)
async def test_a_server_that_trickles_has_stalled(attack: Attack, dialect: Dialect) -> None:
    async with hostile_server(attack, dialect) as url:
        provider = make_provider("p", ProviderConfig("p", dialect, f"{url}/v1", idle_timeout=0.5))
        async with asyncio.timeout(20):
            got = await collect(provider, REQUEST)
        await provider.close()
    assert got.error is not None and got.error.kind == "stalled"
    assert "next to nothing for 0.5 seconds" in str(got.error) and "idle_timeout" in str(got.error)


async def test_signs_of_life_without_an_answer_are_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_THOUGHT", 0.5)
    async with hostile_server(pings, "openai-chat") as url:
        provider = make_provider("p", ProviderConfig("p", base_url=f"{url}/v1", idle_timeout=5.0))
        async with asyncio.timeout(20):
            got = await collect(provider, REQUEST)
        await provider.close()
    assert got.error is not None and got.error.kind == "stalled"


@pytest.mark.parametrize("attack", [endless_header, endless_headers], ids=lambda attack: attack.__name__)
async def test_a_header_without_end_is_an_error(attack: Attack) -> None:
    async with hostile_server(attack, "openai-chat") as url:
        await collect(
            make_provider("p", ProviderConfig("p", base_url=f"{url}/calm/v1")), REQUEST
        )  # loads the HTTP library
        provider = make_provider("p", ProviderConfig("p", base_url=f"{url}/v1"))
        before = peak()
        async with asyncio.timeout(20):
            got = await collect(provider, REQUEST)
        await provider.close()
    assert got.error is not None and got.error.kind in ("network", "protocol"), got.error
    assert peak() - before < LIMIT

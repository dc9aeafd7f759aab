"""`/tools`."""

from __future__ import annotations

import asyncio

import pytest

from tests.commands.scripted_ui import Commands, printed
from tui.tools.approval import Remembered


async def test_they_are_listed_with_what_they_cost(commands: Commands) -> None:
    await commands.session.refresh_usage()
    [view] = (await commands.run("/tools")).views
    lines = (await printed(view)).splitlines()
    assert lines[0].startswith("1 tool, ~") and "tokens with every request" in lines[0]
    assert "fetch" in lines[2] and "asks first" in lines[2]


@pytest.mark.parametrize("pattern", ["fetch", "f*", ""])
async def test_they_are_switched_off_and_on(commands: Commands, pattern: str) -> None:
    ui = await commands.run(f"/tools off {pattern}")
    assert ui.output == ["fetch is not offered any more in this conversation."] and ui.changes == 1
    assert [line.on for line in await commands.session.tools.lines()] == [False]
    assert await commands.output(f"/tools on {pattern}") == "fetch is offered in this conversation."


async def test_an_answer_is_forgotten(commands: Commands) -> None:
    assert (await commands.output("/tools forget fetch")).startswith("fetch asks again")
    tools = commands.session.tools
    await asyncio.to_thread(tools.box.remember, Remembered("gone__tool", "allow", "0"))  # its server is not here
    assert (await commands.output("/tools forget gone__tool")).startswith("gone__tool asks again")
    assert await tools.remembered() == []
    assert await commands.refusal("/tools forget gone__tool") == "There is no tool 'gone__tool': /tools lists them."


async def test_anything_else_is_refused(commands: Commands) -> None:
    assert await commands.refusal("/tools off nothing") == "There is no tool 'nothing': /tools lists them."
    assert "/tools on NAME" in await commands.refusal("/tools dance")
    assert 'defer = "off"' in await commands.refusal("/tools off search_tools")


async def test_words_and_names_are_completed(commands: Commands) -> None:
    assert await commands.completions("/tools o") == ["/tools on ", "/tools off "]
    assert await commands.completions("/tools off f") == ["/tools off fetch"]

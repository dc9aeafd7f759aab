"""`/rolling-context`."""

from __future__ import annotations

import pytest

from tests.commands.scripted_ui import Commands


@pytest.mark.parametrize("line", ["/rolling-context", "/rolling-context toggle", "/rolling ON"])
async def test_it_is_switched_on(commands: Commands, line: str) -> None:
    ui = await commands.run(line)
    assert ui.output == [
        "Rolling context is on: old content is left out when the window is nearly full. Nothing is deleted."
    ]
    assert commands.session.conversation.info.rolling and ui.changes == 1


async def test_it_is_switched_off_again(commands: Commands) -> None:
    await commands.run("/rolling-context on")
    assert "is off: old content is summarised" in await commands.output("/rolling-context toggle")
    assert not commands.session.conversation.info.rolling


async def test_anything_else_is_refused(commands: Commands) -> None:
    assert await commands.refusal("/rolling-context maybe") == "/rolling-context takes on or off, not 'maybe'."
    assert not commands.session.conversation.info.rolling

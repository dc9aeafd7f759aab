"""`/times`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands


async def test_they_are_shown_and_hidden(commands: Commands) -> None:
    assert commands.screen is not None
    await commands.run("/times")
    assert commands.screen.times
    await commands.run("/times")
    assert not commands.screen.times

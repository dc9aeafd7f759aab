"""`/fold`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands


async def test_the_transcript_is_folded(commands: Commands) -> None:
    await commands.run("/fold")
    assert commands.screen is not None and commands.screen.folded

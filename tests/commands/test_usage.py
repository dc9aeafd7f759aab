"""`/usage`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands, printed


async def test_it_adds_up_the_calls(conversation: Commands) -> None:
    [view] = (await conversation.run("/cost")).views
    lines = (await printed(view)).splitlines()
    assert lines[0].split() == ["session", "today", "total"]
    assert lines[1].split() == ["calls", "1", "1", "1"]
    assert any(line.startswith("scripted/m") for line in lines)

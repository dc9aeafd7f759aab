"""`/system`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands


async def test_it_is_shown_and_changed(commands: Commands) -> None:
    assert await commands.output("/system") == "There is no system prompt. /system TEXT sets one."
    ui = await commands.run("/system Be brief.")
    assert ui.output == ["The system prompt is changed from the next message on."] and ui.changes == 1
    assert commands.session.system == "Be brief."
    assert await commands.output("/system") == "System prompt: Be brief."

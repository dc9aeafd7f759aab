"""`/system`."""

from __future__ import annotations

from dataclasses import replace

from tests.commands.scripted_ui import Commands


async def test_it_is_shown_and_changed(commands: Commands) -> None:
    assert await commands.output("/system") == "There is no system prompt. /system TEXT sets one."
    ui = await commands.run("/system Be brief.")
    assert ui.output == ["The system prompt is changed from the next message on."] and ui.changes == 1
    assert commands.session.system == "Be brief."
    assert await commands.output("/system") == "System prompt (/system off removes it): Be brief."


async def test_it_is_removed_and_that_of_the_config_file_is_used_again(commands: Commands) -> None:
    await commands.run("/system Be brief.")
    assert await commands.output("/system OFF") == "No system prompt is sent from the next message on."
    assert commands.session.system == "" and commands.session.conversation.request().system == ()
    assert await commands.output("/system reset") == "No system prompt is sent from the next message on."
    commands.workspace.settings = replace(commands.workspace.settings, system="Be kind.")
    expected = "The system prompt is that of the config file from the next message on: Be kind."
    assert await commands.output("/system reset") == expected
    assert commands.session.system == "Be kind."
    assert await commands.completions("/system ") == ["/system off", "/system reset"]
    assert await commands.completions("/system set") == []  # a text

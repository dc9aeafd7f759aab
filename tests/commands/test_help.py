"""`/help`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands, printed
from tui.commands.registry import all_commands


async def test_every_command_is_listed_whole(commands: Commands) -> None:
    [view] = (await commands.run("/help")).views
    text = " ".join((await printed(view, 100)).split())
    assert all(f"{command.usage} {command.help}" in text for command in all_commands())


async def test_in_lines_those_that_need_a_screen_are_not(commands: Commands) -> None:
    commands.screen = None
    [view] = (await commands.run("/?")).views
    text = await printed(view)
    assert "/context" in text and "/theme" not in text

"""`/help`: nothing is cut off."""

from __future__ import annotations

import re

import pytest

from tests.commands.scripted_ui import Commands, printed
from tui.commands import all_commands
from tui.commands.help import COLUMN, WIDE_COLUMN, Key, help_lines


async def test_every_command_is_listed_whole(commands: Commands) -> None:
    [view] = (await commands.run("/help")).views
    text = " ".join((await printed(view, 100)).split())
    assert all(f"{command.usage} {command.help}" in text for command in all_commands())


async def test_in_lines_those_that_need_a_screen_are_not(commands: Commands) -> None:
    commands.screen = None
    [view] = (await commands.run("/?")).views
    text = await printed(view)
    assert "/context" in text and "/theme" not in text


@pytest.mark.parametrize("width", [34, 53, 60, 93, 105])
def test_syntax_and_keys_are_whole_at_every_width(width: int) -> None:
    commands = [(command.usage, command.help) for command in all_commands()]
    keys = "ctrl+shift+alt+f12  ctrl+shift+alt+f11  ctrl+shift+alt+f10"
    lines = [line.plain for line in help_lines(commands, {"Writing": [Key(keys, "Send", "composer.send")]}, width)]
    assert max(map(len, lines)) <= width
    left_column = (
        " ".join(lines) if width < 60 else " ".join(line[: WIDE_COLUMN if width >= 80 else COLUMN] for line in lines)
    )
    shown = re.sub(r"\s+", " ", left_column)
    for text in (*(usage for usage, _ in commands), keys):
        assert re.sub(r"\s+", " ", text) in shown

"""`/help`: nothing is cut off."""

from __future__ import annotations

import re

import pytest

from tui.commands.registry import all_commands
from tui.views.help_lines import COLUMN, WIDE_COLUMN, Key, help_lines


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

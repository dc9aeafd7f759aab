"""`/edit`."""

from __future__ import annotations

from tests.commands.scripted_ui import Commands
from tui.commands import EditorError


async def test_the_draft_is_edited(commands: Commands) -> None:
    assert commands.screen is not None
    commands.screen.draft = "a draft"
    await commands.run("/edit")
    assert commands.screen.draft == "a draft, edited"


async def test_an_editor_that_fails_is_one_line(commands: Commands) -> None:
    assert commands.screen is not None
    commands.screen.problem = EditorError("The editor 'x' could not be started.")
    assert await commands.refusal("/edit") == "The editor 'x' could not be started."

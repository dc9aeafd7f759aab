"""`/memory`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.scripted_ui import Commands
from tui.views.view import Menu


@pytest.fixture
async def with_files(commands: Commands, tmp_path: Path) -> Commands:
    """A conversation in a folder with a memory file."""
    (tmp_path / "AGENTS.md").write_text("Be kind.")
    commands.chat.attached = await commands.workspace.new_session()
    return commands


async def test_a_file_is_switched_off_and_on(with_files: Commands) -> None:
    name = with_files.session.conversation.memory.files[0].name
    ui = await with_files.run("/memory AGENTS.md")
    assert ui.output == [f"{name} is not sent any more, from the next message on."] and ui.changes == 1
    ui = await with_files.run("/memory", name)
    assert ui.output == [f"{name} is sent again, from the next message on."]
    [menu] = ui.questions
    assert isinstance(menu, Menu)
    [option] = await menu.source("")
    assert option.detail.startswith("off ") and option.detail.endswith("tokens")


async def test_a_name_that_is_none_is_refused(with_files: Commands) -> None:
    name = with_files.session.conversation.memory.files[0].name
    assert await with_files.refusal("/memory x") == f"No single memory file matches 'x'. Choose one of: {name}."
    assert await with_files.completions("/memory AGENTS") == [f"/memory {name}"]
    assert (await with_files.run("/memory", None)).output == []


async def test_without_files_it_says_what_would_be_one(commands: Commands) -> None:
    assert await commands.output("/memory") == ("No memory files found. Put an AGENTS.md into this folder or above it.")

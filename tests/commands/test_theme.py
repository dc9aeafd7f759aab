"""`/theme`."""

from __future__ import annotations

from pathlib import Path

from tests.commands.scripted_ui import Commands
from tui.views.view import Menu


async def test_a_theme_is_named_or_chosen_and_remembered(commands: Commands, tmp_path: Path) -> None:
    assert commands.screen is not None
    await commands.run("/theme light")
    assert commands.screen.theme == "light"
    assert (tmp_path / "data" / "theme").read_text().strip() == "light"
    [menu] = (await commands.run("/theme", "dark")).questions
    assert isinstance(menu, Menu) and menu.preview == commands.screen.use_theme
    assert commands.screen.theme == "dark"


async def test_left_the_old_one_is_back(commands: Commands) -> None:
    assert commands.screen is not None
    commands.screen.theme = "light"
    await commands.run("/theme", None)
    assert commands.screen.theme == "light"


async def test_an_unknown_one_is_refused(commands: Commands) -> None:
    assert await commands.refusal("/theme nowhere") == "There is no theme 'nowhere': /theme lists them."
    assert await commands.completions("/theme l") == ["/theme light"]

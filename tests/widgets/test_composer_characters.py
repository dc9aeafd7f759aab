"""A character is what a person takes for one: moved over, deleted and selected whole."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from tests.text.test_clusters import CLUSTERS
from tui.widgets.composer import Composer

FAMILY = "👩‍👩‍👧"


class Host(App[None]):
    def compose(self) -> ComposeResult:
        yield Composer()


@pytest.mark.parametrize("cluster", CLUSTERS)
async def test_arrows_and_backspace_take_a_character_whole(cluster: str) -> None:
    app = Host()
    async with app.run_test() as pilot:
        composer = app.query_one(Composer)
        composer.focus_prompt()
        composer.value = f"a{cluster}b"
        await pilot.press("left", "left", "x")
        assert composer.value == f"ax{cluster}b"
        await pilot.press("right", "backspace")
        assert composer.value == "axb"
        composer.value = f"a{cluster}b"
        await pilot.press("home", "right", "delete")
        assert composer.value == "ab"
        composer.value = f"a{cluster}b"
        await pilot.press("left", "shift+left")
        assert composer.area.selected_text == cluster


async def test_up_and_down_end_at_a_character_s_edge() -> None:
    app = Host()
    async with app.run_test() as pilot:
        composer = app.query_one(Composer)
        composer.focus_prompt()
        composer.value = f"abcd\n{FAMILY}{FAMILY}\nabcd"
        for key in ("up", "down"):
            for column in range(5):
                composer.area.move_cursor((2 if key == "up" else 0, column))
                await pilot.press(key)
                assert composer.area.cursor_location[1] in (0, len(FAMILY), 2 * len(FAMILY))


async def test_a_click_lands_at_a_character_s_edge() -> None:
    app = Host()
    async with app.run_test() as pilot:
        composer = app.query_one(Composer)
        composer.value = f"a{FAMILY}{FAMILY}b"
        for x in range(7):
            await pilot.click(composer.area, offset=(x, 0))
            assert composer.area.cursor_location[1] in (0, 1, 1 + len(FAMILY), 1 + 2 * len(FAMILY), 2 + 2 * len(FAMILY))

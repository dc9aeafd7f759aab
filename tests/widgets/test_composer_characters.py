"""A character is what a person takes for one: moved over, deleted and selected whole."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.events import Paste

from tests.text.test_clusters import CLUSTERS
from tui.widgets.composer import Composer

FAMILY = "👩‍👩‍👧"


class Host(App[None]):
    def compose(self) -> ComposeResult:
        yield Composer()


async def test_arrows_and_backspace_take_a_character_whole() -> None:
    app = Host()
    async with app.run_test() as pilot:
        composer = app.query_one(Composer)
        composer.focus_prompt()
        for cluster in CLUSTERS:
            area = composer.area
            composer.value = f"a{cluster}b"
            area.action_cursor_left()
            area.action_cursor_left()
            area.insert("x")
            assert composer.value == f"ax{cluster}b"
            area.action_cursor_right()
            area.action_delete_left()
            assert composer.value == "axb", cluster
            composer.value = f"a{cluster}b"
            area.move_cursor((0, 1))
            area.action_delete_right()
            assert composer.value == "ab", cluster
            composer.value = f"a{cluster}b"
            area.action_cursor_left()
            area.action_cursor_left(select=True)
            assert area.selected_text == cluster
        await pilot.press("home", "right", "delete", "backspace")  # the keys do this
        assert composer.value == "b"


async def test_up_and_down_and_a_click_end_at_a_character_s_edge() -> None:
    app = Host()
    async with app.run_test() as pilot:
        composer = app.query_one(Composer)
        composer.focus_prompt()
        composer.value = f"abcd\n{FAMILY}{FAMILY}\nabcd"
        for move, row in ((composer.area.action_cursor_up, 2), (composer.area.action_cursor_down, 0)):
            for column in range(5):
                composer.area.move_cursor((row, column))
                move()
                assert composer.area.cursor_location[1] in (0, len(FAMILY), 2 * len(FAMILY))
        composer.value = f"a{FAMILY}{FAMILY}b"
        await pilot.pause()
        for x in range(7):
            await pilot.click(composer.area, offset=(x, 0))
            assert composer.area.cursor_location[1] in (0, 1, 1 + len(FAMILY), 1 + 2 * len(FAMILY), 2 + 2 * len(FAMILY))


async def test_a_chip_is_deleted_whole() -> None:
    app = Host()
    async with app.run_test() as pilot:
        area = app.query_one(Composer).area
        area.focus()
        area.post_message(Paste("x" * 3_000))
        await pilot.pause()
        assert "[paste 1" in area.text
        await pilot.press("backspace")
        assert area.text == ""

"""The list that draws only the rows it shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.app import App
from textual.content import Content

from tests.screens.conftest import wait_until
from tui.screens.base import Hint
from tui.screens.rows import RowList, RowsPanel
from tui.views.view import Row


class Numbers(RowsPanel[None, Row]):
    """Rows of numbers. Those in `texts` can't be chosen."""

    def __init__(self, count: int, texts: Sequence[int] = ()) -> None:
        session: Any = None
        super().__init__(session)
        self.count, self.texts = count, texts
        self.drawn: set[str] = set()
        self.picked: list[str] = []

    def on_mount(self) -> None:
        """Draw."""
        self.redraw()

    def redraw(self) -> None:
        """All rows."""
        self.draw((), [Row(Content(f"row {n}"), "" if n in self.texts else f"key {n}") for n in range(self.count)])

    def content(self, row: Row, width: int) -> Content:
        """Note the row."""
        self.drawn.add(row.content.plain)
        return super().content(row, width)

    def hints(self) -> Sequence[Hint]:
        """None."""
        return ()

    def action_choose(self) -> None:
        """Note the choice."""
        self.picked.append(self.chosen_key)


async def test_only_visible_rows_are_drawn_and_every_key_moves() -> None:
    app: App[None] = App()
    async with app.run_test(size=(40, 40)) as pilot:
        await app.push_screen(panel := Numbers(10_000))
        await pilot.pause()
        assert 30 < len(panel.drawn) < 40
        await pilot.press("down", "down", "j", "k", "enter")
        assert panel.picked == ["key 2"]
        await pilot.press("end")
        assert panel.chosen_key == "key 9999"
        await wait_until(pilot, lambda: "row 9999" in panel.drawn)
        assert len(panel.drawn) < 120
        await pilot.press("up", "pageup")
        assert panel.cursor == 9_967
        await pilot.press("pagedown", "home", "pageup")
        assert panel.cursor == 0
        await pilot.press("up")
        assert panel.cursor == 9_999
        await pilot.press("down")
        assert panel.cursor == 0
        await pilot.click(RowList, offset=(2, 4))
        assert panel.picked == ["key 2", "key 4"]


async def test_the_cursor_passes_over_text_and_stays_on_its_row() -> None:
    app: App[None] = App()
    async with app.run_test(size=(40, 40)) as pilot:
        await app.push_screen(panel := Numbers(6, texts=(0, 2, 5)))
        await pilot.pause()
        assert panel.chosen_key == "key 1"
        await pilot.press("down")
        assert panel.chosen_key == "key 3"
        await pilot.press("pagedown")
        assert panel.chosen_key == "key 4"
        await pilot.press("down")
        assert panel.chosen_key == "key 1"
        await pilot.press("end", "home", "pageup", "up")
        assert panel.chosen_key == "key 4"
        await pilot.click(RowList, offset=(2, 5))
        assert panel.picked == []
        panel.texts = (0,)
        panel.redraw()
        assert panel.chosen_key == "key 4"
        panel.count = 3  # its row is gone
        panel.redraw()
        assert panel.chosen_key == "key 1"


async def test_in_an_empty_list_no_key_does_anything() -> None:
    app: App[None] = App()
    async with app.run_test(size=(40, 40)) as pilot:
        await app.push_screen(panel := Numbers(0))
        await pilot.press("down", "up", "pagedown", "pageup", "home", "end")
        assert panel.chosen is None
        assert panel.chosen_item == ("", "")

"""The list that makes only the rows it shows."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.content import Content

from tui.screens.context_lists import LineList
from tui.screens.lists import PagedList


class ListApp(App[None]):
    """One list of ten thousand rows."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: set[int] = set()
        self.chosen: list[int] = []

    def compose(self) -> ComposeResult:
        """The list alone."""
        yield LineList()

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Note the choice."""
        self.chosen.append(event.index)


async def test_only_visible_rows_are_made_and_every_key_moves() -> None:
    app = ListApp()
    async with app.run_test(size=(40, 10)) as pilot:
        rows = app.query_one(LineList)

        def draw(index: int, width: int) -> Content:
            app.drawn.add(index)
            return Content(f"row {index}"[:width])

        rows.show(10_000, draw, 0)
        await pilot.pause()
        rows.focus()
        assert max(app.drawn) < 20
        await pilot.press("down", "down", "j", "k", "enter")
        assert app.chosen == [2]
        await pilot.press("end")
        await pilot.pause()
        assert rows.cursor == 9_999
        assert rows.render_line(9).text.startswith("row 9999")
        assert len(app.drawn) < 60
        await pilot.press("down", "pageup")
        assert rows.cursor == 9_990
        await pilot.press("pagedown", "home", "up")
        assert rows.cursor == 0
        await pilot.click(LineList, offset=(2, 4))
        assert app.chosen == [2, 4]


async def test_an_empty_list_and_a_shorter_one_hold() -> None:
    app = ListApp()
    async with app.run_test(size=(40, 10)) as pilot:
        rows = app.query_one(LineList)
        rows.focus()
        await pilot.press("enter", "down", "end")
        assert app.chosen == [] and rows.cursor == 0
        rows.show(5, lambda index, width: Content(str(index)), 99)
        await pilot.pause()
        assert rows.cursor == 4
        assert rows.size.height == 5
        rows.show(2, lambda index, width: Content(str(index)), 1)
        await pilot.pause()
        await pilot.press("enter")
        assert app.chosen == [1]


async def test_a_page_before_the_list_is_laid_out_does_nothing() -> None:
    class Hidden(App[None]):
        def compose(self) -> ComposeResult:
            rows = PagedList("one", "two")
            rows.display = False
            yield rows

    app = Hidden()
    async with app.run_test():
        rows = app.query_one(PagedList)
        rows.highlighted = 1
        await app.run_action("page_down", rows)
        await app.run_action("page_up", rows)
        assert rows.highlighted == 1

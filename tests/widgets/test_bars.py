"""The line above the prompt, as wide as it is."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.content import Content

from tui.screens.chat.drafts import draft_line
from tui.widgets.bars import RuleLine

FILES = [("解析器の文書.py", 2_100), ("b.py", 700)]


class Host(App[None]):
    def compose(self) -> ComposeResult:
        yield RuleLine()


async def test_what_fits_is_said_and_the_line_is_never_longer_than_it_may_be() -> None:
    drawn = []
    async with Host().run_test(size=(100, 3)) as pilot:
        rule = pilot.app.query_one(RuleLine)
        rule.show(left=Content("● answering"), right=draft_line(48, 8_192, FILES))
        for width in (100, 60, 40, 22):
            await pilot.resize_terminal(width, 3)
            await pilot.pause()
            line = rule.render()
            assert line.cell_length == width - 2
            drawn.append(line.plain.rpartition("─ ")[2])
    assert drawn == [
        "draft ~48 tok + 解析器の文書.py ~2.1k + b.py ~700 · +34.8 %",
        "draft + 2 files ~2,848 tok · +34.8 %",
        "~2,848 tok · +34.8 %",
        "● answering ────────",
    ]


async def test_a_sentence_that_does_not_fit_is_cut_or_left_out() -> None:
    async with Host().run_test(size=(40, 3)) as pilot:
        rule = pilot.app.query_one(RuleLine)
        rule.show(right=("! some-model-of-theirs takes no image: picture.png",))
        assert rule.render().plain.endswith("takes no im…")
        rule.show(left=Content("x" * 30))
        assert rule.render().plain == "x" * 30 + " " + "─" * 7

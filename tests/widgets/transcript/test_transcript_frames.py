"""What a frame of the transcript costs: a reply that grows lays nothing out, keeps its lines, spares the scroll bar."""

from __future__ import annotations

from typing import Any

import pytest
from textual._compositor import Compositor
from textual.geometry import Region
from textual.scrollbar import ScrollBar, ScrollBarRender

from tests.messages import user
from tests.widgets.transcript.messages import conversation
from tests.widgets.transcript.test_transcript import running, until


async def test_a_growing_reply_lays_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    layouts: list[object] = []
    reflow = Compositor.reflow

    def counted(self: Compositor, *args: Any) -> Any:
        layouts.append(args)
        return reflow(self, *args)

    monkeypatch.setattr(Compositor, "reflow", counted)
    async with running(conversation(40)) as (pilot, view):
        view.start_reply("r", "p", "m")
        await pilot.pause()
        layouts.clear()
        before = view.virtual_size.height
        view.delta("r", "text", "one\n\ntwo\n\nthree\n\nfour\n\n")
        await until(pilot, lambda: view.virtual_size.height > before + 4)
        await pilot.pause()
        assert not layouts


async def test_a_line_that_moves_is_the_same_line() -> None:
    async with running(conversation(40)) as (pilot, view):
        region = Region(0, 0, *view.size)
        before = view.render_lines(region)
        view.scroll_relative(y=-3, animate=False)
        await pilot.pause()
        assert all(old is new for old, new in zip(before[:-3], view.render_lines(region)[3:], strict=True))


async def test_part_of_a_line_is_cut_and_filled() -> None:
    async with running(conversation(4)) as (_, view):
        whole = view.render_lines(Region(0, 0, *view.size))
        part = view.render_lines(Region(3, 2, 10, 4))
        assert [strip.text for strip in part] == [strip.crop(3, 13).text for strip in whole[2:6]]
        assert {strip.cell_length for strip in whole} == {view.size.width}


def drawn(bar: ScrollBar) -> list[tuple[str, Any]]:
    """What Textual makes of the bar's values, without colours."""
    made = ScrollBarRender.render_bar(
        bar.size.height, bar.window_virtual_size, bar.window_size, bar.position, vertical=True
    )
    return [(s.text, bool(s.style and s.style.reverse)) for s in made.segments if s.text.strip("\n")]


async def test_the_scroll_bar_is_drawn_when_its_thumb_moves_and_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(conversation(60)) as (pilot, view):
        bar = view.vertical_scrollbar
        refreshes: list[object] = []
        monkeypatch.setattr(bar, "refresh", lambda *regions: refreshes.append(regions))
        shown, not_drawn = drawn(bar), 0
        for _ in range(12):
            refreshes.clear()
            view.append(user("one line", id=f"x{len(view.document.entries)}"))
            await pilot.pause()
            now = drawn(bar)
            assert now == shown or refreshes
            not_drawn += not refreshes
            shown = now
        assert not_drawn  # most of the time there is nothing to draw
        assert bar.position == view.scroll_y
        assert bar.window_virtual_size == view.virtual_size.height

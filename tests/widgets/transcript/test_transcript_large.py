"""Large messages: drawn in a thread, while the view scrolls, searches and copies as if they were there."""

from __future__ import annotations

import asyncio
import threading

import pytest
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection

from tests.messages import assistant
from tests.widgets.transcript.messages import conversation
from tests.widgets.transcript.test_transcript import running, until
from tui.messages import Message
from tui.render.rows import Row
from tui.widgets.transcript.entries import Drawing
from tui.widgets.transcript.selection import line_number
from tui.widgets.transcript.transcript import Transcript

PARAGRAPHS = [f"paragraph {number} of many" for number in range(400)]


def large(ident: str = "big") -> Message:
    return assistant("\n\n".join(PARAGRAPHS), id=ident, model="m")


def drawn(view: Transcript) -> bool:
    return all(entry.job is None for entry in view.document.entries)


def top_line(view: Transcript) -> str:
    return "".join(segment.text for segment in view.render_line(0)).strip()


async def arrives(pilot: Pilot[None], view: Transcript, text: str) -> None:
    """A reply piece by piece, each drawn at once."""
    for start in range(0, len(text), 3_000):
        view.delta("big", "text", text[start : start + 3_000])
        await until(pilot, lambda: view._live is not None and not view._live.backlog)
    assert PARAGRAPHS[-1] in view.render_line(view.size.height - 1).text


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Drawing in the thread waits for this; on the event loop's thread it is an error."""
    opened, loop = threading.Event(), threading.get_ident()
    run = Drawing.large_rows

    def gated(self: Drawing) -> list[Row]:
        assert threading.get_ident() != loop, "drawn on the event loop"
        assert opened.wait(10)
        return run(self)

    monkeypatch.setattr(Drawing, "large_rows", gated)
    return opened


async def test_a_conversation_with_a_large_message_opens_at_its_end(gate: threading.Event) -> None:
    async with running([*conversation(4), large()]) as (pilot, view):
        assert "drawing" in top_line(view) or not drawn(view)
        gate.set()
        await until(pilot, lambda: drawn(view))
        assert view.reader_place is None
        assert view.document.heights[4] > 2 * len(PARAGRAPHS)
        last = [view.render_line(y).text.strip() for y in range(view.size.height)]
        assert last[-1] == PARAGRAPHS[-1]


async def test_a_long_answer_that_ends_stays_on_screen_while_it_is_drawn_whole(gate: threading.Event) -> None:
    async with running(conversation(2)) as (pilot, view):
        view.start_reply("big", "p", "m")
        await arrives(pilot, view, large().text)
        view.finish_reply(large())
        assert PARAGRAPHS[-1] in view.render_line(view.size.height - 1).text
        assert not drawn(view)
        gate.set()
        await until(pilot, lambda: drawn(view))
        assert PARAGRAPHS[-1] in view.render_line(view.size.height - 1).text


async def test_the_reader_who_comes_from_below_stays_near_the_end_of_it(gate: threading.Event) -> None:
    async with running([large(), *conversation(12)]) as (pilot, view):
        view.scroll_to(y=view.document.heights.top(1), animate=False)
        view.scroll_relative(y=-6, animate=False)
        below = view.document.heights.top(1) - round(view.scroll_y)
        gate.set()
        await until(pilot, lambda: drawn(view))
        assert view.document.heights.top(1) - round(view.scroll_y) == below
        assert PARAGRAPHS[-1] in "".join(view.render_line(y).text for y in range(below))


async def test_what_is_found_in_it_is_shown_when_it_is_drawn(gate: threading.Event) -> None:
    async with running([large(), *conversation(12)]) as (pilot, view):
        assert await view.search("paragraph 200 of") == 1
        assert view.go_to_hit(forward=False) == (1, 1)
        gate.set()
        await until(pilot, lambda: drawn(view))
        assert any("paragraph 200 of" in view.render_line(y).text for y in range(view.size.height))


async def test_a_copy_has_the_text_even_before_it_is_drawn(gate: threading.Event) -> None:
    gate.set()
    async with running([large(), *conversation(1)]) as (pilot, view):
        await until(pilot, lambda: drawn(view))
        view.document.entries[0].rows = view.document.entries[0].drawn = None
        view.document.draw(0)
        selection = Selection(Offset(0, line_number(0, 2)), Offset(11, line_number(0, 4)))
        copied = await asyncio.to_thread(view.get_selection, selection)
        assert copied == ("paragraph 0 of many\n\nparagraph 1", "\n")


async def test_what_was_drawn_for_another_width_is_drawn_again(gate: threading.Event) -> None:
    async with running([large()]) as (pilot, view):
        job = view.document.entries[0].job
        assert job is not None
        await pilot.resize_terminal(30, 20)
        await until(pilot, lambda: view.document.width != job.width)
        assert view.document.accept(0, job, []) is None
        gate.set()
        await until(pilot, lambda: drawn(view))
        assert max(row.cells for row in view.document.entries[0].rows or ()) <= view.document.width


async def test_small_messages_are_there_at_once(gate: threading.Event) -> None:
    async with running(conversation(30)) as (_, view):
        assert drawn(view)
        assert not gate.is_set()


async def test_a_long_answer_that_still_arrives_is_drawn_for_another_width_in_the_thread(
    gate: threading.Event,
) -> None:
    async with running(conversation(2)) as (pilot, view):
        view.start_reply("big", "p", "m")
        await arrives(pilot, view, large().text)
        await pilot.resize_terminal(40, 20)
        await until(pilot, lambda: not drawn(view))
        assert PARAGRAPHS[-1] in view.render_line(view.size.height - 1).text  # as it was, until it is drawn
        view.delta("big", "text", " and")
        gate.set()
        await until(pilot, lambda: drawn(view))
        await until(pilot, lambda: "many and" in view.render_line(view.size.height - 1).text)
        view.delta("big", "text", " after")
        await until(pilot, lambda: "and after" in view.render_line(view.size.height - 1).text)
        assert max(row.cells for row in view.document.entries[2].rows or ()) <= view.document.width


async def test_an_answer_that_ends_while_it_is_drawn_anew_is_the_stored_one(gate: threading.Event) -> None:
    async with running(conversation(2)) as (pilot, view):
        view.start_reply("big", "p", "m")
        await arrives(pilot, view, large().text)
        await pilot.resize_terminal(40, 20)
        await until(pilot, lambda: not drawn(view))
        view.finish_reply(assistant("short", id="big", model="m"))
        gate.set()
        await until(pilot, lambda: drawn(view) and view.document.entries[2].live is None)
        await pilot.pause()
        assert "short" in [view.render_line(y).text.strip() for y in range(view.size.height)]


async def test_a_long_answer_that_is_copied_before_it_is_drawn_anew_goes_on() -> None:
    async with running(conversation(2)) as (pilot, view):
        view.start_reply("big", "p", "m")
        await arrives(pilot, view, large().text)
        view.document._later = lambda _index: None  # the thread has other things to do
        await pilot.resize_terminal(40, 20)
        await until(pilot, lambda: not drawn(view))
        view.document.draw_now(2)
        view.delta("big", "text", " after")
        await until(pilot, lambda: "many after" in view.render_line(view.size.height - 1).text)


async def test_rows_that_were_replaced_are_let_go_of_bit_by_bit(gate: threading.Event) -> None:
    gate.set()
    async with running([large()]) as (pilot, view):
        await until(pilot, lambda: drawn(view))
        before = view.document.entries[0].rows
        assert before
        await pilot.resize_terminal(40, 20)
        await until(pilot, lambda: not before)
        assert view.document.entries[0].rows


@pytest.mark.parametrize("before", ["", "\n\n".join(PARAGRAPHS) + "\n\n"], ids=["small", "large"])
async def test_a_list_that_turns_loose_while_it_arrives_is_drawn_again(gate: threading.Event, before: str) -> None:
    gate.set()
    numbers = "".join(f"{number}. step\n" for number in range(1, 60))
    async with running(conversation(2)) as (pilot, view):
        view.start_reply("r", "p", "m")
        view.delta("r", "text", before + numbers)
        await until(pilot, lambda: "59. step" in view.render_line(view.size.height - 1).text)
        height = view.document.heights[2]
        view.delta("r", "text", "60. last\n\n    and loose\n")
        await until(pilot, lambda: drawn(view) and view.document.heights[2] > height + 50)
        live = [row.text for row in view.document.entries[2].rows or ()]
        view.finish_reply(assistant(f"{before}{numbers}60. last\n\n    and loose\n", id="r", model="m"))
        await until(pilot, lambda: drawn(view) and view.document.entries[2].live is None)
        assert [row.text for row in view.document.entries[2].rows or ()] == live

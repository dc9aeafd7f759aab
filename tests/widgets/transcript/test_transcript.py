"""The transcript in a running app: following, scrolling, folding, selecting, searching, resizing."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.events import MouseScrollUp
from textual.message import Message as TextualMessage
from textual.pilot import Pilot
from textual.widgets import Input

from tests.messages import assistant, tool, user
from tests.render.documents import DOCUMENTS
from tests.widgets.transcript.messages import conversation, odd
from tui.messages import Message, Reasoning, ToolCall, ToolResult
from tui.widgets.transcript.transcript import Transcript
from tui.widgets.transcript.view import MANY

SIZE = (60, 20)


class Host(App[None]):
    CSS = "Input { height: 3; }"
    BINDINGS: ClassVar[list[BindingType]] = [("escape", "count_escape", "")]

    def __init__(self) -> None:
        super().__init__()
        self.posted: list[TextualMessage] = []
        self.escapes = 0

    def compose(self) -> ComposeResult:
        yield Transcript()
        yield Input()

    def on_transcript_action_requested(self, message: Transcript.ActionRequested) -> None:
        self.posted.append(message)

    def action_count_escape(self) -> None:
        self.escapes += 1

    def on_transcript_link_clicked(self, message: Transcript.LinkClicked) -> None:
        self.posted.append(message)


@asynccontextmanager
async def running(messages: Sequence[Message] = (), size: tuple[int, int] = SIZE) -> Any:
    app = Host()
    async with app.run_test(size=size) as pilot:
        transcript = app.query_one(Transcript)
        transcript.set_messages(messages)
        await pilot.pause()
        yield pilot, transcript


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    for _ in range(200):
        if condition():
            return
        await pilot.pause()
        await asyncio.sleep(0.01)
    raise AssertionError("it never came about")


def screen(transcript: Transcript) -> list[str]:
    return [transcript.render_line(y).text.rstrip() for y in range(transcript.view_size.height)]


def line_of(transcript: Transcript, text: str) -> int:
    return next(number for number, line in enumerate(screen(transcript)) if text in line)


async def test_opens_at_the_end_and_draws_only_that() -> None:
    async with running(conversation(2_000)) as (_, transcript):
        assert "n1999" in "\n".join(screen(transcript))
        assert transcript.reader_place is None
        assert sum(entry.rows is not None for entry in transcript.document.entries) < 20
        assert not transcript.children


async def test_lines_fill_the_width_exactly() -> None:
    async with running([assistant(DOCUMENTS["everything"], id="a", model="m")]) as (pilot, transcript):
        for _ in range(20):
            assert {transcript.render_line(y).cell_length for y in range(transcript.view_size.height)} == {
                transcript.view_size.width
            }
            transcript.scroll_page_up()
            await pilot.pause()


async def test_page_up_shows_every_line_once_down_to_the_first() -> None:
    async with running(odd(60)) as (pilot, transcript):
        lines_up = screen(transcript)
        height = transcript.view_size.height
        for _ in range(100):
            if transcript.scroll_y == 0:
                break
            before = screen(transcript)
            transcript.scroll_page_up()
            await pilot.pause()
            after = screen(transcript)
            overlap = 0 if transcript.scroll_y else next(n for n in range(height) if after[n:] == before[: height - n])
            lines_up[:0] = after[: overlap or height]
        document = transcript.document
        rows = [row.text.rstrip() for entry in document.entries for row in entry.rows or []]
        assert [line[2:] for line in lines_up] == rows


async def test_the_wheel_moves_by_what_it_says() -> None:
    async with running(odd(200)) as (pilot, transcript):
        for _ in range(60):
            before = screen(transcript)
            transcript.post_message(
                MouseScrollUp(transcript, 1, 1, 0, -1, 0, False, False, False, screen_x=1, screen_y=1)
            )
            await pilot.pause()
            after = screen(transcript)
            assert any(after[shift:] == before[:-shift] for shift in (1, 2, 3, 4)), (before, after)


async def test_follows_a_reply_until_scrolled_up_and_again_at_the_end() -> None:
    async with running(conversation(40)) as (pilot, transcript):
        transcript.start_reply("live", "p", "m")
        transcript.delta("live", "text", "first words")
        await until(pilot, lambda: "first words" in "\n".join(screen(transcript)))
        transcript.scroll_page_up()
        await pilot.pause()
        assert transcript.reader_place is not None
        still = screen(transcript)
        transcript.delta("live", "text", "\n\nsecond paragraph" * 30)
        await until(pilot, lambda: screen(transcript)[-1].endswith("↓ more below"))
        assert screen(transcript)[:-1] == still[:-1]
        transcript.finish_reply(assistant("first words" + "\n\nsecond paragraph" * 30, id="live", model="m"))
        await pilot.pause()
        assert screen(transcript)[:-1] == still[:-1]
        await pilot.click(Transcript, offset=(transcript.view_size.width - 3, transcript.view_size.height - 1))
        await pilot.pause()
        assert transcript.reader_place is None
        assert "second paragraph" in screen(transcript)[-1]


async def test_scrolling_back_down_catches_up_with_a_running_reply() -> None:
    async with running(conversation(40)) as (pilot, transcript):
        transcript.start_reply("live", "p", "m")
        transcript.scroll_page_up()
        await pilot.pause()
        transcript.delta("live", "text", "arrived meanwhile")
        await pilot.pause()
        for _ in range(5):
            transcript.scroll_page_down()
            await pilot.pause()
        assert transcript.reader_place is None
        assert "arrived meanwhile" in "\n".join(screen(transcript))


async def test_a_streamed_reply_ends_as_if_drawn_at_once() -> None:
    source = DOCUMENTS["everything"]
    async with running() as (pilot, transcript):
        transcript.start_reply("live", "p", "m")
        for position in range(0, len(source), 50):
            transcript.delta("live", "text", source[position : position + 50])
            await asyncio.sleep(0)
        message = assistant(source, id="live", model="m")
        transcript.finish_reply(message)
        await pilot.pause()
        streamed = [row.text for row in transcript.document.entries[0].rows or []]
        transcript.set_messages([message])
        await pilot.pause()
        assert [row.text for row in transcript.document.entries[0].rows or []] == streamed


async def test_deltas_for_another_message_change_nothing() -> None:
    async with running(conversation(2)) as (pilot, transcript):
        transcript.delta("nobody", "text", "x")
        transcript.start_reply("live", "p", "m")
        transcript.delta("m0", "text", "wrong")
        await pilot.pause(0.1)
        assert "wrong" not in "\n".join(screen(transcript))


@pytest.mark.parametrize("size", [(40, 20), (100, 30), (60, 12)])
async def test_a_resize_keeps_the_reader_s_place(size: tuple[int, int]) -> None:
    async with running(conversation(100)) as (pilot, transcript):
        transcript.return_to(("m50", 0))
        await pilot.pause()
        await pilot.resize_terminal(*size)
        await until(pilot, lambda: transcript.view_size.width == size[0] - 1)
        await pilot.pause()
        assert "n50" in "\n".join(screen(transcript)[:3])
        assert transcript.reader_place is not None


async def test_a_resize_at_the_end_stays_there() -> None:
    async with running(conversation(100)) as (pilot, transcript):
        await pilot.resize_terminal(35, 15)
        await until(pilot, lambda: transcript.view_size.width == 34)
        await pilot.pause()
        assert transcript.reader_place is None
        assert screen(transcript)[-1] != "" and transcript.scroll_y == transcript.max_scroll_y


async def test_a_theme_changes_colours_not_places() -> None:
    async with running(conversation(30)) as (pilot, transcript):
        transcript.return_to(("m10", 0))
        before, lines = transcript.document.palette, screen(transcript)
        pilot.app.theme = "textual-light"
        await until(pilot, lambda: transcript.document.palette != before)
        await pilot.pause()
        assert screen(transcript) == lines
        style = transcript.render_line(1)._segments[-1].style
        assert style is not None and style.bgcolor == transcript.document.palette.base.bgcolor


CALL = ToolCall("c1", "read_file", '{"path": "src/x.py"}')
TOOLS = [
    user("q", id="q"),
    assistant(Reasoning("deep thought"), "Looking.", CALL, id="a", model="m"),
    tool(ToolResult("c1", "read_file", "\n".join([f"row {n}" for n in range(50)])), id="t"),
    assistant("Done. See [x](https://example.org/x).", id="b", model="m"),
]


async def test_a_click_unfolds_in_place_and_folds_again() -> None:
    async with running(TOOLS) as (pilot, transcript):
        line = line_of(transcript, "▸ read_file src/x.py · 50 lines")
        before = screen(transcript)
        await pilot.click(Transcript, offset=(5, line))
        await pilot.pause()
        assert "▾ read_file" in screen(transcript)[line]
        assert screen(transcript)[:line] == before[:line]
        assert any("row 0" in text for text in screen(transcript))
        await pilot.click(Transcript, offset=(5, line))
        await pilot.pause()
        assert screen(transcript) == before


async def test_folding_everything_and_one_message() -> None:
    async with running(TOOLS) as (pilot, transcript):
        transcript.toggle_fold("a")
        await pilot.pause()
        assert "│ deep thought" in "\n".join(screen(transcript))
        transcript.toggle_fold()
        transcript.toggle_fold()
        await pilot.pause()
        text = "\n".join(row.text for entry in transcript.document.entries for row in entry.rows or [])
        assert "deep thought" in text and "row 49" in text


async def test_a_link_is_announced_not_followed() -> None:
    async with running(TOOLS) as (pilot, transcript):
        line = line_of(transcript, "Done. See x")
        await pilot.click(Transcript, offset=(screen(transcript)[line].index("x"), line))
        await pilot.pause()
        assert [message.url for message in pilot.app.posted] == ["https://example.org/x"]


async def test_the_block_cursor_walks_and_asks() -> None:
    async with running(conversation(30)) as (pilot, transcript):
        transcript.focus()
        await pilot.press("alt+up", "alt+up")
        assert transcript.cursor_id == "m28"
        assert any(line.startswith("▌ n28") for line in screen(transcript))
        for key in "crefpx":
            await pilot.press(key)
        await pilot.pause()
        actions = [(message.message_id, message.action) for message in pilot.app.posted]
        assert actions == [("m28", action) for action in ("copy", "retry", "edit", "fork", "pin", "exclude")]
        assert pilot.app.posted[0].text.startswith("n28 word")
        await pilot.press("alt+down", "alt+down")
        assert transcript.cursor_id is None


async def test_a_click_leaves_the_keys_to_the_prompt() -> None:
    async with running(TOOLS) as (pilot, transcript):
        pilot.app.query_one(Input).focus()
        await pilot.click(Transcript, offset=(5, line_of(transcript, "▸ thought")))
        await pilot.press("r", "x")
        assert pilot.app.query_one(Input).value == "rx"
        assert not pilot.app.posted


async def test_escape_takes_the_cursor_away_and_then_belongs_to_the_screen() -> None:
    async with running(conversation(5)) as (pilot, transcript):
        pilot.app.screen.set_focus(transcript)
        await pilot.press("alt+up", "escape")
        assert transcript.cursor_id is None
        await pilot.press("escape")
        assert pilot.app.escapes == 1


async def test_the_cursor_takes_the_view_along() -> None:
    async with running(conversation(100)) as (pilot, transcript):
        for _ in range(60):
            transcript.action_cursor(-1)
        await pilot.pause()
        assert transcript.cursor_id == "m40"
        assert any("n40" in line for line in screen(transcript))


async def test_copying_code_takes_the_last_block_then_those_before() -> None:
    source = "```\none\n```\n\ntext\n\n```py\ntwo\n```"
    async with running([assistant(source, id="a", model="m")]) as (pilot, transcript):
        transcript.focus()
        await pilot.press("alt+up", "y", "y", "y")
        await pilot.pause()
        got = [(message.text, message.detail) for message in pilot.app.posted]
        assert got == [
            ("two", "code block 2 of 2"),
            ("one", "code block 1 of 2"),
            ("two", "code block 2 of 2"),
        ]


async def select(pilot: Pilot[None], start: tuple[int, int], end: tuple[int, int]) -> str:
    await pilot.mouse_down(Transcript, offset=start)
    await pilot.hover(Transcript, offset=((start[0] + end[0]) // 2, end[1]))
    await pilot.hover(Transcript, offset=end)
    await pilot.mouse_up(Transcript, offset=end)
    await pilot.pause()
    return pilot.app.screen.get_selected_text() or ""


async def test_a_selection_over_wrapped_lines_is_one_line_without_gutter() -> None:
    source = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omikron pi"
    async with running([assistant(source, id="a", model="m")]) as (pilot, transcript):
        first = line_of(transcript, "alpha")
        last = line_of(transcript, "omikron")
        assert last > first
        end = screen(transcript)[last].index("omikron") + 6
        assert await select(pilot, (2, first), (end, last)) == source.removesuffix(" pi")


async def test_a_selection_of_code_has_no_padding() -> None:
    source = "```py\nx = 1\n\nif x:\n    y = 2\n```"
    async with running([assistant(source, id="a", model="m")]) as (pilot, transcript):
        first, last = line_of(transcript, "x = 1"), line_of(transcript, "y = 2")
        assert await select(pilot, (0, first), (50, last)) == "x = 1\n\nif x:\n    y = 2"


async def test_a_selection_is_marked_and_survives_text_above() -> None:
    async with running(conversation(4)) as (pilot, transcript):
        line = line_of(transcript, "n2")
        assert await select(pilot, (2, line), (3, line)) == "n2"
        marked = [
            s.text
            for s in transcript.render_line(line)
            if s.style and s.style.bgcolor == transcript.document.palette.selection.bgcolor
        ]
        assert marked == ["n2"]


async def test_two_clicks_choose_a_word_three_a_message() -> None:
    async with running(conversation(3, words=3)) as (pilot, transcript):
        line = line_of(transcript, "n1")
        await pilot.click(Transcript, offset=(6, line), times=2)
        assert pilot.app.screen.get_selected_text() == "word"
        await pilot.click(Transcript, offset=(6, line), times=3)
        assert pilot.app.screen.get_selected_text() == "n1 word word word"


async def test_everything_selected_comes_from_the_source_where_nothing_is_drawn() -> None:
    async with running(conversation(500, words=2)) as (pilot, transcript):
        transcript.text_select_all()
        text = pilot.app.screen.get_selected_text() or ""
        assert text.startswith("n0 word") and text.count("word word") == 500
        assert sum(entry.rows is not None for entry in transcript.document.entries) < 50


async def test_find_counts_marks_and_walks() -> None:
    messages = conversation(200)
    messages[20] = user("a needle here", id="m20")
    messages[150] = assistant(Reasoning("the NEEDLE hides"), "needle **needle**", id="m150", model="m")
    async with running(messages) as (pilot, transcript):
        assert await transcript.search("needle") == 4
        assert transcript.go_to_hit(forward=False) == (4, 4)
        assert transcript.go_to_hit(forward=False) == (3, 4)
        assert transcript.go_to_hit(forward=False) == (2, 4)
        await pilot.pause()
        assert "NEEDLE hides" in "\n".join(screen(transcript))  # the fold opened
        assert transcript.go_to_hit(forward=False) == (1, 4)
        await pilot.pause()
        line = line_of(transcript, "a needle here")
        hits = [s.text for s in transcript.render_line(line) if s.style and s.style.reverse]
        assert hits == ["needle"]
        assert transcript.go_to_hit(forward=False) == (4, 4)
        assert await transcript.search("no such thing") == 0
        assert transcript.go_to_hit(forward=True) == (0, 0)


async def test_the_hit_one_stands_on_is_marked_more_than_the_others() -> None:
    async with running([user("a needle and a needle", id="a")]) as (_, transcript):
        await transcript.search("needle")
        marked = []
        for _ in range(2):
            transcript.go_to_hit(forward=True)
            strip = transcript.render_line(line_of(transcript, "needle"))
            marked.append([segment.style.reverse or False for segment in strip if segment.text == "needle"])
        assert marked == [[True, False], [False, True]]


async def test_a_hit_over_a_line_break_is_marked_on_both_lines() -> None:
    source = "word " * 9 + "one two three"
    async with running([assistant(source, id="a", model="m")], (55, 20)) as (_, transcript):
        assert await transcript.search("one two") == 1
        transcript.go_to_hit(forward=True)
        marked = [s.text for y in range(20 - 3) for s in transcript.render_line(y) if s.style and s.style.reverse]
        assert marked == ["one", "two"]


async def test_jump_brings_a_message_to_the_top() -> None:
    async with running(conversation(300)) as (pilot, transcript):
        transcript.return_to(("m123", 0))
        await pilot.pause()
        assert "n123" in "\n".join(screen(transcript)[:3])
        transcript.return_to(("nobody", 0))
        assert transcript.reader_place is None


async def test_notices_are_shown_and_go_with_the_next_messages() -> None:
    async with running(conversation(2)) as (pilot, transcript):
        transcript.add_notice("warning", "The server cut the prompt\x1b[2J")
        await pilot.pause()
        assert screen(transcript)[line_of(transcript, "cut the prompt")] == "  ! The server cut the prompt␛[2J"
        transcript.set_messages(conversation(2))
        await pilot.pause()
        assert "cut the prompt" not in "\n".join(screen(transcript))


async def test_counts_and_what_is_not_sent_appear_in_place() -> None:
    async with running(conversation(100)) as (pilot, transcript):
        transcript.return_to(("m10", 0))
        await pilot.pause()
        transcript.set_counts({f"m{number}": (1_500, "measured") for number in range(100)})
        transcript.set_not_sent({f"m{number}": "trimmed" for number in range(11)})
        await pilot.pause()
        assert "n10" in "\n".join(screen(transcript)[:3])
        text = "\n".join(screen(transcript))
        assert "1.5k tok" in text
        assert "not sent any more: 11 messages, ~16.5k tokens" in text


async def test_new_messages_keep_the_place_of_a_reader() -> None:
    async with running(conversation(100)) as (pilot, transcript):
        transcript.return_to(("m40", 0))
        await pilot.pause()
        transcript.set_messages(conversation(120))
        await pilot.pause()
        assert "n40" in "\n".join(screen(transcript)[:3])


async def test_the_empty_view_shows_what_it_is_given() -> None:
    async with running() as (pilot, transcript):
        transcript.show_static(Content("Welcome to the chat"))
        await pilot.pause()
        assert screen(transcript)[0].strip() == "Welcome to the chat"
        transcript.append(user("hello", id="x"))
        await pilot.pause()
        assert "Welcome" not in "\n".join(screen(transcript))


async def test_a_mouse_press_on_a_reply_that_is_replaced_meanwhile() -> None:
    async with running() as (pilot, transcript):
        transcript.start_reply("live", "p", "m")
        transcript.delta("live", "text", "words to press on")
        await until(pilot, lambda: "press on" in "\n".join(screen(transcript)))
        await pilot.mouse_down(Transcript, offset=(5, 2))
        transcript.finish_reply(assistant("x", id="live", model="m"))
        await pilot.hover(Transcript, offset=(8, 2))
        transcript.set_messages([])
        await pilot.hover(Transcript, offset=(9, 3))
        await pilot.mouse_up(Transcript, offset=(9, 3))
        await pilot.pause()
        assert pilot.app.screen.get_selected_text() in (None, "")


@pytest.mark.parametrize("size", [(12, 5), (40, 12), (200, 60)])
async def test_odd_sizes_draw(size: tuple[int, int]) -> None:
    messages = [*TOOLS, assistant(DOCUMENTS["everything"], id="z", model="m")]
    async with running(messages, size) as (pilot, transcript):
        transcript.toggle_fold()
        transcript.scroll_home()
        await pilot.pause()
        assert all(
            transcript.render_line(y).cell_length == transcript.view_size.width
            for y in range(transcript.view_size.height)
        )


async def test_a_long_conversation_is_kept_out_of_garbage_collection() -> None:
    messages = conversation(MANY)
    try:
        async with running() as (pilot, view):
            frozen = gc.get_freeze_count()
            view.set_messages(messages[:20])
            assert gc.get_freeze_count() <= frozen
            view.set_messages(messages)
            await pilot.pause()
            assert gc.isenabled()
            looked_at = {id(thing) for thing in gc.get_objects()}
            assert not any(id(entry) in looked_at for entry in view.document.entries)
    finally:
        gc.unfreeze()

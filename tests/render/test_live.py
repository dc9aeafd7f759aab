from __future__ import annotations

import pytest

from tests.render.documents import DOCUMENTS
from tui.messages import Message, Reasoning, Text
from tui.render.message import SLICE, LiveReply, View, message_rows
from tui.render.palette import Palette
from tui.render.rows import Row
from tui.render.stream import StreamRenderer


def texts(rows: list[Row]) -> list[str]:
    return [row.text.rstrip() for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("open_parts", [frozenset(), frozenset({0})], ids=["folded", "unfolded"])
def test_a_reply_with_reasoning_ends_as_the_message_it_becomes(open_parts: frozenset[int], palette: Palette) -> None:
    thoughts, answer = "I *think* " * 40, DOCUMENTS["long list"]
    live = LiveReply()
    view = View("model", open=open_parts)
    live.draw(60, palette, view, 0.0)
    for position in range(0, len(thoughts), 7):
        live.feed("reasoning", thoughts[position : position + 7], "", 1.0)
        live.update(2.0)
    for position in range(0, len(answer), 40):
        live.feed("text", answer[position : position + 40], "", 7.0)
        live.update(8.0)
    whole = message_rows(
        Message("assistant", (Reasoning(thoughts), Text(answer))),
        60,
        palette,
        View("model", None, open_parts, thought=6.0),
    )
    assert texts(live.rows) == texts(whole)
    assert live.thought() == 6.0


def test_update_tells_from_where_rows_changed(palette: Palette) -> None:
    live = LiveReply()
    live.draw(60, palette, View("model"), 0.0)
    assert texts(live.rows) == ["", "model", "…"]
    live.feed("text", "".join([f"paragraph {number}\n\n" for number in range(50)]), "", 0.0)
    live.update(0.0)
    before = list(live.rows)
    live.feed("text", "more", "", 0.0)
    first = live.update(0.0)
    assert first >= 95
    assert live.rows[:first] == before[:first]
    assert texts(live.rows)[-1] == "more"


def test_a_part_that_begins_while_another_thread_draws_doubles_nothing(
    palette: Palette, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = LiveReply()
    live.feed("text", "one\n\ntwo", "", 0.0)
    other, update = live.anew(), StreamRenderer.update

    def meanwhile(stream: StreamRenderer) -> tuple[list[Row], list[Row]]:
        monkeypatch.undo()
        live.feed("tool_call", "", "look", 0.0)
        return update(stream)

    monkeypatch.setattr(StreamRenderer, "update", meanwhile)
    other.draw(60, palette, View("model"), 0.0)
    other.update(0.0)
    assert texts(other.rows) == ["", "model", "one", "", "two", "▸ look · preparing"]


def test_thinking_counts_seconds_until_it_ends(palette: Palette) -> None:
    live = LiveReply()
    live.draw(60, palette, View("model"), 0.0)
    live.feed("reasoning", "hm", "", 10.0)
    live.update(13.0)
    assert live.rows[-1].text == "▸ thinking · 3 s"
    live.feed("text", "so", "", 15.0)
    live.update(40.0)
    assert "▸ thought for 5 s" in texts(live.rows)


def test_tool_calls_show_their_name_while_arguments_arrive(palette: Palette) -> None:
    live = LiveReply()
    live.draw(60, palette, View("model"), 0.0)
    live.feed("tool_call", "", "read_file", 0.0)
    live.feed("tool_call", '{"pa', "", 0.0)
    live.feed("tool_call", "", "list_files", 0.0)
    live.feed("tool_call", "{}", "", 0.0)
    live.update(0.0)
    assert texts(live.rows)[-2:] == ["▸ read_file · preparing", "▸ list_files · preparing"]


def test_a_new_width_draws_everything_anew(palette: Palette) -> None:
    live = LiveReply()
    live.draw(60, palette, View("model"), 0.0)
    live.feed("text", "some words that wrap at a narrow width", "", 0.0)
    live.update(0.0)
    live.draw(20, palette, View("model"), 0.0)
    assert all(row.cells <= 20 for row in live.rows)
    assert "".join(texts(live.rows)).endswith("a narrow width")


def test_what_arrived_unseen_is_drawn_in_slices_and_comes_to_the_same(palette: Palette) -> None:
    text = "".join(f"* item {number}\n\n" + "word " * 60 + "\n\n" for number in range(60))
    at_once, sliced = LiveReply(), LiveReply()
    at_once.draw(60, palette, View(), 0.0)
    sliced.draw(60, palette, View(), 0.0)
    for start in range(0, len(text), 500):
        at_once.feed("text", text[start : start + 500], "", 0.0)
        at_once.update(0.0)
    sliced.feed("text", text, "", 0.0)
    sliced.feed("tool_call", "{}", "read_file", 1.0)
    at_once.feed("tool_call", "{}", "read_file", 1.0)
    at_once.update(1.0)
    slices = 1
    sliced.update(1.0)
    while sliced.behind:
        before = len(sliced.rows)
        sliced.update(1.0)
        slices += 1
        assert before - 40 < len(sliced.rows)
    assert slices >= len(text) // SLICE
    assert [row.text for row in sliced.rows] == [row.text for row in at_once.rows]


def test_a_refusal_of_any_length_costs_no_more_than_its_beginning(palette: Palette) -> None:
    live = LiveReply()
    live.draw(60, palette, View("model"), 0.0)
    for _ in range(20):
        live.feed("refusal", "I can't help with that. " * 500, "", 0.0)
        live.update(0.0)
    shown = " ".join(texts(live.rows))
    assert shown.count("help") * 24 <= 2 * SLICE
    assert "refused: I can't help with that." in shown

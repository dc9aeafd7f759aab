from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.selection import Selection

from tests.messages import assistant, tool, user
from tests.widgets.transcript.messages import conversation, odd
from tui.messages import Message, ToolCall, ToolResult
from tui.render.palette import make_palette
from tui.widgets.transcript.document import CACHED_ROWS, CACHED_STRIPS, ESTIMATED, LARGE, Document
from tui.widgets.transcript.entries import Entry, estimate
from tui.widgets.transcript.view import paint_line

PALETTE = make_palette({})


def document(messages: list[Message], width: int = 40) -> Document:
    result = Document(PALETTE)
    result.resize(width)
    result.set_messages(messages, {})
    return result


def labels(doc: Document) -> list[str]:
    return [doc.view(index).label for index in range(len(doc.entries))]


def test_of_a_long_conversation_the_last_heights_are_estimated_and_the_others_sampled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    messages, drawn = conversation(3 * ESTIMATED), []
    whole = sum(estimate(Entry(message), 40) for message in messages)

    def counted(entry: Entry, width: int) -> int:
        drawn.append(entry)
        return estimate(entry, width)

    monkeypatch.setattr("tui.widgets.transcript.document.estimate", counted)
    doc = document(messages)
    assert len(drawn) < 3 * ESTIMATED
    assert doc.heights.total == pytest.approx(whole, rel=0.05)
    top, first = doc.draw_window(doc.heights.total // 2, 40)
    assert len(lines(doc, top, 40)) == 40
    assert ESTIMATED < first < 2 * ESTIMATED


@pytest.mark.slow
def test_only_what_is_asked_for_is_drawn() -> None:
    doc = document(conversation(1_000))
    doc.draw_end(40)
    assert sum(entry.rows is not None for entry in doc.entries) < 40


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 400), st.integers(5, 50))
def test_a_window_is_covered_by_rows(top: int, height: int) -> None:
    doc = document(odd(60))
    top, first = doc.draw_window(top, height)
    for line in range(top, min(top + height, doc.heights.total)):
        index = doc.heights.find(line)
        rows = doc.entries[index].rows
        assert index >= first and rows is not None and line - doc.heights.top(index) < len(rows)
    assert top <= max(0, doc.heights.total - height)


def lines(doc: Document, top: int, height: int) -> list[str]:
    places = [(doc.heights.find(line), line) for line in range(top, min(top + height, doc.heights.total))]
    return [(doc.entries[index].rows or [])[line - doc.heights.top(index)].text for index, line in places]


def test_going_up_through_messages_never_drawn_shows_every_row_once() -> None:
    doc = document(odd(80))
    doc.draw_end(30)
    top = doc.heights.total - 30
    collected = lines(doc, top, 30)
    while top:
        before = top + doc.draw_above(top, 30)
        top, _ = doc.draw_window(max(0, before - 30), 30)
        collected[:0] = lines(doc, top, before - top)
    assert collected == lines(doc, 0, doc.heights.total)
    assert all(entry.rows for entry in doc.entries)


def test_the_same_model_going_on_after_a_tool_is_not_named_again() -> None:
    call = ToolCall("c", "t", "{}")
    doc = document(
        [
            user("q", id="1"),
            assistant(call, id="2", model="a"),
            tool(ToolResult("c", "t", "x"), id="3"),
            assistant("a", id="4", model="a"),
            tool(ToolResult("d", "t", "x"), id="5"),
            assistant("b", id="6", model="b"),
        ]
    )
    assert labels(doc) == ["you", "a", "", "", "", "b"]


def test_an_answer_after_a_failed_one_is_named_again() -> None:
    doc = document([assistant("half", id="1", model="a", status="failed")])
    doc.add_notice("error", "The server refused")
    doc.append(assistant("whole", id="2", model="a"))
    assert labels(doc) == ["a", "", "a"]


def test_times_on_request() -> None:
    doc = document([user("q", id="1", created_at=1_764_000_000.0)])
    assert doc.view(0).when == ""
    doc.show_times(True, 1_764_000_060.0)
    assert len(doc.view(0).when) == 5


def test_dividers_end_stretches_that_are_not_sent() -> None:
    doc = document(conversation(8))
    doc.set_counts({f"m{number}": (1_000, "measured") for number in range(8)})
    doc.set_not_sent({"m1": "trimmed", "m2": "trimmed", "m3": "compacted", "m6": "excluded"})
    dividers = {index: doc.view(index).divider for index in range(8) if doc.view(index).divider}
    assert dividers == {
        2: "not sent any more: 2 messages, ~2.0k tokens (rolling context)",
        3: "not sent any more: 1 message, ~1.0k tokens (compacted)",
    }
    doc.set_counts({"m7": (10, "measured")})  # of what is sent: the others keep what they took last
    assert "~2.0k tokens" in doc.view(2).divider
    assert doc.view(1).count == (1_000, "estimated")
    assert doc.view(4).count is None
    doc.set_not_sent({"m1": "trimmed", "m2": "trimmed", "m4": "trimmed"})  # m4 was never counted
    assert doc.view(4).divider == "not sent any more: 1 message (rolling context)"
    doc.set_not_sent({})
    assert not any(doc.view(index).divider for index in range(8))


def test_a_result_replaces_the_line_of_its_call() -> None:
    calls = ToolCall("c", "ls", "{}"), ToolCall("d", "grep", "{}")
    doc = document([assistant("x", *calls, id="1", model="a")])
    for shown in (("ls", "grep"), ("grep",), ()):
        doc.draw(0)
        text = " ".join(row.text for row in doc.entries[0].rows or [])
        assert [call.name for call in calls if call.name in text] == list(shown)
        if shown:
            call = next(call for call in calls if call.name == shown[0])
            doc.append(tool(ToolResult(call.id, call.name, "out"), id=call.id))


def test_counts_touch_only_what_changes() -> None:
    doc = document(conversation(4))
    doc.draw_end(1_000)
    before = [entry.rows for entry in doc.entries]
    doc.set_counts({"m1": (7, "measured")})
    doc.draw_end(1_000)
    assert [entry.rows is rows for entry, rows in zip(doc.entries, before, strict=True)] == [True, False, True, True]


def test_rows_far_away_are_let_go() -> None:
    doc = document(conversation(300, 100))
    for index in range(300):
        doc.draw(index)
    total = doc.heights.total
    doc.evict(250, 260)
    assert sum(len(entry.rows or ()) for entry in doc.entries) < CACHED_ROWS
    assert doc.entries[255].rows is not None
    assert doc.heights.total == total


def test_finished_lines_are_kept_for_a_few_screens_only() -> None:
    doc = document(conversation(40, 100))
    for index in range(40):
        doc.draw(index)
    for top in range(0, doc.heights.total, 40):
        for line in range(top, top + 40):
            paint_line(doc, line, 80, None, None, None)
    strips = [row.strip for entry in doc.entries for row in entry.rows or ()]
    assert len(strips) > 2 * CACHED_STRIPS
    assert sum(strip is not None for strip in strips) == CACHED_STRIPS
    assert strips[-1] is not None


def test_what_a_selection_does_not_copy_is_not_marked() -> None:
    doc = document([assistant("> words", id="1", model="m")])
    doc.draw_end(40)
    strip = paint_line(doc, 2, 40, None, None, Selection(None, None))
    marked = [text for text, style, _ in strip if style and style == style + PALETTE.selection]
    assert strip.text.startswith("  ▎ words") and marked == ["words"]


def test_estimates_are_of_the_right_size() -> None:
    doc = document(conversation(50, 60))
    guess = doc.heights.total
    for index in range(50):
        doc.draw(index)
    assert 0.6 < guess / doc.heights.total < 1.6


def test_a_reply_begun_anew_takes_the_place_of_the_first_try() -> None:
    doc = document([])
    doc.start_reply("r", "p", "m").feed("text", "first try", "", 0.0)
    doc.start_reply("r", "p", "m").feed("text", "second", "", 0.0)
    doc.draw(0)
    assert len(doc.entries) == 1
    assert [row.text for row in doc.entries[0].rows or []][-1] == "second"


def test_much_that_arrived_unseen_is_drawn_elsewhere() -> None:
    doc, later = document([]), list[int]()
    doc._later = later.append
    live = doc.start_reply("r", "p", "m")
    doc.draw(0)
    live.feed("text", "word " * LARGE, "", 0.0)
    rows = doc.entries[0].rows
    for _ in range(2):
        assert doc.draw_more(0, 0.0) == 0
    assert (later, doc.entries[0].rows) == ([0], rows)
    job = doc.entries[0].job
    assert job is not None and doc.accept(0, job, job.large_rows()) is not None
    live.feed("text", "more", "", 0.0)
    assert doc.draw_more(0, 0.0) > LARGE // 10 and later == [0]


def test_rows_that_came_too_late_are_drawn_again_when_they_are_right_again() -> None:
    doc, later = document([assistant("word " * LARGE, id="m")]), list[int]()
    doc._later = later.append
    doc.draw(0)
    job = doc.entries[0].job
    doc.resize(60)
    assert job is not None and doc.accept(0, job, job.large_rows()) is None
    doc.resize(40)
    doc.draw(0)
    assert later == [0, 0]


def test_mappings_may_change_in_their_owner_s_hands() -> None:
    doc, marks = document(conversation(3)), {"m1": "trimmed"}
    doc.set_not_sent(marks)
    doc.draw(1)
    before = doc.entries[1].rows
    marks.clear()
    doc.set_not_sent(marks)
    doc.draw(1)
    assert doc.entries[1].rows is not before and doc.view(1).not_sent == ""


def test_a_reply_for_an_unknown_message_is_added() -> None:
    doc = document([])
    doc.finish_reply(assistant("x", id="new", model="m"))
    assert len(doc.entries) == 1


def test_a_result_belongs_to_its_own_call_though_ids_repeat() -> None:
    def calling(ident: str, *names: str) -> Message:
        return Message("assistant", tuple(ToolCall("c", name, f'{{"path": "{name}"}}') for name in names), ident)

    def returned(ident: str, *names: str) -> Message:
        return Message("tool", tuple(ToolResult("c", name, "text") for name in names), ident)

    doc = document([calling("1", "a", "b"), returned("2", "a", "b"), calling("3", "c", "d"), returned("4", "c")])
    assert [[call.name for call in doc.view(index).calls.values()] for index in (1, 3)] == [["a", "b"], ["c"]]
    assert [set(doc.view(index).answered) for index in (0, 2)] == [{0, 1}, {0}]
    doc.append(returned("5", "d"))
    assert set(doc.view(2).answered) == {0, 1} and doc.view(4).calls[0].name == "d"

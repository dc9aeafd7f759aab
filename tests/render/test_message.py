from __future__ import annotations

import pytest

from tests.messages import assistant, tool, user
from tests.render.documents import DOCUMENTS
from tui.messages import (
    Attachment,
    Message,
    MessageStatus,
    ProviderItem,
    Reasoning,
    Refusal,
    Source,
    ToolCall,
    ToolResult,
)
from tui.render.message import HEAD_CHARS, LiveReply, MessageView, copy_text, divider_row, message_rows
from tui.render.palette import Palette
from tui.render.rows import Row, rows_text
from tui.render.stream import StreamRenderer

CALL = ToolCall("c1", "read_file", '{"path": "src/parser.py"}')


def texts(rows: list[Row]) -> list[str]:
    return [" ".join(row.text.split()) for row in rows]


def test_a_question_has_its_label_and_tokens(palette: Palette) -> None:
    rows = message_rows(user("Why?"), 40, palette, MessageView("you", (1_234, "measured")))
    assert texts(rows) == ["", "you 1.2k tok", "Why?"]
    assert rows[1].cells == 40


def test_what_a_person_typed_is_no_markdown(palette: Palette) -> None:
    rows = message_rows(user("# not a heading\n  *stars*"), 40, palette, MessageView("you"))
    assert [row.text for row in rows[2:]] == ["# not a heading", "  *stars*"]


def test_an_answer_folds_reasoning_and_calls(palette: Palette) -> None:
    message = assistant(Reasoning("deep\n\nthoughts", tokens=840), "**Yes.**", CALL)
    rows = message_rows(message, 60, palette, MessageView("claude", thought=6.2))
    assert texts(rows) == [
        "",
        "claude",
        "▸ thought for 6 s · 840 tok",
        "",
        "Yes.",
        "▸ read_file src/parser.py",
    ]
    assert [row.part for row in rows if row.fold] == [0, 2]


def test_unfolded_parts_stand_under_their_line(palette: Palette) -> None:
    message = assistant(Reasoning("deep"), CALL)
    rows = texts(message_rows(message, 60, palette, MessageView("claude", open=frozenset({0, 1}))))
    assert rows[2:4] == ["▾ thought", "│ deep"]
    assert any('"path": "src/parser.py"' in row for row in rows)


def test_a_result_takes_the_place_of_its_call(palette: Palette) -> None:
    answered = message_rows(assistant(CALL), 60, palette, MessageView("", answered={0}))
    assert texts(answered) == [""]
    result = tool(ToolResult("c1", "read_file", "a\n\x1b[31mb\x1b[0m\n"))
    view = MessageView("", (2_100, "estimated"), calls={0: CALL})
    assert texts(message_rows(result, 60, palette, view)) == ["▸ read_file src/parser.py · 2 lines · ~2.1k tok"]
    opened = MessageView("", None, frozenset({0}), {0: CALL})
    assert rows_text(message_rows(result, 60, palette, opened)).strip() == "a\nb"


def test_a_failed_call_says_so(palette: Palette) -> None:
    result = tool(ToolResult("c1", "read_file", "no such file", True))
    rows = message_rows(result, 80, palette, MessageView("", calls={0: CALL}))
    assert texts(rows) == ["▸ read_file src/parser.py · failed: no such file"]
    assert rows[0].segments[0].style == palette.error


def test_on_a_narrow_screen_the_outcome_stays_visible(palette: Palette) -> None:
    result = tool(ToolResult("c1", "read_file", "no such file", True))
    view = MessageView("", (30, "estimated"), calls={0: CALL})
    assert message_rows(result, 44, palette, view)[0].text == "▸ read_file src/pars… · failed: no such file"
    assert message_rows(result, 30, palette, view)[0].text == "▸ read_file src… · failed: no…"


def test_a_long_paste_shows_its_beginning(palette: Palette) -> None:
    text = "\n".join([f"line {number}" for number in range(300)])
    message = user(text)
    folded = message_rows(message, 60, palette, MessageView("you"))
    assert texts(folded)[2:] == [*[f"line {n}" for n in range(6)], "▸ 294 more lines · 2.5k characters"]
    opened = message_rows(message, 60, palette, MessageView("you", open=frozenset({0})))
    assert [row.copy for row in opened if row.copy] == text.split("\n")
    assert [row.text for row in opened[:8]] == [row.text for row in folded[:8]]  # what was visible stays in place


def test_of_a_folded_paste_only_what_is_shown_is_cleaned(palette: Palette, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def note(text: str) -> str:
        sizes.append(len(text))
        return text

    monkeypatch.setattr("tui.render.message.clean_text", note)
    message_rows(user("a line\n" * 10_000), 40, palette)
    assert sizes and sum(sizes) <= HEAD_CHARS


def test_one_endless_line_is_folded_too(palette: Palette) -> None:
    rows = message_rows(user("x" * 1_000_000), 60, palette, MessageView("you"))
    assert len(rows) < 20
    assert "999k characters" in rows[-1].text


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        ("cancelled", None, "stopped by you"),
        ("interrupted", None, "connection ended early"),
        ("interrupted", "it sent nothing for 5 seconds. /retry asks again.", "■ it sent nothing for 5 seconds."),
        ("failed", "529 overloaded\n\x1b[31m", "✗ 529 overloaded · /retry"),
        ("failed", "p: HTTP 500: odd.", "✗ p: HTTP 500: odd · /retry"),
    ],
)
def test_an_answer_that_did_not_end_well_says_what_to_do(
    status: MessageStatus, error: str | None, words: str, palette: Palette
) -> None:
    last = message_rows(assistant("half", status=status, error=error), 80, palette)[-1].text
    assert words in last and "/retry" in last


def test_results_of_a_program_that_ended_meanwhile_say_so(palette: Palette) -> None:
    message = tool(ToolResult("c1", "read_file", "text"), status="interrupted", error="it ended")
    assert "the program ended while tools ran" in message_rows(message, 80, palette)[-1].text


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("length", "go on"),
        ("max_tokens", "go on"),
        ("max_output_tokens", "go on"),
        ("model_context_window_exceeded", "/compact"),
        ("content_filter", "filter"),
        ("sensitive", "filter"),
        ("repetition", "repeat"),
    ],
)
def test_an_answer_that_was_cut_off_says_why(reason: str, words: str, palette: Palette) -> None:
    message = assistant("half of", finish_reason=reason)
    last = message_rows(message, 120, palette)[-1].text
    assert last.startswith("■ cut off") and words in last


def test_an_answer_that_ended_says_nothing_of_it(palette: Palette) -> None:
    for reason in ("stop", "end_turn", None):
        message = assistant("whole", finish_reason=reason)
        assert message_rows(message, 80, palette)[-1].text == "whole"


@pytest.mark.parametrize("status", ["cancelled", "interrupted"])
def test_nothing_is_said_to_be_kept_where_nothing_came(status: MessageStatus, palette: Palette) -> None:
    last = message_rows(assistant(status=status), 80, palette)[-1].text
    assert "before anything arrived" in last and "kept" not in last


def test_what_is_not_sent_is_dim_and_divided(palette: Palette) -> None:
    message = assistant("# Old\n\n**answer**")
    rows = message_rows(
        message, 60, palette, MessageView("claude", not_sent="trimmed", divider="not sent any more: 2 messages")
    )
    colours = {segment.style.color for row in rows for segment in row.segments if segment.style}
    assert colours == {palette.muted.color, palette.faint.color}
    assert rows[-1].text == "┄┄┄ not sent any more: 2 messages ┄┄┄"


def test_left_out_messages_say_so(palette: Palette) -> None:
    rows = message_rows(user("x"), 40, palette, MessageView("you", (5, "measured"), not_sent="excluded"))
    assert texts(rows)[1] == "you left out · 5 tok"


def test_a_divider_fits_a_narrow_screen(palette: Palette) -> None:
    text = "not sent any more: 12 messages, 38.4k tokens (rolling context)"
    for width in (20, 36, 60, 80):
        assert divider_row(text, width, palette).cells <= width
    assert "(rolling context)" in divider_row(text, 80, palette).text


def test_attachments_refusals_summaries(palette: Palette) -> None:
    image = Attachment("image", "a\x1b[2J.png", "image/png", "0" * 64, 120_000, 640, 480)
    assert texts(message_rows(user("see", image), 60, palette))[-1] == "@ a.png · 640×480 · 120 kB"
    assert texts(message_rows(assistant(Refusal("I can't.")), 60, palette))[-1] == "refused: I can't."
    summary = user("## Goals", kind="summary")
    assert texts(message_rows(summary, 60, palette, MessageView("summary", (900, "estimated"))))[-1] == (
        "▸ summary of the earlier conversation · ~900 tok"
    )


def test_a_copy_of_a_message_is_what_was_written() -> None:
    assert copy_text(assistant(Reasoning("no"), "a **b**", "c")) == "a **b**\n\nc"
    assert copy_text(tool(ToolResult("c1", "t", "out\n"), ToolResult("c2", "t", ""))) == "out\n"


def test_sources_are_numbered_under_the_answer_with_their_titles_as_written(palette: Palette) -> None:
    sources = (Source("https://example.com/a_(b)", r"A [b] *c* $x$ \[y\] <z> & `d`"), Source("https://example.org/"))
    rows = message_rows(assistant("So.", *sources), 80, palette)
    assert [row.text.strip() for row in rows if row.text.strip()] == [
        "So.",
        r"1. A [b] *c* $x$ \[y\] <z> & `d`",
        "2. https://example.org/",
    ]


def test_what_cannot_be_shown_and_what_a_provider_says_is_told(palette: Palette) -> None:
    parts = (ProviderItem("image_generation_call"), Refusal("Not \x1b[31mthis.", "cyber", from_server=True))
    rows = message_rows(Message("assistant", parts, finish_reason="refusal"), 80, palette)
    text = "\n".join(row.text for row in rows)
    assert "image_generation_call · cannot be shown here" in text
    assert "the provider says: Not" in text and "(cyber)" in text and "\x1b" not in text


def test_private_reasoning_is_named(palette: Palette) -> None:
    rows = message_rows(assistant(Reasoning("", redacted="xyz"), "Yes.", status="streaming"), 60, palette)
    assert any("kept private" in row.text for row in rows)
    assert "xyz" not in rows_text(rows)


@pytest.mark.parametrize("width", [8, 20, 38])
def test_every_kind_of_row_fits(width: int, palette: Palette) -> None:
    message = assistant(Reasoning("x " * 40, tokens=123_456), CALL, "word " * 30, status="failed")
    view = MessageView(
        "a-very-long-model-name-for-a-label", (123_456, "estimated"), frozenset({0, 1}), divider="not sent any more"
    )
    assert all(row.cells <= width for row in message_rows(message, width, palette, view))


# -- a reply that is arriving


def lines(rows: list[Row]) -> list[str]:
    return [row.text.rstrip() for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("open_parts", [frozenset(), frozenset({0})], ids=["folded", "unfolded"])
def test_a_reply_with_reasoning_ends_as_the_message_it_becomes(open_parts: frozenset[int], palette: Palette) -> None:
    thoughts, answer = "I *think* " * 40, DOCUMENTS["long list"]
    live = LiveReply()
    view = MessageView("model", open=open_parts)
    live.draw(60, palette, view, 0.0)
    for position in range(0, len(thoughts), 7):
        live.feed("reasoning", thoughts[position : position + 7], "", 1.0)
        live.update(2.0)
    for position in range(0, len(answer), 40):
        live.feed("text", answer[position : position + 40], "", 7.0)
        live.update(8.0)
    whole = message_rows(
        assistant(Reasoning(thoughts), answer),
        60,
        palette,
        MessageView("model", None, open_parts, thought=6.0),
    )
    assert lines(live.rows) == lines(whole)
    assert live.thought() == 6.0


def test_update_tells_from_where_rows_changed(palette: Palette) -> None:
    live = LiveReply()
    live.draw(60, palette, MessageView("model"), 0.0)
    assert lines(live.rows) == ["", "model", "…"]
    live.feed("text", "".join([f"paragraph {number}\n\n" for number in range(50)]), "", 0.0)
    live.update(0.0)
    before = list(live.rows)
    live.feed("text", "more", "", 0.0)
    first = live.update(0.0)
    assert first >= 95
    assert live.rows[:first] == before[:first]
    assert lines(live.rows)[-1] == "more"


def test_a_part_that_begins_while_another_thread_draws_doubles_nothing(
    palette: Palette, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = LiveReply()
    live.feed("text", "one\n\ntwo", "", 0.0)
    other, update = live.undrawn_copy(), StreamRenderer.update

    def meanwhile(stream: StreamRenderer, text: str) -> tuple[list[Row], list[Row]]:
        monkeypatch.undo()
        live.feed("tool_call", "", "look", 0.0)
        return update(stream, text)

    monkeypatch.setattr(StreamRenderer, "update", meanwhile)
    other.draw(60, palette, MessageView("model"), 0.0)
    other.update(0.0)
    assert lines(other.rows) == ["", "model", "one", "", "two", "▸ look · preparing"]


def test_thinking_counts_seconds_until_it_ends(palette: Palette) -> None:
    live = LiveReply()
    live.draw(60, palette, MessageView("model"), 0.0)
    live.feed("reasoning", "hm", "", 10.0)
    live.update(13.0)
    assert live.rows[-1].text == "▸ thinking · 3 s"
    live.feed("text", "so", "", 15.0)
    live.update(40.0)
    assert "▸ thought for 5 s" in lines(live.rows)


def test_tool_calls_show_their_name_while_arguments_arrive(palette: Palette) -> None:
    live = LiveReply()
    live.draw(60, palette, MessageView("model"), 0.0)
    live.feed("tool_call", "", "read_file", 0.0)
    live.feed("tool_call", '{"pa', "", 0.0)
    live.feed("tool_call", "", "list_files", 0.0)
    live.feed("tool_call", "{}", "", 0.0)
    live.update(0.0)
    assert lines(live.rows)[-2:] == ["▸ read_file · preparing", "▸ list_files · preparing"]


def test_a_new_width_draws_everything_anew(palette: Palette) -> None:
    live = LiveReply()
    live.draw(60, palette, MessageView("model"), 0.0)
    live.feed("text", "some words that wrap at a narrow width", "", 0.0)
    live.update(0.0)
    live.draw(20, palette, MessageView("model"), 0.0)
    assert all(row.cells <= 20 for row in live.rows)
    assert "".join(lines(live.rows)).endswith("a narrow width")


def test_what_arrived_unseen_is_drawn_like_what_was_seen(palette: Palette) -> None:
    text = "".join(f"* item {number}\n\n" + "word " * 60 + "\n\n" for number in range(60))
    seen, unseen = LiveReply(), LiveReply()
    for live in (seen, unseen):
        live.draw(60, palette, MessageView(), 0.0)
        for start in range(0, len(text), 500):
            live.feed("text", text[start : start + 500], "", 0.0)
            if live is seen:
                live.update(0.0)
        assert live.backlog == (len(text) if live is unseen else 0)
        live.feed("tool_call", "{}", "read_file", 1.0)
        live.update(1.0)
        assert live.backlog == 0
    assert [row.text for row in unseen.rows] == [row.text for row in seen.rows]


def test_a_refusal_of_any_length_costs_no_more_than_its_beginning(palette: Palette) -> None:
    live = LiveReply()
    live.draw(60, palette, MessageView("model"), 0.0)
    for _ in range(20):
        live.feed("refusal", "I can't help with that. " * 500, "", 0.0)
        live.update(0.0)
    shown = " ".join(lines(live.rows))
    assert 0 < shown.count("help") * 24 <= 2 * HEAD_CHARS
    assert "refused: I can't help with that." in shown

"""Thoughts that a server leaves in the text, cut at any place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.providers.base import ReasoningDelta, StreamEvent, TextDelta
from tui.providers.chat_reader import ChatReader
from tui.providers.think_tags import MARKS, ThinkTags

CASES = [
    ("<think>\nLet me see.\n</think>\n\nYes.", "Let me see.", "Yes."),
    ("\n <think>Let me see.</think>Yes.", "Let me see.", "Yes."),
    ("<thinking>a < b</thinking> Yes.", "a < b", "Yes."),
    ("◁think▷Hmm◁/think▷Yes.", "Hmm", "Yes."),
    ("<thought>Hmm</thought>Yes.", "Hmm", "Yes."),
    ("<think></think>Yes.", "", "Yes."),
    ("<think>never closed </thin", "never closed </thin", ""),
    ("<think>one</think>two <think>three</think>", "one", "two <think>three</think>"),
    ("The tag <think> opens a thought.</think>", "", "The tag <think> opens a thought.</think>"),
    ("<thin", "", "<thin"),
    ("<", "", "<"),
    ("  indented", "", "  indented"),
    ("<b>bold</b>", "", "<b>bold</b>"),
    ("</think>Yes.", "", "</think>Yes."),
]


def split(pieces: Sequence[str]) -> tuple[str, str]:
    tags = ThinkTags()
    events = [event for piece in pieces for event in tags.feed(piece)] + list(tags.finish())
    assert all(event.text for event in events)
    return joined(events)


def joined(events: Sequence[StreamEvent]) -> tuple[str, str]:
    thought = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    return thought, "".join(event.text for event in events if isinstance(event, TextDelta))


@pytest.mark.parametrize(("text", "thought", "answer"), CASES)
def test_whole_and_in_single_characters(text: str, thought: str, answer: str) -> None:
    assert split([text]) == (thought, answer)
    got = split(list(text))
    assert (got[0].rstrip(), got[1]) == (thought.rstrip(), answer)


@given(
    st.sampled_from([*MARKS, "", "<x>"]),
    st.text("ab <>/think▷◁\n", max_size=30),
    st.sampled_from([*MARKS.values(), ""]),
    st.text("ab <>/think\n", max_size=30),
    st.integers(1, 9),
)
def test_how_it_is_cut_makes_no_difference(start: str, thought: str, end: str, answer: str, size: int) -> None:
    text = start + thought + end + answer
    whole, pieces = split([text]), split([text[at : at + size] for at in range(0, len(text), size)])
    assert (whole[0].split(), whole[1]) == (pieces[0].split(), pieces[1])
    if start == "<x>":
        assert whole == ("", text)


def chunk(**delta: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta}]}


def test_text_streams_at_once_where_there_is_no_tag() -> None:
    reader = ChatReader()
    assert list(reader.feed(chunk(content="Hello"))) == [TextDelta("Hello")]
    assert list(reader.feed(chunk(content=" <think>"))) == [TextDelta(" <think>")]


def test_a_server_with_a_parser_is_left_alone() -> None:
    reader = ChatReader()
    events = [*reader.feed(chunk(reasoning_content="Hmm")), *reader.feed(chunk(content="<think> is a tag"))]
    assert joined(events) == ("Hmm", "<think> is a tag")
    official = ChatReader(tags=False)
    assert joined(list(official.feed(chunk(content="<think>x</think>y")))) == ("", "<think>x</think>y")


def test_what_is_held_back_comes_before_a_tool_call_and_at_the_end() -> None:
    reader = ChatReader()
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
    events = [*reader.feed(chunk(content="<th")), *reader.feed(chunk(tool_calls=[call]))]
    assert [type(event).__name__ for event in events] == ["TextDelta", "ToolCallDelta"]
    reader = ChatReader()
    assert joined([*reader.feed(chunk(content="<think>cut of")), *reader.finish()]) == ("cut of", "")

"""Thoughts that a server leaves in the text, cut at any place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.collect import collect
from tests.providers.replay import Answer, sse
from tests.providers.serving import ANTHROPIC, DIALECTS, REQUEST, RESPONSES, USAGE, chunk, serving
from tui.messages import Usage
from tui.providers.base import ReasoningDelta, StreamEnd, StreamEvent, TextDelta, ToolCallDelta, UsageUpdate
from tui.providers.config import Dialect
from tui.providers.text_repairs import MARKS, ThinkTags, thought_before

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
    events = [*tags.read(map(TextDelta, pieces)), *tags.flush()]
    assert all(event.text for event in events if isinstance(event, TextDelta | ReasoningDelta))
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


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Let me see.\n</think>\n\nYes.", ("Let me see.", "Yes.")),
        ("Hmm\n◁/think▷\n", ("Hmm", "")),
        ("\n</think>\n\nYes.", ("", "Yes.")),
        ("A tag ends with </think> in the text.", None),
        ("```\n<think>\nHmm\n</think>\n```", None),
        ("Yes.", None),
    ],
)
def test_reasoning_that_was_never_opened(text: str, parts: tuple[str, str] | None) -> None:
    assert thought_before(text) == parts


def text(piece: str, block: int | None = None) -> TextDelta:
    return TextDelta(piece, block)


def test_text_streams_at_once_where_there_is_no_tag() -> None:
    tags = ThinkTags()
    assert list(tags.read([text("Hello", 3)])) == [text("Hello", 3)]
    assert list(tags.read([text(" <think>", 3)])) == [text(" <think>", 3)]


def test_a_server_with_a_parser_is_left_alone() -> None:
    events: list[StreamEvent] = [ReasoningDelta("Hmm"), text("<think> is a tag")]
    assert list(ThinkTags().read(events)) == events
    raw = [text("<think>x</think>y")]
    assert list(ThinkTags(on=False).read(raw)) == raw


def test_what_is_held_back_comes_before_a_tool_call_and_before_the_end() -> None:
    for last in (ToolCallDelta(0, "c", "f", "{}"), StreamEnd("stop", "stop")):
        assert list(ThinkTags().read([text("<th", 0), UsageUpdate(Usage(1, 1)), last])) == [
            UsageUpdate(Usage(1, 1)),
            text("<th", 0),
            last,
        ]


SPLIT = ("<th", "ink>Let me", " see.</thi", "nk>\n\n", "Yes.")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("whole", [True, False])
async def test_every_dialect_of_a_server_without_a_parser(dialect: Dialect, whole: bool) -> None:
    pieces = SPLIT if whole else SPLIT[:2]
    match dialect:
        case "openai-chat":
            events = [chunk(piece) for piece in pieces] + [chunk(finish="stop"), USAGE] * whole
        case "anthropic":
            deltas = ({**ANTHROPIC[3], "delta": {"type": "text_delta", "text": piece}} for piece in pieces)
            events = [*ANTHROPIC[:2], *deltas, *ANTHROPIC[-3:]] if whole else [*ANTHROPIC[:2], *deltas]
        case _:
            events = [*RESPONSES[:2], *({**RESPONSES[2], "delta": piece} for piece in pieces), *RESPONSES[-1:] * whole]
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer([sse(event, named=True) for event in events], end="clean" if whole else "cut"))
        got = await collect(provider, REQUEST)
    assert (got.thoughts, got.text) == (("Let me see.", "Yes.") if whole else ("Let me", ""))
    assert (got.end is not None) is whole and (got.error is None) is whole

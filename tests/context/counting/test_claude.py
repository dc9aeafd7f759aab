"""The stream that Claude's tokens make up; its counts are compared with Anthropic's in tests/corpus."""

from __future__ import annotations

from functools import cache
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.context.counting.claude import BEGIN, CAPS, END, SHIFT, ClaudeCounter
from tui.context.counting.words import total

SHOWN = str.maketrans({BEGIN: "[", END: "]", SHIFT: "^", CAPS: "#", "\x05": "$"})


@cache
def counter(vocabulary: str) -> ClaudeCounter:
    return ClaudeCounter(vocabulary)


def shown(text: str, vocabulary: str = "claude-3") -> str:
    """The stream of `text`, put together from its words and gaps."""
    claude = counter(vocabulary)
    words = chain.from_iterable(claude.split(text))
    return "".join(chain.from_iterable(map(claude.parts, words))).translate(SHOWN)


def count(text: str, vocabulary: str = "claude-3") -> float:
    return total(counter(vocabulary).classes(text))


@pytest.mark.parametrize(
    ("text", "stream"),
    [
        ("hello, world", "[hello],][world]"),
        ("Hello HELLO WiFi", "^[hello]#[hello][WiFi]"),
        ("it's a cat", "[it]'s][a][cat]"),
        ("x 'First", "[x] '^[first]"),
        ("  two blanks", "  [two][blanks]"),
        (" one", "[one]"),
        ("a\n\n", "[a]$\n\n\n\n"),
        ("12 34", "[12 34"),
        ("世界 and", "[世界 [and]"),
        ("“quoted”", '["[quoted]"'),
        ("a\x07b\ue000c", "[abc]"),
        ("\x07", "["),
    ],
)
def test_words_take_marks_for_borders_and_case(text: str, stream: str) -> None:
    assert shown(text) == stream


def test_the_newer_vocabulary_marks_no_capitals_and_keeps_quotes() -> None:
    assert shown("HELLO “a", "claude-4.7") == "[HELLO][“[a]"


MIXED = st.text(st.sampled_from("aB'’s\n\t 5,(=.世界の한Аé\u0301❤\ufe0f½²Ⅷ٣\xa0🙂\x07अ\u094d") | st.characters())
SHORT = st.lists(st.sampled_from([" ", "'", "s", "世", "(", "5", "\n", "Foo", "ll"])).map("".join)


@settings(max_examples=5 * settings().max_examples)
@given(MIXED | SHORT)
def test_words_and_gaps_make_up_the_stream_of_the_whole_text(text: str) -> None:
    claude = counter("claude-3")
    whole = claude.normalized(text)
    if text[:1] == " " == whole[:1] and whole[1:2] != " ":
        whole = whole[1:]
    assert shown(text) == (claude.stream(whole).translate(SHOWN) if text else "")


def test_counts_are_those_of_the_reconstruction() -> None:
    """Of ctok 1.3.0, less the frame."""
    assert [count("hello, world"), count("hello, world", "claude-4.7")] == [3, 4]
    assert [count("NASA likes tokenizers"), count("NASA likes tokenizers", "claude-4.7")] == [4, 10]


@given(st.text(alphabet=st.characters(), max_size=200))
def test_any_text_is_counted(text: str) -> None:
    for vocabulary in ("claude-3", "claude-4.7"):
        assert 0 <= count(text, vocabulary) <= 8 * len(text) + 1


@pytest.mark.slow
@pytest.mark.parametrize("part", ["a", "\n", " ", "世", "Aé1 ", "=-"])
def test_long_texts_are_counted(part: str) -> None:
    text = part * (100_000 // len(part))
    assert 1 < count(text) <= 2 * len(text)


def test_a_text_counts_the_same_in_pieces() -> None:
    line = "The 3 quick brown foxes, it's said, don't jump over lazy dogs; they're tired (or not).\n"
    one, two, many = (count(line * times) for times in (1, 2, 2_000))
    assert many == pytest.approx(one + (two - one) * 1_999, abs=20)

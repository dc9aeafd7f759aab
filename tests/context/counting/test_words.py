from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.context.counting import words
from tui.context.counting.words import CLASSES, PIECE, WordCounter, class_of, pack, pieces, total, unpack, word_classes


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["word ", "\n", " " * 40_000, "x" * 130_000, "日本語" * 9_000]), max_size=8))
def test_pieces_are_the_text_and_never_too_long(runs: list[str]) -> None:
    text = "".join(runs)
    parts = pieces(text)
    assert "".join(parts) == text
    assert all(len(piece) <= PIECE for piece in parts)


def test_text_is_cut_between_lines() -> None:
    text = "def function(argument):\n    return argument + 1\n\n" * 1_000
    parts = pieces(text)
    assert len(parts) > 1
    assert all(piece.startswith("def") for piece in parts)


class Letters(WordCounter):
    """Counts a token for each word."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: list[str] = []

    def split(self, text: str) -> Iterator[list[str]]:
        yield text.split()

    def count_word(self, word: str) -> int:
        self.counted.append(word)
        return 1


def test_words_are_counted_once_until_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "CACHED_WORDS", 3)
    counter = Letters()
    for other in "abbbacde":
        assert counter.classes(f"often {other} {'long' * 20}") == 3
        assert len(counter) <= 3
    assert [counter.counted.count(word) for word in ("often", "a", "b", "long" * 20)] == [2, 1, 1, 8]


@pytest.mark.parametrize(
    ("word", "classes"),
    [
        (" hello", {"latin": 5}),
        ("straße", {"accented": 6}),
        (" việt", {"vietnamese": 4}),
        ("Đường", {"vietnamese": 5}),
        ("日本語テキスト", {"han": 3, "kana": 4}),
        ("हिन्दी", {"devanagari": 6}),
        ("한국어", {"hangul": 3}),
        ("ሰላም", {"ethiopic": 3}),
        ("123", {"digits": 3}),
        ("१२", {"digits": 2}),
        (" =>", {"punctuation": 2}),
        ("—", {"punctuation": 1}),
        ("→", {"symbols": 1}),
        ("👩‍👧", {"emoji": 3}),
        ("\n\n", {"blanks": 2}),
        ("ᚠᚢ", {"other": 2}),
    ],
)
def test_words_have_the_classes_of_their_characters(word: str, classes: dict[str, int]) -> None:
    assert {CLASSES[kind]: count for kind, count in word_classes(word).items()} == classes


@given(st.characters())
def test_every_character_has_a_class(char: str) -> None:
    assert 0 <= class_of(char) < len(CLASSES)


@given(st.text(min_size=1, max_size=30))
def test_no_word_is_without_classes(word: str) -> None:
    assert 1 <= sum(word_classes(word).values()) <= len(word)


COUNTS = st.dictionaries(st.integers(0, len(CLASSES) - 1), st.integers(1, 10_000_000), max_size=8)


@given(COUNTS, COUNTS)
def test_packed_counts_are_added_class_by_class(some: dict[int, int], others: dict[int, int]) -> None:
    both = pack(some) + pack(others)
    assert dict(unpack(both)) == {kind: some.get(kind, 0) + others.get(kind, 0) for kind in {*some, *others}}
    assert dict(unpack(both - pack(others))) == some
    assert total(both) == sum(some.values()) + sum(others.values())

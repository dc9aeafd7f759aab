from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.context.counting import words
from tui.context.counting.words import PIECE, WordCounter, pieces


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

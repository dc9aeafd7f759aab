from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.context.counting.classes import CLASSES, class_of, pack, total, unpack, word_classes


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

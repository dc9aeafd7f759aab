from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tui.context.counting.words import PIECE, pieces


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["word ", "\n", " " * 40_000, "x" * 130_000, "日本語" * 9_000]), max_size=8))
def test_pieces_are_the_text_and_never_too_long(parts: list[str]) -> None:
    text = "".join(parts)
    found = pieces(text)
    assert "".join(found) == text
    assert all(len(piece) <= PIECE for piece in found)


def test_text_is_cut_between_lines() -> None:
    text = "def function(argument):\n    return argument + 1\n\n" * 1_000
    found = pieces(text)
    assert len(found) > 1
    assert all(piece.startswith("def") for piece in found)

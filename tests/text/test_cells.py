"""Titles, names and paths from outside, on one line of a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tui.text.cells import pad, plain

FAMILY = "👩\u200d👩\u200d👧"


def test_what_joins_characters_stays_and_what_directs_them_goes() -> None:
    assert plain(f"a {FAMILY} می\u200cروم") == f"a {FAMILY} می\u200cروم"
    assert plain("a\u202eb\u2066c\u200ed\u00ade\ufefff") == "abcdef"


def test_what_a_terminal_would_act_on_is_a_blank() -> None:
    assert plain("a\x1b[31mb\tc\nd\x07e\x9bf\ud83dg\u2028h") == "a [31mb c d e f g h"


@given(st.text(st.characters() | st.sampled_from(f"{FAMILY}🇩🇪漢e\u0301")), st.integers(0, 20))
def test_a_padded_text_has_the_width_asked_for(text: str, width: int) -> None:
    assert cell_len(pad(plain(text), width)) == width

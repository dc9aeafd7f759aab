from __future__ import annotations

import errno
import io
import os
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.errors import ExpectedError
from tui.text.clean import abbreviated, clean_line, clean_output, clean_text, clean_url, failure_line

ANY = st.text(alphabet=st.characters(exclude_categories=()), max_size=200)  # lone surrogates too


@given(ANY)
def test_nothing_that_moves_a_terminal_survives(text: str) -> None:
    for cleaned in (clean_text(text), clean_output(text), clean_line(text)):
        assert all(unicodedata.category(char) not in ("Cc", "Cs") for char in cleaned if char not in "\t\n")
        assert not set(cleaned) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
        cleaned.encode()  # can be written


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "Zs")), max_size=100))
def test_harmless_text_is_left_alone(text: str) -> None:
    assert clean_text(text) == text


def test_control_characters_are_shown() -> None:
    assert clean_text("a\x1b[31mb\x07c\x7f") == "a␛[31mb␇c␡"
    assert clean_text("one\r\ntwo\rthree") == "one\ntwo\nthree"


def test_escape_sequences_of_a_program_vanish_whole() -> None:
    assert clean_output("\x1b[1;31mFAILED\x1b[0m \x1b]8;;http://x\x1b\\t.py\x1b]8;;\x07 \x1b(B.") == "FAILED t.py ."


def test_line_folds_white_space() -> None:
    assert clean_line(" a\n\t b \x1b[2Kc ") == "a b c"


def test_only_web_and_mail_addresses_are_links() -> None:
    assert clean_url("https://example.org/a?b=c#d") == "https://example.org/a?b=c#d"
    assert clean_url("mailto:a@example.org") != ""
    for bad in ("javascript:alert(1)", "file:///etc/passwd", "https://a\x1b\\b", "http://a b", "http://é.org", ""):
        assert clean_url(bad) == ""


@pytest.mark.parametrize(("text", "short"), [("", ""), ("12345", "12345"), ("123456", "1234…"), ("123 56", "123…")])
def test_an_abbreviated_text_is_as_long_as_allowed(text: str, short: str) -> None:
    assert abbreviated(text, 5) == short


@pytest.mark.parametrize("place", [None, "/a/b"])
@pytest.mark.parametrize("number", errno.errorcode)
def test_an_error_of_the_system_is_no_bug_and_has_a_next_step(number: int, place: str | None) -> None:
    reason, step = failure_line(OSError(number, os.strerror(number), place), "x.log").rsplit(": ", 1)
    assert reason == os.strerror(number) + (" (/a/b)" if place else "")
    assert step.split()[0] in ("check", "close", "change", "free", "try")
    assert step.endswith(". Nothing stored is lost; details are in x.log")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ExpectedError("Choose another\nname."), "Choose another name."),
        (ValueError("odd"), "a bug: ValueError: odd. Nothing stored is lost"),
        (ValueError(), "a bug: ValueError. Nothing stored is lost"),
        (TimeoutError(), "a bug: TimeoutError. Nothing stored is lost"),
        (io.UnsupportedOperation("read"), "a bug: UnsupportedOperation: read. Nothing stored is lost"),
    ],
)
def test_any_other_error_that_nothing_handles_is_a_bug(error: Exception, text: str) -> None:
    assert failure_line(error) == text

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len, chop_cells
from rich.style import Style

from tui.render import rows as wrapping
from tui.render.code import code_rows
from tui.render.markdown import markdown_rows
from tui.render.palette import Palette
from tui.render.rows import Run, plain_rows, rows_text, wrap
from tui.render.stream import StreamRenderer

PLAIN, BOLD = Style(color="red"), Style(bold=True)
TEXT = st.text(alphabet=st.sampled_from("ab c-日本。（👩é "), max_size=120)


def lines(text: str, width: int) -> list[str]:
    return ["".join([run.text for run in line.runs]) for line in wrap([Run(text, PLAIN)], width)]


@given(st.lists(TEXT, max_size=5), st.integers(4, 30))
def test_lines_fit_and_joined_again_they_are_the_text(texts: list[str], width: int) -> None:
    runs = [Run(text, (PLAIN, BOLD)[number % 2]) for number, text in enumerate(texts)]
    wrapped = wrap(runs, width)
    assert all(line.cells == sum(cell_len(run.text) for run in line.runs) <= width for line in wrapped)
    joined = "".join(["".join([run.text for run in line.runs]) + line.joint for line in wrapped])
    assert joined.replace(" ", "").rstrip("\n") == "".join(texts).replace(" ", "")


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=9), min_size=1, max_size=20), st.integers(10, 30))
def test_words_that_fit_are_never_cut(words: list[str], width: int) -> None:
    text = " ".join(words)
    assert " ".join(lines(text, width)) == text


def test_breaks_between_words() -> None:
    assert lines("the quick brown fox", 10) == ["the quick", "brown fox"]


def test_styles_inside_a_word_do_not_break_it() -> None:
    wrapped = wrap([Run("aaaa bb", PLAIN), Run("bb", BOLD), Run("b c", PLAIN)], 8)
    assert [[run.text for run in line.runs] for line in wrapped] == [["aaaa"], ["bb", "bb", "b c"]]


@given(st.lists(st.text("ab 漢。🧪\u0301", max_size=12), max_size=6), st.integers(4, 30))
def test_neighbours_in_one_style_are_one_run_whether_they_fit_or_not(texts: list[str], width: int) -> None:
    runs = [Run(text, PLAIN if number % 3 else BOLD) for number, text in enumerate(texts) if text]
    for line in wrap(runs, width):
        assert all(one.style is not other.style for one, other in pairwise(line.runs))


@given(st.text("ab 漢。🧪\u0301", max_size=60), st.integers(4, 30))
def test_a_long_text_is_split_like_a_short_one(text: str, width: int) -> None:
    whole = wrap([Run(text, PLAIN)], width)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tui.render.rows.AT_ONCE", 0)
        assert wrap([Run(text, PLAIN)], width) == whole


def test_long_words_are_cut() -> None:
    wrapped = wrap([Run("abcdefghij", PLAIN)], 4)
    assert [line.runs[0].text for line in wrapped] == ["abcd", "efgh", "ij"]
    assert [line.joint for line in wrapped] == ["", "", "\n"]


def test_wide_text_breaks_anywhere_but_not_before_its_full_stop() -> None:
    assert lines("日本語です。日本", 10) == ["日本語で", "す。日本"]
    assert lines("あい（うえ", 6) == ["あい", "（うえ"]


def test_graphemes_stay_whole() -> None:
    family = "👩\u200d👩\u200d👧"
    assert "".join(lines(family * 6, 5)) == family * 6
    assert all(line.count("👧") == line.count("👩") / 2 for line in lines(family * 6, 5))


def test_the_indent_of_a_line_stays() -> None:
    assert lines("    indented code here", 16) == ["    indented", "code here"]
    assert lines("    " + "x" * 30, 10) == ["    xxxxxx", "x" * 10, "x" * 10, "x" * 4]


def test_newlines_make_lines() -> None:
    assert lines("a\n\nb", 10) == ["a", "", "b"]


@pytest.mark.parametrize("mark", ["\u0301", "👩\u200d", "\u200b", "\ufe0f"])
def test_marks_without_end_make_rows_with_one(mark: str, palette: Palette) -> None:
    text = f"e{mark * 5_000}, e\n"
    rows = [*markdown_rows(text, 40, palette), *code_rows(text.strip(), "", 40, palette), *plain_rows(text, PLAIN, 40)]
    assert max(len(row.text) for row in rows) <= 8 * 40 + 40
    assert rows_text(plain_rows(text, PLAIN, 40)) == text
    stream = StreamRenderer(40, palette)
    drawn = [stream.update(mark * 1_000)[1] for _ in range(20)]
    assert all(len(row.text) <= 8 * 40 for rows in drawn[10:] for row in rows)


def test_a_word_without_end_costs_what_its_lines_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []
    chop = chop_cells

    def counted(text: str, room: int) -> list[str]:
        looked_at.append(len(text))
        return chop(text, room)

    monkeypatch.setattr(wrapping, "chop_cells", counted)
    assert [line.cells for line in wrap([Run("x" * 20_000, PLAIN)], 50)] == [50] * 400
    assert sum(looked_at) < 20 * 20_000

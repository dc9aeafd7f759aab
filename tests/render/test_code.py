from __future__ import annotations

from rich.cells import cell_len

from tui.render.code import CONTINUED, code_rows, language_of, safe_cuts
from tui.render.palette import Palette
from tui.render.rows import rows_text

SOURCE = 'def f(x):\n    """Two\n    lines."""\n    return [x, "a long string that does not fit", 日本語日本語]'


def test_a_block_names_its_language_and_keeps_every_line(palette: Palette) -> None:
    rows = code_rows(SOURCE, "python title=x", 80, palette)
    assert rows[0].text == "python ".rjust(80)
    assert [row.copy for row in rows[1:-1]] == SOURCE.split("\n")
    assert all(row.cells == 80 for row in rows)


def test_keywords_and_strings_differ_also_over_lines(palette: Palette) -> None:
    rows = code_rows(SOURCE, "python", 80, palette)
    styles = [{segment.text.strip(): segment.style for segment in row.segments} for row in rows]
    assert styles[1]["def"] == palette.syntax["Keyword"]
    assert styles[3]['lines."""'] == palette.syntax["String"]


def test_long_lines_go_on_under_a_mark_and_are_copied_whole(palette: Palette) -> None:
    rows = code_rows(SOURCE, "", 30, palette)
    assert any(row.text.startswith(f" {CONTINUED}") for row in rows)
    assert all(row.cells == 30 for row in rows)
    assert rows_text(rows[1:-1]) == SOURCE


def test_without_a_ground_of_its_own_code_has_a_bar(ansi: Palette) -> None:
    rows = code_rows("a\nb", "sh", 40, ansi)
    assert [row.text for row in rows] == ["▏sh", "▏a", "▏b"]
    assert rows_text(rows[1:]) == "a\nb"


def test_unknown_languages_are_plain(palette: Palette) -> None:
    rows = code_rows("x = 1", "no-such-language", 40, palette)
    assert rows[1].copy == "x = 1"
    assert {segment.style for segment in rows[1].segments} == {palette.block}


def test_tabs_become_blanks(palette: Palette) -> None:
    assert code_rows("\tx\ty", "", 40, palette)[1].copy == "    x   y"


def test_language_words_are_tamed() -> None:
    assert language_of("{.python .numberLines}") == "python"
    assert language_of("a|b\x1b[31m") == "a|b"
    assert language_of("") == ""
    assert cell_len(language_of("x" * 100)) == 24


def test_safe_cuts_spare_what_spans_lines() -> None:
    assert safe_cuts("a = 1\nb = '''x\ny'''\n# z\nc\n", "python") == [1, 3, 4, 5]
    assert safe_cuts("a = '''never\nended\n", "python") == []
    assert safe_cuts("a\n/* b\nc */\n", "js") == [1, 3]
    assert safe_cuts("a\nb\n", "") == safe_cuts("a\nb\n", "text") == [1, 2]


def test_neighbours_in_one_colour_are_written_as_one(palette: Palette) -> None:
    row = code_rows("node = Node(tokens)", "python", 40, palette, label=False)[0]
    assert [segment.text for segment in row.segments if segment.text.strip()] == ["node = Node(tokens)"]

from __future__ import annotations

import pytest

from tui.render.markdown import markdown_rows
from tui.render.palette import Palette
from tui.render.rows import rows_text
from tui.text.markdown import split_cells

WIDE = (
    "| Model | Price | Notes |\n|:--|--:|:-:|\n"
    "| claude | $3.00 | cached reads are ten times cheaper than fresh ones |\n| gpt | $12 | none |\n"
)


def drawn(source: str, width: int, palette: Palette) -> list[str]:
    return [row.text.rstrip() for row in markdown_rows(source, width, palette)]


def test_a_bar_in_code_or_in_a_formula_of_the_header_ends_no_cell(palette: Palette) -> None:
    head, _, body = drawn("| `a|b` | $|x|$ |\n|---|---|\n| 1 | `c|d` |\n", 80, palette)
    assert [head.split(), body.split()] == [["a|b", "$|x|$"], ["1", "c|d"]]


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        (r"| x \| y | z |", ["x | y", "z"]),
        (r"| `x \| y` | z |", ["`x | y`", "z"]),
        (r"| $\|x\|$ | z |", [r"$\|x\|$", "z"]),  # a norm
        (r"| `x|y` | z |", ["`x|y`", "z"]),
        ("x | y | z", ["x", "y", "z"]),
    ],
)
def test_a_bar_with_a_backslash_or_in_code_belongs_to_its_cell(row: str, cells: list[str]) -> None:
    assert split_cells(row, 2) == cells


def test_columns_align(palette: Palette) -> None:
    assert drawn("|ab|n|\n|--|-:|\n|x|1|\n|long cell|22|\n", 80, palette) == [
        "ab             n",
        "────────────────",
        "x              1",
        "long cell     22",
    ]


def test_the_wide_column_shrinks_and_rows_get_air(palette: Palette) -> None:
    rows = drawn(WIDE, 50, palette)
    assert rows[0].startswith("Model   Price")
    assert rows[2].startswith("claude  $3.00") and "cached reads are ten times" in rows[2]
    assert rows[4] == ""
    assert all(len(row) <= 50 for row in rows)


def test_where_columns_would_be_slivers_rows_become_records(palette: Palette) -> None:
    source = "|first|second|third|fourth|\n|-|-|-|-|\n|international|transportation|responsibilities|x|\n"
    source += "|||||\n|a|b|c|d|\n"
    assert drawn(source, 30, palette) == [
        "▏first: international",
        "▏second: transportation",
        "▏third: responsibilities",
        "▏fourth: x",
        "",
        "▏first: a",
        "▏second: b",
        "▏third: c",
        "▏fourth: d",
    ]


def test_wide_characters_count_double(palette: Palette) -> None:
    rows = markdown_rows("|a|b|\n|-|-|\n|日本語|x|\n|abcdef|y|\n", 40, palette)
    assert rows[2].cells == rows[3].cells


def test_a_copy_has_no_rules(palette: Palette) -> None:
    assert "─" not in rows_text(markdown_rows(WIDE, 80, palette))


def test_ragged_rows_are_filled(palette: Palette) -> None:
    assert drawn("|a|b|\n|-|-|\n|1|\n", 40, palette)[2] == "1"

"""Streamed in any pieces, Markdown must look as if it had been drawn at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it.token import Token

from tests.render.documents import DOCUMENTS, LONG_PARAGRAPH, LONG_PIECES, PIECES
from tui.render import stream
from tui.render.markdown import markdown_rows, parse
from tui.render.palette import Palette, make_palette
from tui.render.rows import Row
from tui.render.stream import CUT_LINES, LONG, StreamRenderer

PLAIN = make_palette({})


def streamed(source: str, width: int, palette: Palette, sizes: list[int]) -> list[Row]:
    renderer = StreamRenderer(width, palette)
    rows: list[Row] = []
    tail: list[Row] = []
    position = number = 0
    while position < len(source) or not number:
        size = sizes[number % len(sizes)]
        frozen, tail = renderer.update(source[position : position + size])
        if renderer.stale:
            rows, renderer = [], StreamRenderer(width, palette)
            frozen, tail = renderer.update(source[: position + size])
            assert not renderer.stale
        rows += frozen
        position, number = position + size, number + 1
    if renderer.unmarked:  # until the reply is complete, which is drawn as a whole
        return markdown_rows(source, width, palette)
    return rows + tail


def drawn(rows: list[Row], *, styles: bool = False) -> list[tuple[object, ...]]:
    return [(row.segments if styles else row.text, row.start, row.end, row.joint) for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("width", [24, 80])
@pytest.mark.parametrize("sizes", [[1], [1, 30, 2], [500], [1_000_000]], ids=str)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_streamed_equals_whole(name: str, sizes: list[int], width: int, palette: Palette) -> None:
    source = DOCUMENTS[name]
    if sizes == [1]:
        source = source[:600]
    assert drawn(streamed(source, width, palette, sizes)) == drawn(markdown_rows(source, width, palette))


def check(parts: list[tuple[str, str]], sizes: list[int], width: int = 50) -> None:
    source = "".join([piece + gap for piece, gap in parts])
    whole = drawn(markdown_rows(source, width, PLAIN), styles=True)
    assert drawn(streamed(source, width, PLAIN, sizes), styles=True) == whole


GAPS = st.sampled_from(["", "\n"])


@pytest.mark.slow
@settings(deadline=None, max_examples=80)
@given(
    st.lists(st.tuples(st.sampled_from(PIECES), GAPS), max_size=8),
    st.lists(st.integers(1, 60), min_size=1, max_size=5),
)
def test_any_document_in_any_pieces(parts: list[tuple[str, str]], sizes: list[int]) -> None:
    check(parts, sizes)


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(LONG_PIECES + PIECES), GAPS), max_size=6),
    st.lists(st.integers(1, 400), min_size=1, max_size=3),
)
def test_what_was_cut_is_drawn_again_where_later_text_makes_it_untrue(
    parts: list[tuple[str, str]], sizes: list[int]
) -> None:
    check(parts, sizes)


NUMBERS = LONG_PIECES[0]
TABLE = "| a | b |\n|---|--:|\n" + "".join(f"| {number} | x |\n" for number in range(30))


@pytest.mark.parametrize(
    "source",
    [
        NUMBERS + "31. one\n32. two\n\n    ```sh\n    ls\n    ```\n",
        NUMBERS + "\n31. loose\n",
        LONG_PIECES[5] + LONG_PIECES[6],
        LONG_PIECES[5] + LONG_PIECES[7],
        LONG_PIECES[5] + LONG_PIECES[8],
        LONG_PIECES[10] + LONG_PIECES[11],
        TABLE + "\\begin{align}\na &= b\n\n- c\n\\end{align}\n",  # its first lines look like wide rows
        LONG_PIECES[10].rstrip() + " a | b\n---|---\nc | d\n",
        "as [ref] says\n\nsecond\n\nthird\n\n[ref]: /x\n\nend\n",
        "as [ref] says\n\nsecond\n\nthird\n\n[ref]: /x y z\n\nend\n",
        "**bold ` mark** " + LONG_PIECES[10] + " ` end\n",
    ],
    ids=[
        "list with code",
        "loose",
        "wider cell",
        "cell of lines",
        "records",
        "heading",
        "formula that looked like rows",
        "table",
        "link",
        "none",
        "code",
    ],
)
def test_later_text_that_changes_what_stands_above(source: str) -> None:
    for sizes in ([11], [200]):
        check([(source, "")], sizes)


@pytest.mark.parametrize(
    "source",
    [
        "a\n#b",
        "a\n#b\nc",
        "x\n``` a`b\ny",
        "- a\n-b",
        "a\n---x",
        "[a]: /u\nb [a]",
        "y\n$$\n$$ a $$ b",
        "a\n| b |\n:-:|:-\nc",
    ],
)
def test_an_unfinished_line_decides_nothing(source: str, palette: Palette) -> None:
    assert drawn(streamed(source, 40, palette, [1])) == drawn(markdown_rows(source, 40, palette))


def test_code_keeps_its_colours_where_it_is_cut(palette: Palette) -> None:
    function = 'def f{0}(x):\n    """Text\n\n    over lines.\n    """\n    return "a" + f"{{x}}"  # {0}\n\n\n'
    source = "```python\n" + "".join([function.format(number) for number in range(30)]) + "```\n"
    whole = drawn(markdown_rows(source, 60, palette), styles=True)
    assert drawn(streamed(source, 60, palette, [13]), styles=True) == whole


def test_a_cut_paragraph_that_turns_out_a_heading_loses_no_word(palette: Palette) -> None:
    source = f"{LONG_PARAGRAPH}\nlast\n===\n"
    shown = "".join([row.copy + row.joint for row in streamed(source, 80, palette, [100])])
    assert shown.split() == [*LONG_PARAGRAPH.replace("**", "").replace("`", "").split(), "last"]


def test_definitions_known_before_their_use_work(palette: Palette) -> None:
    source = "[x]: https://example.org/defined\n\nfirst\n\nsecond [x]\n\nthird [x]\n"
    whole = drawn(markdown_rows(source, 40, palette))
    assert drawn(streamed(source, 40, palette, [1])) == whole


@pytest.mark.parametrize(
    ("text", "stale"), [("nothing\n\n", False), ("see [3]\n\n", True), ("see [a text][3]\n\n", True)]
)
def test_only_a_definition_of_a_link_above_draws_all_again(palette: Palette, text: str, stale: bool) -> None:
    """Otherwise a list of them at the end of an answer would draw all of it at every line."""
    renderer = StreamRenderer(80, palette)
    for piece in (text, "last\n\n", *(f"[{number}]: https://example.org/{number}\n" for number in range(5))):
        renderer.update(piece)
    assert renderer.stale is stale


def test_half_a_line_end_is_held_back(palette: Palette) -> None:
    for source in ("a\r\n\r\nb", "a\r\rb"):
        assert drawn(streamed(source, 40, palette, [1])) == drawn(markdown_rows("a\n\nb", 40, palette))


@pytest.mark.parametrize("name", ["long fence", "long list", "long numbers", "long paragraph", "long table"])
def test_the_open_part_stays_small(name: str, palette: Palette) -> None:
    source = DOCUMENTS[name].removesuffix("\nafter\n").removesuffix("```\n")
    renderer = StreamRenderer(80, palette)
    most = 0
    for position in range(0, len(source), 50):
        most = max(most, len(renderer.update(source[position : position + 50])[1]))
    assert most <= 2 * CUT_LINES
    assert len(markdown_rows(source, 80, palette)) > most


UNITS = ("abcdefghij", "a1_B+c=*x", "世界、", '{"a":[1],"b":"x_y"},', "plain words before a [mark that *stays open ")
AROUND = [("", ""), ("- a\n- ", ""), ("> ", ""), ("```\n", "\n```"), ("<div>", ""), ("|a|b|\n|-|-|\n|", "|c|")]


@pytest.mark.parametrize(
    ("before", "after", "unit"),
    [(*AROUND[number % len(AROUND)], UNITS[number % len(UNITS)]) for number in range(2 * len(AROUND))],
)
def test_a_very_long_line_is_drawn_in_pieces_and_as_a_whole_once_it_ends(before: str, after: str, unit: str) -> None:
    line = (unit * LONG)[: LONG + 2_000]
    check([(f"{before}{line}{after}\n\nend\n", "")], [1_400])
    renderer = StreamRenderer(50, PLAIN)
    open_line: list[Row] = []
    tail: list[Row] = []
    for position in range(0, len(line), 700):
        frozen, tail = renderer.update(before * (not position) + line[position : position + 700])
        open_line += frozen
    open_line += tail
    assert renderer.unmarked
    assert max(row.cells for row in open_line) <= 50
    shown = "".join([row.text for row in open_line])
    assert shown.count(unit[0]) >= line.count(unit[0])  # nothing is missing meanwhile


OPEN_BLOCKS = [
    *[(before, unit * 20) for before, _ in AROUND for unit in UNITS],
    ("", "2 * 3 is a product of numbers\n"),
    ("", "> quoted words\n"),
    ("", "> quoted words\n>\n"),
    ("", "> - quoted item\n"),
    ("", "    indented code\n"),
    ("<div>\n", "<p>words</p>\n"),
    ("- item\n", "  more words\n"),
    ("- item\n", "\n  another paragraph\n"),
    ("- item\n", "  - item of an item\n"),
    ("- item\n\n  ```\n", "  code in an item\n"),
    ("> ```\n", "> code in a quotation\n"),
    ("```python\nx = '''\n", "words of a string\n"),
    ("$$\n", "a + b = c\n"),
    ("|a|b|\n|-|-|\n", "| some words | " + "other words " * 20 + "|\n"),
    ("", "[label]: /address\n"),
    ("", "\n"),
    ("", "   "),
]


@pytest.mark.parametrize(("before", "unit"), OPEN_BLOCKS)
def test_what_a_piece_of_an_open_block_costs_does_not_grow(
    before: str, unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[int] = []

    def note(text: str, references: dict[str, Any] | None = None) -> list[Token]:
        parsed.append(len(text))
        return parse(text, references)

    monkeypatch.setattr(stream, "parse", note)
    renderer = StreamRenderer(80, PLAIN)
    for piece in (before, *[unit * (1_000 // len(unit))] * 12):
        rows = renderer.update(piece)[1]
    assert max(parsed) <= LONG + 1_100
    assert len("".join([row.copy for row in rows])) <= LONG + 1_100


@pytest.mark.parametrize("unit", ["2 * 3 is a product of numbers\n", "> quoted words\n"])
def test_drawing_a_long_block_again_costs_in_total_what_its_size_is(unit: str) -> None:
    renderer, source, again = StreamRenderer(80, PLAIN), "", 0
    for _ in range(60):
        source += unit * max(1, 500 // len(unit))
        renderer.update(unit * max(1, 500 // len(unit)))
        if renderer.stale:
            again += len(source)
            renderer = StreamRenderer(80, PLAIN)
            renderer.update(source)
    assert again <= 6 * len(source)

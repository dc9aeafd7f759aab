from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.style import Style

from tests.render.documents import DOCUMENTS, PIECES
from tui.render.markdown import code_blocks, markdown_rows
from tui.render.palette import Palette, make_palette
from tui.render.rows import Row, rows_text


def texts(rows: list[Row]) -> list[str]:
    return [row.text.rstrip() for row in rows]


def style_of(rows: list[Row], word: str) -> Style:
    for row in rows:
        for segment in row.segments:
            if word in segment.text and segment.style is not None:
                return segment.style
    raise AssertionError(word)


def test_headings_paragraphs_emphasis(palette: Palette) -> None:
    rows = markdown_rows("# Title\nText with **bold**, *italic*, ~~gone~~ and `code`.", 60, palette)
    assert texts(rows) == ["Title", "", "Text with bold, italic, gone and code."]
    assert style_of(rows, "Title").bold
    assert style_of(rows, "bold").bold
    assert style_of(rows, "italic").italic
    assert style_of(rows, "gone").strike
    assert style_of(rows, "code") == palette.code


def test_line_breaks_of_the_model_are_kept(palette: Palette) -> None:
    assert texts(markdown_rows("**Name:** x\n**Age:** 3", 40, palette)) == ["Name: x", "Age: 3"]


def test_lists_nest_number_and_tick(palette: Palette) -> None:
    source = "3. three\n1. four\n   - a\n     - b\n\n- [x] done\n- [ ] open"
    rows = markdown_rows(source, 40, palette)
    assert texts(rows) == ["3. three", "4. four", "   ◦ a", "     ▪ b", "", "☑ done", "☐ open"]


def test_loose_lists_breathe(palette: Palette) -> None:
    assert texts(markdown_rows("- a\n\n- b", 40, palette)) == ["• a", "", "• b"]


def test_list_items_hang(palette: Palette) -> None:
    assert texts(markdown_rows("- one two three four five six", 18, palette)) == ["• one two three", "  four five six"]


def test_quotes_have_a_bar_that_is_not_copied(palette: Palette) -> None:
    rows = markdown_rows("> a\n>\n> > b", 40, palette)
    assert texts(rows) == ["▎ a", "▎", "▎ ▎ b"]
    assert rows_text(rows) == "a\n\nb"


def test_html_is_shown_as_text(palette: Palette) -> None:
    rows = markdown_rows("<details>\n<b>x</b>\n</details>\n\na <i>b</i> c<br>d", 40, palette)
    assert texts(rows) == ["<details>", "<b>x</b>", "</details>", "", "a <i>b</i> c", "d"]


def test_links_carry_their_address_only_where_it_is_safe(palette: Palette) -> None:
    source = "[web](https://example.org/x) [odd](javascript:x) [file](file:///etc/passwd) https://example.org/y."
    rows = markdown_rows(source, 100, palette)
    assert style_of(rows, "web").link == "https://example.org/x"
    assert style_of(rows, "file").link is None
    assert style_of(rows, "/y").link == "https://example.org/y"
    assert rows[0].text.endswith("/y.")


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("[https://bank.com/x](https://evil.test/y)", "https://bank.com/x (evil.test)"),
        ("[**bank.com**](http://evil.test)", "bank.com (evil.test)"),
        ("[https://bank.com](https://bank.com@evil.test)", "https://bank.com (evil.test)"),
        ("[bank.com](https://bank.com.evil.test/)", "bank.com (bank.com.evil.test)"),
        ("[www.bank.com](https://BANK.com/x) <https://a.example>", "www.bank.com https://a.example"),
        ("[the bank](https://evil.test) [README.md](https://a.example) [](https://b.example)", "the bank README.md"),
        ("[http://bank.com:80](http://[::1]/)", "http://bank.com:80 ([::1])"),
        ("[https://bank.com](https://[::1/) [bank.com](mailto:a@bank.com)", "https://bank.com bank.com"),
    ],
)
def test_a_link_that_names_another_host_says_where_it_leads(source: str, shown: str, palette: Palette) -> None:
    assert markdown_rows(source, 100, palette)[0].text.rstrip() == shown


def test_references_may_be_defined_later(palette: Palette) -> None:
    assert style_of(markdown_rows("see [x]\n\n[x]: https://example.org", 40, palette), "x").link


def test_escapes_are_neutralised_everywhere(palette: Palette) -> None:
    evil = "\x1b]0;t\x07\u202e\ud800"
    source = f"# {evil}\n\n- {evil}\n\n`{evil}`\n\n```{evil}\n{evil}\n```\n\n|{evil}|\n|-|\n|{evil}|\n\n[{evil}](http://{evil})"
    for row in markdown_rows(source, 40, palette):
        assert row.text.isprintable()
        assert all((segment.style.link or "").isprintable() for segment in row.segments if segment.style)


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("width", [16, 40, 100])
def test_rows_fit(name: str, width: int, palette: Palette) -> None:
    assert all(row.cells <= width for row in markdown_rows(DOCUMENTS[name], width, palette))


@settings(deadline=None, max_examples=60)
@given(st.text(alphabet=st.sampled_from("#*_`>-|[]()! \n\t1.ab<日👩\\~:"), max_size=200), st.integers(8, 60))
def test_any_text_can_be_drawn_and_fits(source: str, width: int) -> None:
    assert all(row.cells <= width for row in markdown_rows(source, width, make_palette({})))


TABS = """# a\tb

a\tb `c\td` [e\tf](https://example.org "g\th") <i\tj> **k\tl** ![m\tn](x)

- a\tb
> a\tb

| a\tb | c |
| --- | --- |
| d\te | f |

<div>\ta</div>

```\tx
a\tb
```
"""


def test_no_tab_reaches_the_terminal(palette: Palette) -> None:
    rows = markdown_rows(TABS, 60, palette)
    assert not [row.text for row in rows if not row.text.isprintable()]
    assert "a   b" in texts(rows)


def test_deep_nesting_ends_somewhere(palette: Palette) -> None:
    assert all(row.cells <= 40 for row in markdown_rows("> " * 400 + "deep\n\n" + "- " * 400 + "x", 40, palette))


def test_code_blocks_come_back_as_written() -> None:
    assert code_blocks("a\n```py\nx = '\x1b'\n```\n\n    y\n") == ["x = '\x1b'\n", "y\n"]


def test_copy_of_a_paragraph_is_one_line_again(palette: Palette) -> None:
    source = "a paragraph with enough words to be wrapped several times at this width"
    rows = markdown_rows(source, 20, palette)
    assert len(rows) > 3
    assert rows_text(rows) == source


def test_pieces_end_with_a_newline() -> None:
    assert all(piece.endswith("\n") or "\u202e" in piece for piece in PIECES)


def test_an_item_stands_below_a_mark_that_takes_most_of_the_line(palette: Palette) -> None:
    rows = markdown_rows("1000000. lengthy words here\n", 12, palette)
    assert [row.text for row in rows] == ["1000000.", " lengthy", " words here"]

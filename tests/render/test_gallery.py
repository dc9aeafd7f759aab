"""What a text says is on screen, in a copy and in the HTML export, whole or streamed, wide or narrow."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tests.messages import assistant
from tests.render.test_stream import PLAIN, streamed
from tests.text.gallery import DISPLAYED, DOCUMENTS, INLINE, PROSE
from tui.chat.interchange.export import html_page
from tui.chat.store.store import SessionInfo
from tui.render.markdown import markdown_rows
from tui.render.rows import Row, rows_text

INFO = SessionInfo("s", "t", "p", "m", 0.0, 0.0)
CONTEXTS = ("{}", "As {} says, *really*.", "- item\n- {} in a list", "> {} quoted", "| a | b |\n|---|---|\n| {} | x |")


def bare(text: str) -> str:
    return re.sub(r"[\s▏▎│]", "", text)


def screen(rows: list[Row]) -> str:
    return bare("".join(row.text for row in rows))


def exported(source: str) -> str:
    page = html_page(INFO, [assistant(source, id="m1")], {})
    body = page[page.index("<main>") : page.index("</main>")]
    return unescape(re.sub(r"<[^>]*>", "", body))


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("formula", INLINE)
def test_a_formula_stands_as_it_was_written(formula: str, context: str) -> None:
    source = context.format(formula)
    for width in (90,) if "|---" in context else (24, 90):  # the lines of a wrapped cell stand beside other cells
        rows = markdown_rows(source, width, PLAIN)
        assert bare(formula) in screen(rows)
        assert bare(formula) in bare(rows_text(rows))
    assert formula in rows_text(markdown_rows(source, 120, PLAIN))
    assert formula in exported(source)
    assert "*really*" not in exported(source)


@pytest.mark.parametrize("before", ["", "text before\n", "text before\n\n"])
@pytest.mark.parametrize("formula", DISPLAYED)
def test_a_displayed_formula_stands_as_it_was_written(formula: str, before: str) -> None:
    source = f"{before}{formula}\n\nand *after*"
    for width in (24, 90):
        for rows in (markdown_rows(source, width, PLAIN), streamed(source, width, PLAIN, [1])):
            assert bare(formula) in screen(rows)
            assert bare(formula) in bare(rows_text(rows))
    assert formula in rows_text(markdown_rows(source, 90, PLAIN))
    assert formula in exported(source)
    assert "*after*" not in exported(source)


@pytest.mark.parametrize("text", PROSE)
def test_a_price_is_prose(text: str) -> None:
    words = re.sub(r"\*(\w)|(\w|\$\d)\*+", r"\1\2", text.replace("**", "").replace("\\", ""))
    assert bare(rows_text(markdown_rows(text, 90, PLAIN))) == bare(words)
    assert "<em>" in page_of(text) or "<strong>" in page_of(text)


def page_of(source: str) -> str:
    return html_page(INFO, [assistant(source, id="m1")], {})


@pytest.mark.parametrize(("source", "says"), DOCUMENTS)
def test_nothing_that_a_document_says_is_lost(source: str, says: str) -> None:
    for width in (24, 90):
        for rows in (markdown_rows(source, width, PLAIN), streamed(source + "\n", width, PLAIN, [3])):
            for place in (screen(rows), bare(rows_text(rows)), bare(exported(source))):
                position = 0
                for word in says.split():
                    position = place.find(word, position)
                    assert position >= 0, f"{word!r} of {says!r} is not in {place!r}"
                    position += len(word)


def test_the_gallery_is_large_enough() -> None:
    assert len(INLINE) + len(DISPLAYED) >= 60
    assert len(DOCUMENTS) >= 40


@pytest.mark.slow
@pytest.mark.parametrize(
    "hostile", ["$$x\n", "\\(x", "\\begin{align}\n", "$x ", "\\[ ", "| ` $ \\( ", "`` ` ", "| \\| "]
)
def test_openings_without_an_end_cost_what_their_length_costs(hostile: str) -> None:
    import time

    def seconds(count: int) -> float:
        begin = time.process_time()
        markdown_rows("| a | b |\n|---|---|\n" * ("|" in hostile) + hostile * count, 80, PLAIN)
        return time.process_time() - begin

    seconds(10)
    assert seconds(8_000) < 12 * max(0.05, seconds(2_000))

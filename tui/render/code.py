"""Code blocks: highlighted, without dropping lines; long lines continue under a mark."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from itertools import starmap
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style

from tui.render.palette import Palette
from tui.render.rows import MIN_WIDTH, Line, Row, Run, chop, room, text_row
from tui.text.clean import TAB_SIZE, clean_line

CONTINUED = "↪ "
"""Mark before the continuation of a long line. Never copied."""
MAX_HIGHLIGHT = 200_000
"""Characters; longer blocks are not highlighted, since a lexer on megabytes would block the screen."""


@lru_cache(maxsize=64)
def find_lexer(language: str) -> Any:
    """Pygments' lexer for a fence's language, or None."""
    if not language:
        return None
    lexers, errors = import_module("pygments.lexers"), import_module("pygments.util")
    try:
        return lexers.get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except (errors.ClassNotFound, ValueError):
        return None


def language_of(info: str) -> str:
    """The language in a fence's info string, cleaned for display: `python title=x` gives `python`."""
    word = clean_line(info).split(" ")[0].strip("{}.")
    return word[:24]


def highlight(source: str, language: str, palette: Palette) -> Iterator[list[Run]]:
    """The lines of `source` as styled runs; plain if the language is unknown or the block is huge."""
    lexer = find_lexer(language.lower()) if palette.syntax and len(source) <= MAX_HIGHLIGHT else None
    if lexer is None:
        for plain in source.split("\n"):
            yield [Run(plain, palette.block)] if plain else []
        return
    styles: dict[object, Style] = {}
    line: list[Run] = []
    for kind, text in lexer.get_tokens(source):
        style = styles.get(kind)
        if style is None:
            style = styles[kind] = _style_of(str(kind), palette)
        if "\n" not in text:
            if line and line[-1].style is style:  # merged: each run is written to the terminal with its colours
                line[-1] = Run(line[-1].text + text, style)
            else:
                line.append(Run(text, style))
            continue
        first, *others = text.split("\n")
        if first:
            line.append(Run(first, style))
        for other in others:
            yield line
            line = [Run(other, style)] if other else []
    yield line


# Token types whose newline ends a line rather than being part of a longer token.
_LINE_TOKENS = ("Token.Text", "Token.Comment.Single", "Token.Comment.Preproc", "Token.Generic")


def safe_cuts(source: str, info: str) -> list[int]:
    """Numbers of lines after which `source` can be cut without cutting a multi-line string or comment."""
    lexer = find_lexer(language_of(info).lower())
    if lexer is None:
        return list(range(1, source.count("\n") + 1))
    cuts: list[int] = []
    number = 0
    for kind, text in lexer.get_tokens(source):
        lines = text.count("\n")
        if lines and str(kind).startswith(_LINE_TOKENS) and (lines == 1 or str(kind).startswith("Token.Text")):
            cuts += range(number + 1, number + lines + 1)
        number += lines
    return cuts


def _style_of(kind: str, palette: Palette) -> Style:
    name = kind.removeprefix("Token.").removeprefix("Literal.")
    while name:
        if name in palette.syntax:
            return palette.syntax[name]
        name = name.rpartition(".")[0]
    return palette.block


def code_rows(
    source: str, info: str, width: int, palette: Palette, *, label: bool = True, closed: bool = True
) -> list[Row]:
    """A code block of `width` cells.

    `label`: begin with the language line (none for a continued piece of a streamed block). `closed`: end with the lower
    edge. `source` must be clean and without its final newline.
    """
    language = language_of(info)
    margin = [Segment(" ", palette.block)] if palette.boxed else [Segment("▏", palette.faint)]
    inner = max(MIN_WIDTH, width - 2)
    rows: list[Row] = []
    if label:
        rows += _top(language, width, margin, palette)
    if "\t" in source:
        source = source.expandtabs(TAB_SIZE)
    for line in highlight(source, language, palette):
        rows += _line_rows(line, inner, margin, palette)
    if closed and palette.boxed:
        rows.append(text_row("▀" * width, palette.edge))
    return rows


def _top(language: str, width: int, margin: list[Segment], palette: Palette) -> list[Row]:
    """The line with the language on the right; without one, half a line of background."""
    if not palette.boxed:
        return [Row((*margin, Segment(language, palette.block_muted)), 0, 0)] if language else []
    if not language:
        return [text_row("▄" * width, palette.edge)]
    word = set_cell_size(language, min(cell_len(language), max(0, width - 2)))
    return [text_row(f"{' ' * (width - cell_len(word) - 1)}{word} ", palette.block_muted)]


def _line_rows(line: list[Run], width: int, margin: list[Segment], palette: Palette) -> list[Row]:
    cells = sum([room(run.text) for run in line])
    pieces = [Line(line, cells)] if cells <= width else chop(line, width, max(2, width - cell_len(CONTINUED)))
    rows: list[Row] = []
    for number, piece in enumerate(pieces):
        mark = CONTINUED if number else ""
        segments = [*margin, Segment(mark, palette.block_muted)] if mark else [*margin]
        segments += starmap(Segment, piece.runs)
        if palette.boxed:
            spaces = width - cell_len(mark) - piece.cells + 1
            segments.append(Segment(" " * max(0, spaces), palette.block))
        start = 1 + len(mark)
        length = sum([len(run.text) for run in piece.runs])
        rows.append(Row(tuple(segments), start, start + length, ""))
    rows[-1].joint = "\n"
    return rows

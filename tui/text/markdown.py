r"""The Markdown parser for screen and export: CommonMark, GFM tables and strikethrough, and formulas.

Formulas are `$..$`, `$$..$$`, `\\(..\\)`, `\\[..\\]` and `\\begin{..}..\\end{..}`; markup in them is ignored. Prices
are told apart by Pandoc's rule: the opening `$` has no blank after it, the closing one no blank before it and no digit
after it. mdit-py-plugins (0.7) is not used: it treats `$x$ is 3` as prose (it checks the wrong character), lets a
formula extend beyond its list item, and is quadratic in unclosed formulas.

Nothing in a text is dropped: table cells beyond the header are kept, a `|` in code or in a formula does not end a cell,
and link definitions stay in the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

MAX_NESTING = 20
"""Maximal depth of nested blocks; deeper text is shown as it is. Only hostile answers exceed it."""

MAX_FORMULA = 4_000
"""Maximal characters of a formula, which bounds the cost of an unclosed one."""
MAX_FORMULA_LINES = 100

_CLOSERS = {"$$": "$$", "\\[": "\\]", "\\(": "\\)"}
_DOLLARS = re.compile(rf"\$(?![\s$])(?:[^$\\`]|\\.){{1,{MAX_FORMULA}}}+(?<!\s)\$(?![\d$])", re.DOTALL)
_PRICE = re.compile(r"\$\d[\d.,]*+(?:\*\*|[^\\{}^_$]*?\s[A-Za-z]{2,})")
_ENVIRONMENT = re.compile(r"\\begin\{([A-Za-z]+\*?)\}")
_BLOCK_OPENER = re.compile(r"\$\$|\\\[|\\begin\{[A-Za-z]+\*?\}")
_AFTER_BLOCK = re.compile(r"\s*[.,;:]?\s*(?:\([^()]*\)|\{[^{}]*\})?\s*[.,;:]?\s*")
_IN_ROW = re.compile(r"`+|\$\$?|\\.|\|")


def make_parser(options: Mapping[str, Any] | None = None) -> MarkdownIt:
    """A parser with markdown-it's `options`. Importing it takes longer than a frame."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING, **(options or {})}).enable(["table", "strikethrough"])
    parser.inline.ruler.before("escape", "formula", _inline_formula)
    parser.block.ruler.before(
        "fence", "formula_block", _block_formula, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    parser.block.ruler.at("reference", _definition)
    for kind in ("formula", "formula_block", "definition"):
        parser.add_render_rule(kind, _html)
    return parser


# --- formulas


def _inline_formula(state: StateInline, silent: bool) -> bool:
    end = formula_end(state.src, state.pos)
    if end < 0 or end > state.posMax:
        return False
    if not silent:
        state.push("formula", "math", 0).content = state.src[state.pos : end]
    state.pos = end
    return True


def formula_end(text: str, start: int) -> int:
    """The end of the formula that begins at `start`; -1 if there is none."""
    if text[start] not in "$\\":
        return -1
    if text[start] == "$" and not text.startswith("$$", start):
        match = _DOLLARS.match(text, start)
        return match.end() if match and not _PRICE.match(text, start) else -1
    opener = text[start : start + 2]
    closer = _CLOSERS.get(opener, "")
    if not closer and (match := _ENVIRONMENT.match(text, start)):
        opener, closer = match.group(), f"\\end{{{match.group(1)}}}"
    if not closer:
        return -1
    first = start + len(opener)
    end = text.find(closer, first, first + MAX_FORMULA)
    return end + len(closer) if end >= 0 and text[first:end].strip() else -1


def _block_formula(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    match = None if state.is_code_block(start) else _BLOCK_OPENER.match(_line(state, start))
    last = _last_formula_line(state, start, end, match.group()) if match is not None else -1
    if last < 0:
        return False
    if not silent:
        token = state.push("formula_block", "math", 0)
        token.block, token.map = True, [start, last + 1]
        token.content = state.getLines(start, last + 1, state.sCount[start], False)
        state.line = last + 1
    return True


def _last_formula_line(state: StateBlock, start: int, end: int, opener: str) -> int:
    """The line that closes the displayed formula begun in line `start`; -1 if there is none.

    If more text could change that, `state.env["open_formula"]` becomes the first such line.
    """
    closer = _CLOSERS.get(opener) or opener.replace("begin", "end", 1)
    text, inner, last = _line(state, start)[len(opener) :], 0, -1
    for number in range(start, start + MAX_FORMULA_LINES):
        if number > start:
            if number >= end or (opener == "$$" and state.isEmpty(number)):
                break
            if state.sCount[number] < state.blkIndent and not state.isEmpty(number):
                break
            text = _line(state, number)
        if opener not in _CLOSERS:  # environments of the same name may be nested
            inner += text.count(opener)
        if text.count(closer) > inner:
            at = text.rindex(closer) if inner else text.index(closer)
            if _AFTER_BLOCK.fullmatch(text[at + len(closer) :]):  # otherwise it is part of a paragraph
                last = number
            break
        inner -= text.count(closer)
    if number >= state.src.count("\n"):
        state.env["open_formula"] = min(start, state.env.get("open_formula", start))
    return last


def _html(
    _self: RendererHTML, tokens: list[Token], index: int, _options: Mapping[str, Any], _env: Mapping[str, Any]
) -> str:
    from markdown_it.common.utils import escapeHtml

    kind, text = tokens[index].type, escapeHtml(tokens[index].content)
    if kind == "formula":
        return f'<span class="formula">{text}</span>'
    return f'<pre class="{kind.removesuffix("_block")}">{text}</pre>\n'


# --- link definitions


def _definition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """markdown-it's rule, plus a token: a definition without a reference would vanish, and its address with it."""
    from markdown_it.rules_block import reference

    if not reference(state, start, end, silent):
        return False
    if not silent:
        token = state.push("definition", "", 0)
        token.block, token.map = True, [start, state.line]
        token.content = state.getLines(start, state.line, state.sCount[start], False)
    return True


# --- tables


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """markdown-it's rule, but with the cells of `split_cells`: it drops those beyond the header, and splits in code."""
    from markdown_it.rules_block import table

    first = len(state.tokens)
    if not table(state, start, end, silent) and not (
        "|" in _line(state, start) and _table_below_masked_header(state, start, end, silent)
    ):
        return False
    tokens, state.tokens[first:] = state.tokens[first:], []
    columns = sum(token.type == "th_open" for token in tokens)
    cells: list[str] = []  # of the present row, from the next one on
    for token in tokens:
        if token.type == "tr_open" and token.map is not None:
            row = token.map
            cells = split_cells(_line(state, row[0]).strip(), columns)
        elif token.type == "inline":
            token.content = cells.pop(0) if cells else ""
        elif token.type == "tr_close":
            for cell in cells:
                state.push("td_open", "td", 1)
                inline = state.push("inline", "", 0)
                inline.map, inline.content, inline.children = row, cell, []
                state.push("td_close", "td", -1)
        state.tokens.append(token)
    return True


def _table_below_masked_header(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """markdown-it's rule once more, with each `|` of the header that is in code or in a formula replaced."""
    from markdown_it.rules_block import table

    source, header = state.src, list(_line(state, start))
    everywhere, outside = _bars("".join(header))
    if len(everywhere) == len(outside):
        return False
    for at in set(everywhere) - set(outside):
        header[at] = "x"
    begin = state.bMarks[start] + state.tShift[start]
    state.src = source[:begin] + "".join(header) + source[begin + len(header) :]
    try:
        return table(state, start, end, silent)
    finally:
        state.src = source


def split_cells(row: str, wanted: int) -> list[str]:
    """The cells of a table row.

    GFM splits at every `|` without a backslash, in code too. If that does not give the `wanted` number of cells, a `|`
    in code or in a formula belongs to its cell.
    """
    everywhere, outside = _bars(row)
    cells = _cut(row, everywhere)
    if len(cells) != wanted and len(outside) < len(everywhere):
        with_whole_spans = _cut(row, outside)
        if len(with_whole_spans) >= wanted:
            return with_whole_spans
    return cells


def _bars(row: str) -> tuple[list[int], list[int]]:
    """Where a row has a `|` without a backslash; and which of them are outside of code and formulas."""
    ends: dict[int, int] = {}  # of the code that begins at a run of backticks: after the next run as long
    later: dict[int, int] = {}
    for run in reversed(list(re.finditer("`+", row))):
        ends[run.start()] = later.get(len(run.group()), -1)
        later[len(run.group())] = run.end()
    everywhere, outside = [], []
    whole = 0  # end of the skipped code or formula
    for match in _IN_ROW.finditer(row):
        mark, start = match.group(), match.start()
        if mark == "|":
            everywhere.append(start)
            if start >= whole:
                outside.append(start)
        elif start >= whole:
            whole = ends[start] if mark[0] == "`" else formula_end(row, start)
    return everywhere, outside


def _cut(row: str, bars: list[int]) -> list[str]:
    edges = [-1, *bars, len(row)]
    cells = [row[left + 1 : right].strip() for left, right in pairwise(edges)]
    if cells and not cells[0]:
        cells.pop(0)
    if cells and not cells[-1]:
        cells.pop()
    return [_without_escapes(cell) if "\\|" in cell else cell for cell in cells]


def _without_escapes(cell: str) -> str:
    r"""`cell` with `\\|` as `|`, except in formulas, where it is a norm."""
    pieces, position = [], 0
    while position < len(cell):
        end = formula_end(cell, position) if cell[position] in "$\\" else -1
        if end > 0:
            pieces.append(cell[position:end])
            position = end
        elif cell.startswith("\\|", position):
            pieces.append("|")
            position += 2
        else:
            pieces.append(cell[position])
            position += 1
    return "".join(pieces)


def _line(state: StateBlock, number: int) -> str:
    """A line without the marks and indent of its containers."""
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]

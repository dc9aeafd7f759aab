"""Streaming Markdown: finished blocks are frozen, only the last open one is drawn again.

The cost of an update depends on the open block alone. A long open block is cut: a list between items, a fence and a
table between lines. What can't be cut (a paragraph, a quotation, one line) goes on without markup beyond `LONG`
characters. Frozen rows are those of the whole document. If later text invalidates them (a list turns out loose, a table
gets a wider cell, a link is defined below its use, the rest without markup gets long), the renderer sets `stale`, and
the caller draws from the beginning. Only the colours of a long code block may differ from those of the whole, if its
lexer carries state across a cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from markdown_it.common.utils import normalizeReference
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tui.render.code import code_rows, safe_cuts
from tui.render.markdown import WHOLE, Piece, block_end, block_rows, is_loose, parse, read_table
from tui.render.palette import Palette
from tui.render.rows import Line, Row, Run, blank_row, wrap
from tui.render.tables import Extents, measure, table_layout
from tui.text.clean import TAB_SIZE, clean_text
from tui.text.markdown import MAX_FORMULA_LINES, formula_end, formula_opener, may_hold_blank_lines

if TYPE_CHECKING:
    from markdown_it.token import Token

CUT_CHARS = 1_500
"""Characters of an open block beyond which it is cut."""
CUT_LINES = 24
"""Lines of an open block beyond which it is cut."""
LONG = 4_000
"""Characters of an open block (of a fence: of its last line) beyond which what follows is drawn without markup."""
REDRAWN = 4
"""All is drawn again once the part without markup is this fraction of the open block: in total, linear in its size."""
KEEP_LINES = 6
"""Lines of a cut fence or table that stay open."""
_LABEL = re.compile(r"\[((?:[^\[\]\\]|\\.){1,999})\]")
# A last line that may become a link definition (CommonMark 4.7).
_HALF_DEFINITION = re.compile(
    r"""[\s>*+\-\d.)]*+\[[^\[\]\n]*+\]:\s*+(?:<[^>\n]*+>?+|\S*+)\s*+(?:(?<=\s)["'(][^\n]*+)?$"""
)
_VERBATIM = frozenset({"fence", "code_block", "html_block", "formula_block"})
_LISTS = frozenset({"bullet_list_open", "ordered_list_open"})


class StreamRenderer:
    """Draws one growing Markdown text at a fixed width.

    Once `stale`, earlier final rows are invalid: pass all of the text to a new renderer at once.
    """

    def __init__(self, width: int, palette: Palette) -> None:
        self._width = width
        self._palette = palette
        self.stale = False
        self._arrived: list[str] = []
        self._pending = ""  # clean source of the open block
        self._references: dict[str, Any] = {}  # link definitions above the open block
        self._defined: set[str] = set()  # labels of all definitions so far
        self._used: set[str] = set()  # labels above the open block that may be references
        self._piece = WHOLE
        self._extents: Extents | None = None  # of a table that was cut
        self._glued = True  # no blank line before what comes next
        self.unmarked: _Unmarked | None = None  # the end of a long block

    def feed(self, text: str) -> None:
        """Add a piece of the text. Costs nothing until `update`."""
        self._arrived.append(text)

    def update(self) -> tuple[list[Row], list[Row]]:
        """Rows that are final now (to be appended to earlier ones), and the rows of the open block."""
        self._take()
        if self.unmarked is not None:
            text, self._pending = self._pending, ""
            *final, last = self.unmarked.more(text)
            self.stale = self.stale or ("\n" in text and self.unmarked.is_long)
            return final, [last]
        tokens = self._parse()
        self.stale = self.stale or not self._continues(tokens)
        frozen: list[Row] = []
        starts = _block_starts(tokens)
        certain = [start for start in self._decided(tokens, starts) if self._line_complete(tokens[start])]
        if len(certain) > 1:
            for begin, end in pairwise(certain):
                frozen += self._spaced(block_rows(tokens[begin:end], self._width, self._palette, self._piece))
                self._piece, self._extents, self._glued = WHOLE, None, False
            self._drop_lines(_first_line(tokens[certain[-1]]))
            tokens, starts = self._parse(), starts[starts.index(certain[-1]) :]
        if len(starts) == 1 and (rows := self._cut(tokens)) is not None:
            frozen += self._spaced(rows)
            self._glued = True
            tokens = self._parse()
        tail = self._tail(tokens)
        fence = bool(tokens) and tokens[0].type == "fence"
        if tail and len(self._pending) - (self._pending.rfind("\n") if fence else 0) > LONG:
            end = max((number for number, row in enumerate(tail) if row.copy), default=0)
            self.unmarked, self._pending = _Unmarked(self._pending, tail[end], self._width), ""
            return [*frozen, *tail[:end]], [tail[end]]
        return frozen, tail

    def _take(self) -> None:
        text = "".join(self._arrived)
        unfinished = "\r" if text.endswith("\r") else ""  # half of a CR LF, perhaps
        self._pending += clean_text(text.removesuffix("\r"))
        line = self._pending.rfind("\n") + 1
        if self.unmarked is None and not self._pending.strip():
            self._pending, line = self._pending[line:][:LONG], 0
        if self.unmarked is None and "]:" in self._pending[line:] and _HALF_DEFINITION.match(self._pending, line):
            self._pending, unfinished = self._pending[:line], self._pending[line:] + unfinished
        self._arrived = [unfinished] if unfinished else []

    def _parse(self) -> list[Token]:
        env = {"references": dict(self._references)}
        tokens = parse(self._pending, env)
        new = env["references"].keys() - self._defined
        self.stale = self.stale or not self._used.isdisjoint(new)
        self._defined |= new
        return tokens

    def _continues(self, tokens: Sequence[Token]) -> bool:
        """Whether the open block still is of the kind that its beginning was drawn as."""
        piece = self._piece
        if piece is WHOLE or not tokens:
            return True
        block = tokens[: block_end(tokens, 0)]
        kind = block[0].type
        if piece.number is not None:
            return kind in _LISTS and (piece.loose or not is_loose(block))
        if piece.layout is not None and self._extents is not None and kind == "table_open":
            table = read_table(block, self._palette)
            layout = table_layout(table, self._extents.with_others(measure(table)), self._width, self._palette)
            return layout.widths == piece.layout.widths and layout.airy <= piece.layout.airy
        return kind == "fence" and not piece.label

    def _tail(self, tokens: Sequence[Token]) -> list[Row]:
        rows: list[Row] = []
        index, glued, piece = 0, self._glued, self._piece
        while index < len(tokens):
            end = block_end(tokens, index)
            block = block_rows(tokens[index:end], self._width, self._palette, piece)
            if block and not glued:
                rows.append(blank_row())
            rows += block
            index, piece = end, WHOLE
            glued = glued and not block
        return rows

    def _spaced(self, rows: list[Row]) -> list[Row]:
        return rows if self._glued or not rows else [blank_row(), *rows]

    def _decided(self, tokens: Sequence[Token], starts: list[int]) -> list[int]:
        """The blocks before which no line can become part of an open formula."""
        if not any(opener in self._pending for opener in ("$$", "\\[", "\\begin{")):
            return starts
        lines = self._pending.split("\n")
        fixed = [token.map for token in tokens if token.type in _VERBATIM and token.map]
        verbatim = {line for first, end in fixed for line in range(first, end)}
        openers = [number for number in range(len(lines)) if number not in verbatim and _may_be_formula(lines, number)]
        return [start for start in starts if _first_line(tokens[start]) <= openers[0]] if openers else starts

    def _line_complete(self, token: Token) -> bool:
        """Whether the block's first line is complete: before that the kind of block may change."""
        return _first_line(token) < self._pending.count("\n")

    def _drop_lines(self, count: int) -> None:
        position = 0
        for _ in range(count):
            position = self._pending.index("\n", position) + 1
        dropped = self._pending[:position]
        if "[" in dropped:
            self._used.update(normalizeReference(match.group(1)) for match in _LABEL.finditer(dropped))
        if "]:" in dropped:
            env = {"references": self._references}
            parse(dropped, env)
            self._references = env["references"]
        self._pending = self._pending[position:]

    def _cut(self, tokens: Sequence[Token]) -> list[Row] | None:
        """Freeze the first part of a long open block; None if it is short or can't be cut safely."""
        first = tokens[0]
        if first.type == "fence":
            return self._cut_fence(first)
        if len(self._pending) < CUT_CHARS and self._pending.count("\n") < CUT_LINES:
            return None
        if first.type in _LISTS:
            return self._cut_list(tokens)
        return self._cut_table(tokens) if first.type == "table_open" else None

    def _cut_fence(self, fence: Token) -> list[Row] | None:
        lines = fence.content.split("\n")
        if len(lines) <= CUT_LINES or _opening(self._pending).startswith(" "):
            return None
        count = len(lines) - KEEP_LINES
        safe = [cut for cut in safe_cuts(fence.content, fence.info) if cut <= count]
        if safe:
            count = safe[-1]
        elif len(lines) < 4 * CUT_LINES:
            return None  # inside a long string: wait for its end, up to a limit
        opener = _opening(self._pending)
        self._drop_lines(count + 1)
        self._pending = f"{opener}\n{self._pending}"
        source = "\n".join(lines[:count])
        rows = code_rows(source, fence.info, self._width, self._palette, label=self._piece.label, closed=False)
        self._piece = replace(WHOLE, label=False)
        return rows

    def _cut_list(self, tokens: Sequence[Token]) -> list[Row] | None:
        items = [index for index, token in enumerate(tokens) if token.type == "list_item_open" and token.level == 1]
        certain = [index for index in items if self._line_complete(tokens[index])]
        if len(certain) < 2:
            return None
        last = certain[-1]
        head = [*tokens[:last], tokens[-1]]
        loose = self._piece.loose or is_loose(tokens)
        number = self._piece.number if self._piece.number is not None else int(tokens[0].attrs.get("start", 1))
        rows = block_rows(head, self._width, self._palette, replace(self._piece, loose=loose))
        self._drop_lines(_first_line(tokens[last]))
        self._piece = Piece(number=number + len(certain) - 1, loose=loose)
        return [*rows, blank_row()] if loose else rows

    def _cut_table(self, tokens: Sequence[Token]) -> list[Row] | None:
        body = [token for token in tokens if token.type == "tr_open" and _first_line(token) >= 2]
        if len(body) <= (KEEP_LINES if len(self._pending) > LONG // 2 else 3 * KEEP_LINES):
            return None
        table = read_table(tokens, self._palette)
        extents = measure(table)
        self._extents = extents = extents.with_others(self._extents) if self._extents else extents
        layout = self._piece.layout or table_layout(table, extents, self._width, self._palette)
        count = len(body) - KEEP_LINES
        index = next(number for number, token in enumerate(tokens) if token is body[count])
        piece = replace(self._piece, layout=layout)
        rows = block_rows([*tokens[:index], tokens[-1]], self._width, self._palette, piece)
        head = "\n".join(self._pending.split("\n", 2)[:2])
        self._drop_lines(_first_line(body[count]))
        self._pending = f"{head}\n{self._pending}"
        self._piece = Piece(layout=layout, head=False)
        return rows


class _Unmarked:
    """What follows the first `LONG` characters of an open block, in rows that look like the last one so far."""

    def __init__(self, block: str, row: Row, width: int) -> None:
        self._lead, left = list[Segment](), row.start
        for text, style, _ in row.segments:
            if left > 0:
                self._lead.append(Segment(text[:left], style))
            left -= len(text)
        self._text = row.copy + ("\n" if block.endswith("\n") else "")
        self._style = next((style for text, style, _ in reversed(row.segments) if style and text.strip()), Style.null())
        self._fill = row.segments[-1].style if row.end < len(row.text) else None
        self._start, self._width = row.start, width - cell_len(row.text[: row.start]) - (self._fill is not None)
        self._left = len(block) // REDRAWN  # characters until all is to be drawn again

    @property
    def is_long(self) -> bool:
        """Whether all is to be drawn again at the next line's end."""
        return self._left <= 0

    def more(self, text: str) -> list[Row]:
        """Add `text`; returns the rows from the last one so far, of which all but the last are final."""
        self._left -= len(text)
        lines = wrap([Run((self._text + text).expandtabs(TAB_SIZE), self._style)], self._width)
        self._text = "".join([run.text for run in lines[-1].runs])
        return [self._row(line) for line in lines]

    def _row(self, line: Line) -> Row:
        text = "".join([run.text for run in line.runs])
        fill = [Segment(" " * (self._width - line.cells + 1), self._fill)] if self._fill is not None else []
        segments = (*self._lead, Segment(text, self._style), *fill)
        return Row(segments, self._start, self._start + len(text), line.joint)


def _may_be_formula(lines: Sequence[str], number: int) -> bool:
    """Whether a line may become the beginning of a displayed formula."""
    line = lines[number].lstrip(" ")
    opener = formula_opener(line)
    if not opener or formula_end(line, 0) > 0:
        return False
    if len(lines) - number > MAX_FORMULA_LINES:
        return False
    return may_hold_blank_lines(opener) or all(line.strip() for line in lines[number:-1])


def _opening(text: str) -> str:
    """`text` up to its first newline."""
    return text.split("\n", 1)[0]


def _first_line(token: Token) -> int:
    return token.map[0] if token.map else 0


def _block_starts(tokens: Sequence[Token]) -> list[int]:
    starts: list[int] = []
    index = 0
    while index < len(tokens):
        starts.append(index)
        index = block_end(tokens, index)
    return starts

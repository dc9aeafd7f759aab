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
from typing import TYPE_CHECKING, Any

from tui.render.code import code_rows, safe_cuts
from tui.render.markdown import WHOLE, Piece, block_rows, blocks_rows, is_loose, parse, read_table, split_blocks
from tui.render.palette import Palette
from tui.render.rows import Row, blank_row, plain_rows
from tui.render.tables import Extents, measure, table_layout
from tui.text.clean import clean_text

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
# A last line that may become a link definition (CommonMark 4.7).
_HALF_DEFINITION = re.compile(
    r"""[\s>*+\-\d.)]*+\[[^\[\]\n]*+\]:\s*+(?:<[^>\n]*+>?+|\S*+)\s*+(?:(?<=\s)["'(][^\n]*+)?$"""
)
_LABEL = re.compile(r"\[((?:[^\[\]\\]|\\.){1,999})\]")
_LISTS = frozenset({"bullet_list_open", "ordered_list_open"})


class StreamRenderer:
    """Draws one growing Markdown text at a fixed width.

    Once `stale`, earlier final rows are invalid: pass all of the text to a new renderer at once.
    """

    def __init__(self, width: int, palette: Palette) -> None:
        self._width = width
        self._palette = palette
        self.stale = False
        self.unmarked = False  # whether the end of the open block is drawn without markup
        self._unfinished = ""  # the end of what arrived that the next piece may change
        self._pending = ""  # clean source of the open block; what follows if `unmarked`
        self._references: dict[str, Any] = {}  # link definitions above the open block
        self._defined: set[str] = set()  # labels of all definitions so far
        self._used: set[str] = set()  # labels above the open block that may be references
        self._open_formula = 0  # the first line that may begin a formula
        self._piece = WHOLE
        self._extents: Extents | None = None  # of a table that was cut
        self._glued = True  # no blank line before what comes next
        self._last_line = ""  # of what is drawn without markup
        self._until_redrawn = 0  # characters

    def update(self, text: str) -> tuple[list[Row], list[Row]]:
        """Add a piece of the text.

        Returns the rows that are final now (to be appended to earlier ones), and the rows of the open block.
        """
        self._append(self._unfinished + text)
        if self.unmarked:
            return self._without_markup()
        tokens = self._parse()
        self.stale = self.stale or not self._continues(tokens)
        final: list[Row] = []
        blocks = list(split_blocks(tokens))
        certain = [block for block in blocks if self._is_certain(block[0])]
        if len(certain) > 1:
            final = self._rows([token for block in certain[:-1] for token in block])
            self._piece, self._extents, self._glued = WHOLE, None, False
            self._drop_lines(_first_line(certain[-1][0]))
            tokens = self._parse()
            blocks = blocks[len(certain) - 1 :]
        if len(blocks) == 1 and (rows := self._cut(tokens)) is not None:
            final += self._spaced(rows)
            self._glued = True
            tokens = self._parse()
        tail = self._rows(tokens)
        line = self._pending.rfind("\n") if tokens and tokens[0].type == "fence" else 0
        if tail and len(self._pending) - line > LONG:
            last = max((number for number, row in enumerate(tail) if row.copy), default=0)
            tail[last].joint = "\n" if self._pending.endswith("\n") else ""
            self.unmarked, self._until_redrawn, self._pending = True, len(self._pending) // REDRAWN, ""
            return [*final, *tail[: last + 1]], []
        return final, tail

    def _without_markup(self) -> tuple[list[Row], list[Row]]:
        """The rows after the first `LONG` characters of an open block."""
        text, self._pending = self._pending, ""
        self._until_redrawn -= len(text)
        self.stale = self.stale or ("\n" in text and self._until_redrawn <= 0)
        *final, last = plain_rows(self._last_line + text, self._palette.base, self._width)
        self._last_line = last.text
        return final, [last]

    def _append(self, text: str) -> None:
        self._unfinished = "\r" if text.endswith("\r") else ""  # half of a CR LF, perhaps
        self._pending += clean_text(text.removesuffix("\r"))
        line = self._pending.rfind("\n") + 1
        if not self.unmarked and not self._pending.strip():
            self._pending, line = self._pending[line:][:LONG], 0
        if not self.unmarked and "]:" in self._pending[line:] and _HALF_DEFINITION.match(self._pending, line):
            self._pending, self._unfinished = self._pending[:line], self._pending[line:] + self._unfinished

    def _parse(self) -> list[Token]:
        env: dict[str, Any] = {"references": dict(self._references)}
        tokens = parse(self._pending, env)
        new = env["references"].keys() - self._defined
        self.stale = self.stale or not self._used.isdisjoint(new)
        self._defined |= new
        self._open_formula = env.get("open_formula", len(self._pending))
        return tokens

    def _continues(self, tokens: Sequence[Token]) -> bool:
        """Whether the open block still is of the kind that its beginning was drawn as."""
        piece = self._piece
        if piece is WHOLE or not tokens:
            return True
        block = next(split_blocks(tokens))
        kind = block[0].type
        if piece.number is not None:
            return kind in _LISTS and (piece.loose or not is_loose(block))
        if piece.layout is not None and self._extents is not None and kind == "table_open":
            table = read_table(block, self._palette)
            layout = table_layout(table, self._extents.with_others(measure(table)), self._width, self._palette)
            return layout.widths == piece.layout.widths and layout.airy <= piece.layout.airy
        return kind == "fence" and not piece.label

    def _rows(self, tokens: Sequence[Token]) -> list[Row]:
        return self._spaced(blocks_rows(tokens, self._width, self._palette, self._piece))

    def _spaced(self, rows: list[Row]) -> list[Row]:
        return rows if self._glued or not rows else [blank_row(), *rows]

    def _is_certain(self, token: Token) -> bool:
        """Whether a block certainly begins here: its line (of a table two) is complete, and not a part of a formula."""
        line = _first_line(token)
        return line < self._open_formula and line + (token.type == "table_open") < self._pending.count("\n")

    def _drop_lines(self, count: int) -> None:
        position = 0
        for _ in range(count):
            position = self._pending.index("\n", position) + 1
        dropped = self._pending[:position]
        if "[" in dropped:
            from markdown_it.common.utils import normalizeReference

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
        certain = [index for index in items if _first_line(tokens[index]) < self._pending.count("\n")]
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
        extents = measure(table).with_others(self._extents) if self._extents else measure(table)
        layout = self._piece.layout or table_layout(table, extents, self._width, self._palette)
        count = len(body) - KEEP_LINES
        index = next(number for number, token in enumerate(tokens) if token is body[count])
        frozen = [*tokens[:index], tokens[-1]]
        rows = block_rows(frozen, self._width, self._palette, replace(self._piece, layout=layout))
        extents = measure(read_table(frozen, self._palette))  # the others may still turn out to be no rows
        self._extents = extents.with_others(self._extents) if self._extents else extents
        head = "\n".join(self._pending.split("\n", 2)[:2])
        self._drop_lines(_first_line(body[count]))
        self._pending = f"{head}\n{self._pending}"
        self._piece = Piece(layout=layout, head=False)
        return rows


def _opening(text: str) -> str:
    """`text` up to its first newline."""
    return text.split("\n", 1)[0]


def _first_line(token: Token) -> int:
    return token.map[0] if token.map else 0

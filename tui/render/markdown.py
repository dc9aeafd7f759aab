"""Markdown as rows: headings, paragraphs, lists, quotes, tables, code; and inline Markdown as styled runs.

`stream.py` does the same for text that is still arriving.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tui.render.code import code_rows
from tui.render.palette import Palette
from tui.render.rows import MIN_WIDTH, Row, Run, blank_row, clear_gradually, plain_rows, prefixed, text_row, wrap
from tui.render.tables import Align, Layout, Table, table_rows
from tui.text.clean import TAB_SIZE, clean_text, clean_url
from tui.text.markdown import make_parser

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


@cache
def parser() -> MarkdownIt:
    """The parser for all Markdown on screen, created on first use."""
    return make_parser()


def parse(source: str, references: MutableMapping[str, Any] | None = None) -> list[Token]:
    """The tokens of clean Markdown; `references` collects link definitions over several calls."""
    return parser().parse(source, {} if references is None else references)


def markdown_rows(source: str, width: int, palette: Palette) -> list[Row]:
    """`source` (any text, untrusted) as rows of at most `width` cells."""
    tokens = parse(clean_text(source))
    rows = blocks_rows(tokens, width, palette)
    clear_gradually(tokens)
    return rows


def code_blocks(source: str) -> list[str]:
    """The contents of the code blocks in `source`, in order, unchanged (for copying)."""
    return [token.content for token in parse(source) if token.type in ("fence", "code_block")]


_TASK = re.compile(r"\[([ xX])\]\s+")
_BULLETS = ("•", "◦", "▪")
_MIN_INNER = 16  # cells; narrower nested blocks are not indented further


@dataclass(frozen=True, slots=True)
class Piece:
    """How a block that continues an earlier piece of itself is drawn (only while streaming).

    `number`: of the first item of a list. `loose`: a list with blank lines between items. `layout`: of a table; `head`
    is False if its header was drawn already. `label`: False for a fence whose language line was drawn already.
    """

    number: int | None = None
    loose: bool = False
    layout: Layout | None = None
    label: bool = True
    head: bool = True


WHOLE = Piece()


def split_blocks(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The sibling blocks in `tokens`, each from its opening to its closing token."""
    start = depth = 0
    for index, token in enumerate(tokens):
        depth += token.nesting
        if depth <= 0:
            yield tokens[start : index + 1]
            start, depth = index + 1, 0
    if start < len(tokens):
        yield tokens[start:]


def blocks_rows(
    tokens: Sequence[Token], width: int, palette: Palette, piece: Piece = WHOLE, *, tight: bool = False, depth: int = 0
) -> list[Row]:
    """The rows of sibling blocks, a blank line between them unless `tight`. The first may be a `piece` of one."""
    rows: list[Row] = []
    for block in split_blocks(tokens):
        drawn = block_rows(block, width, palette, piece, tight=tight, depth=depth)
        if drawn and rows and not (tight and block[0].type in _TIGHT):
            rows.append(blank_row())
        rows += drawn
        piece = WHOLE
    return rows


_TIGHT = frozenset({"paragraph_open", "bullet_list_open", "ordered_list_open", "fence"})


def block_rows(
    tokens: Sequence[Token], width: int, palette: Palette, piece: Piece = WHOLE, *, tight: bool = False, depth: int = 0
) -> list[Row]:
    """The rows of one block, given as its tokens from the opening to the closing one."""
    first = tokens[0]
    match first.type:
        case "paragraph_open":
            return [line.row() for line in wrap(inline_runs(tokens[1].children or (), palette), width)]
        case "heading_open":
            return _heading(tokens, width, palette)
        case "fence" | "code_block":
            return code_rows(first.content.removesuffix("\n"), first.info, width, palette, label=piece.label)
        case "bullet_list_open" | "ordered_list_open":
            return _list(tokens, width, palette, piece, depth)
        case "blockquote_open":
            bar = (Segment("▎ ", palette.quote),)
            quiet = replace(palette, base=palette.muted) if not palette.dimmed else palette
            inner = max(MIN_WIDTH, width - 2)
            return prefixed(blocks_rows(tokens[1:-1], inner, quiet, depth=depth) or [blank_row()], bar, bar)
        case "table_open":
            table = read_table(tokens, palette)
            return table_rows(table, width, palette, layout=piece.layout, head=piece.head)
        case "hr":
            return [text_row("─" * width, palette.faint)]
        case "formula_block":
            return plain_rows(first.content.rstrip("\n"), palette.code, width)
        case "definition" | "html_block":
            return plain_rows(first.content.rstrip("\n"), palette.muted, width)
        case _ if first.content:
            return plain_rows(first.content.rstrip("\n"), palette.base, width)
        case _:
            return []


def _heading(tokens: Sequence[Token], width: int, palette: Palette) -> list[Row]:
    level = int(tokens[0].tag[1:])
    style = palette.heading if level <= 2 else palette.strong
    if level == 1:
        style += Style(underline=True)
    elif level >= 4:
        style += Style(italic=True)
    return [line.row() for line in wrap(inline_runs(tokens[1].children or (), palette, style), width)]


def is_loose(tokens: Sequence[Token]) -> bool:
    """Whether the list in these tokens has blank lines between items (CommonMark 5.3)."""
    level = tokens[0].level + 2
    return any(token.type == "paragraph_open" and not token.hidden and token.level == level for token in tokens)


def _list(tokens: Sequence[Token], width: int, palette: Palette, piece: Piece, depth: int) -> list[Row]:
    ordered = tokens[0].type == "ordered_list_open"
    first = int(tokens[0].attrs.get("start", 1)) if piece.number is None else piece.number
    loose = piece.loose or is_loose(tokens)
    rows: list[Row] = []
    for number, block in enumerate(split_blocks(tokens[1:-1]), first):
        item, task = _task(block[1:-1])
        box = "" if task is None else "☑" if task else "☐"
        mark = f"{number}. {box}".rstrip() if ordered else box or _BULLETS[depth % len(_BULLETS)]
        indent = cell_len(mark) + 1
        inner = width - indent
        rest: tuple[Segment, ...] = (Segment(" " * indent, palette.base),)
        if inner < _MIN_INNER:
            inner, rest = max(MIN_WIDTH, width - 1), (Segment(" ", palette.base),)
        body = blocks_rows(item, inner, palette, tight=not loose, depth=depth + 1) or [blank_row()]
        if rows and loose:
            rows.append(blank_row())
        lead = body[0]
        if inner != width - indent and cell_len(mark) + 1 + lead.cells > width:
            rows += [Row((Segment(mark, palette.bullet),)), *prefixed(body, rest, rest)]
        else:
            marked = prefixed(body, (Segment(mark, palette.bullet), Segment(" ", palette.base)), rest)
            if lead.start == 0:
                marked[0].start = 0  # the mark is copied: a list without marks is another text
            rows += marked
    return rows


def _task(item: Sequence[Token]) -> tuple[Sequence[Token], bool | None]:
    """An item without its task mark (GFM 5.3), and whether that was ticked; None if there is none."""
    if len(item) < 2 or item[0].type != "paragraph_open" or not item[1].children:
        return item, None
    lead = item[1].children[0]
    mark = _TASK.match(lead.content) if lead.type == "text" else None
    if mark is None:
        return item, None
    text = lead.copy(content=lead.content[mark.end() :])
    inline = item[1].copy(children=[text, *item[1].children[1:]])
    return [item[0], inline, *item[2:]], mark.group(1) != " "


_ALIGNS: Mapping[str, Align] = {"text-align:right": "right", "text-align:center": "center"}


def read_table(tokens: Sequence[Token], palette: Palette) -> Table:
    """A table's tokens as cells of runs."""
    head: list[list[Run]] = []
    body: list[list[list[Run]]] = []
    aligns: list[Align] = []
    in_head = False
    for index, token in enumerate(tokens):
        match token.type:
            case "thead_open" | "thead_close":
                in_head = token.type == "thead_open"
            case "tr_open" if not in_head:
                body.append([])
            case "th_open":
                head.append(inline_runs(tokens[index + 1].children or (), palette, palette.strong))
                aligns.append(_ALIGNS.get(str(token.attrs.get("style")), "left"))
            case "td_open":
                body[-1].append(inline_runs(tokens[index + 1].children or (), palette))
    for _ in range(max(map(len, body), default=0) - len(aligns)):  # cells beyond the header
        head.append([])
        aligns.append("left")
    return Table(head, body, aligns)


# --- inline: emphasis, code, links

_BARE_URL = re.compile(r"https?://[^\s<>\"'`|]+[^\s<>\"'`|.,;:!?)\]}*_]")
_HOST = re.compile(r"(?:https?://)?+(?:[^/?#\s]*@)?+(?:www\.)?(\[[^]]*\]|[\w.-]+)", re.IGNORECASE)
_ADDRESS = re.compile(r"https?:|www\.|[\w.-]+\.(?:ai|app|co|com|dev|edu|gov|io|net|org)\b", re.IGNORECASE)
_BREAK_TAG = re.compile(r"<br\s*/?>", re.IGNORECASE)
_BOLD, _ITALIC, _STRIKE = Style(bold=True), Style(italic=True), Style(strike=True)
NEWLINE = Run("\n", Style.null())


def inline_runs(tokens: Sequence[Token], palette: Palette, base: Style | None = None) -> list[Run]:
    """The runs of an inline token's children, on top of the style `base` (the palette's text if None).

    The model's line breaks are kept: chat answers use them for lists of facts and for verse.
    """
    style = palette.base if base is None else base
    stack: list[Style] = []
    runs: list[Run] = []
    link_start = 0
    for token in tokens:
        match token.type:
            case "text":
                _add_text(runs, token.content, style, palette)
            case "code_inline":
                runs.append(Run(token.content.replace("\n", " "), palette.code + _weight(style)))
            case "formula":
                runs.append(Run(token.content, palette.code + _weight(style)))
            case "softbreak" | "hardbreak":
                runs.append(NEWLINE)
            case "strong_open":
                stack.append(style)
                style += _BOLD
            case "em_open":
                stack.append(style)
                style += _ITALIC
            case "s_open":
                stack.append(style)
                style += _STRIKE
            case "link_open":
                stack.append(style)
                style = _link_style(style, str(token.attrs.get("href", "")), palette)
                link_start = len(runs)
            case "strong_close" | "em_close" | "s_close" | "link_close":
                if token.type == "link_close" and (host := _other_host(runs[link_start:], style.link)):
                    runs.append(Run(f" ({host})", palette.muted))
                style = stack.pop() if stack else palette.base
            case "image":
                label = token.content or "image"
                target = _link_style(style, str(token.attrs.get("src", "")), palette)
                runs.append(Run(f"[image: {label}]".replace("\n", " "), target))
            case "html_inline":
                runs.append(NEWLINE if _BREAK_TAG.fullmatch(token.content) else Run(token.content, palette.muted))
            case _:
                if token.content:
                    _add_text(runs, token.content, style, palette)
    return [Run(run.text.expandtabs(TAB_SIZE), run.style) if "\t" in run.text else run for run in runs]


def _weight(style: Style) -> Style:
    """Only bold and italic of `style`, to apply to inline code."""
    return Style(bold=style.bold or None, italic=style.italic or None, strike=style.strike or None)


def _link_style(style: Style, url: str, palette: Palette) -> Style:
    target = clean_url(url)
    return palette.link + _weight(style) + (Style(link=target) if target else Style.null())


def _other_host(label: Sequence[Run], target: str | None) -> str:
    """The host that a link leads to if its label is an address of another one; else ""."""
    text = "".join(run.text for run in label).strip()
    named, leads = _HOST.match(text), _HOST.match(target or "")
    if named is None or leads is None or not _ADDRESS.match(text) or named[1].lower() == leads[1].lower():
        return ""
    return leads[1]


def _add_text(runs: list[Run], text: str, style: Style, palette: Palette) -> None:
    if "://" not in text or style.link:
        if text:
            runs.append(Run(text, style))
        return
    position = 0
    for match in _BARE_URL.finditer(text):
        if match.start() > position:
            runs.append(Run(text[position : match.start()], style))
        runs.append(Run(match.group(), _link_style(style, match.group(), palette)))
        position = match.end()
    if position < len(text):
        runs.append(Run(text[position:], style))

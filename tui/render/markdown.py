"""Whole Markdown documents as rows. `stream.py` does the same for streaming text."""

from __future__ import annotations

from collections.abc import MutableMapping
from functools import cache
from typing import TYPE_CHECKING, Any

from tui.render.palette import Palette
from tui.render.rows import Row, clear_gradually
from tui.text.clean import clean_text
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
    from tui.render.blocks import blocks_rows  # not before the first frame

    tokens = parse(clean_text(source))
    rows = blocks_rows(tokens, width, palette)
    clear_gradually(tokens)
    return rows


def code_blocks(source: str) -> list[str]:
    """The contents of the code blocks in `source`, in order, unchanged (for copying)."""
    return [token.content for token in parse(source) if token.type in ("fence", "code_block")]

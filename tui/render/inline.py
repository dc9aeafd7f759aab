"""Inline Markdown (emphasis, code, links) as styled runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.style import Style

from tui.render.palette import Palette
from tui.render.wrap import Run
from tui.text.clean import TAB_SIZE, clean_url

if TYPE_CHECKING:
    from markdown_it.token import Token

_BARE_URL = re.compile(r"https?://[^\s<>\"'`|]+[^\s<>\"'`|.,;:!?)\]}*_]")
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
            case "strong_close" | "em_close" | "s_close" | "link_close":
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

"""The text of an empty conversation: the model, where it runs, and three things to try."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from tui.text.cells import plain
from tui.text.numbers import tokens_short
from tui.views.context.picture import CATEGORIES

if TYPE_CHECKING:
    from tui.context.usage.usage import ContextUsage

TRY = (
    ("ask anything", "enter sends, ctrl+j new line"),
    ("/context", "what fills the window"),
    ("/model", "change the model"),
)

PROVIDER = ("/provider", "OpenAI, Anthropic, or any other server")
"""Offered in addition if nothing was set up yet and the embedded model is used."""

_BAND = ("system", "tools", "user", "assistant", "results", "free", "buffer", "reserve")
_WIDTHS = (2, 2, 2, 3, 4, 6, 2, 2)
_GLYPHS = {category.colour: category.glyph for category in CATEGORIES.values()}


def welcome(provider: str, model: str, usage: ContextUsage | None, where: str) -> Content:
    """The static text of an empty conversation. The model's name is not parsed as markup."""
    window = usage.limits.context if usage is not None else None
    unknown = "asking for its window …" if usage is None else "window unknown"
    size = f"{tokens_short(window, strip=True)} token window" if window else unknown
    band = Content.assemble(
        *(
            (_GLYPHS[colour] * width, f"$context-{colour} on $context-{colour}-back")
            for colour, width in zip(_BAND, _WIDTHS, strict=True)
        )
    )
    tries = (*TRY, PROVIDER) if provider in ("local", "demo") else TRY
    lines = [
        Content(""),
        band,
        Content(""),
        Content.assemble((plain(model), "bold $foreground"), (f"  {size}", "$text-muted")),
        Content.styled(where or f"Messages go to {plain(provider)}.", "$text-muted"),
        Content(""),
        *(Content.assemble((f"{what:<14}", "$primary"), (why, "$text-muted")) for what, why in tries),
    ]
    return Content("\n").join(lines)

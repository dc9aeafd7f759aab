"""The colours of the transcript: a table of styles made from a theme's variables. Independent of the app."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from rich.style import Style
from textual.color import Color, ColorParseError

CONTRAST = 4.5
"""Least contrast of text against its background (WCAG 2.2, success criterion 1.4.3, level AA)."""


@dataclass(frozen=True, slots=True)
class Palette:
    """The styles of the transcript; each is complete (colour and background).

    `boxed`: code has its own background; otherwise (16 colours, no colour) it gets a bar.
    """

    base: Style
    muted: Style  # secondary words: summaries, tokens, language labels
    faint: Style  # rules and marks without text
    strong: Style
    heading: Style
    link: Style
    code: Style  # inline code
    block: Style  # code blocks
    block_muted: Style
    edge: Style  # half a line of a code block's background
    bullet: Style
    quote: Style
    you: Style
    model: Style
    cursor: Style
    info: Style
    warning: Style
    error: Style
    hit: Style
    hit_current: Style
    selection: Style
    boxed: bool
    dimmed: bool = False
    syntax: Mapping[str, Style] = field(default_factory=dict, hash=False)


_BOLD, _ITALIC, _UNDERLINE = Style(bold=True), Style(italic=True), Style(underline=True)
_BOLD_UNDERLINE = Style(bold=True, underline=True)

_SYNTAX: Mapping[str, tuple[str, Style | None]] = {
    "Comment": ("comment", _ITALIC),
    "Keyword": ("keyword", _BOLD),
    "Operator.Word": ("keyword", _BOLD),
    "Name.Function": ("name", None),
    "Name.Class": ("name", None),
    "Name.Exception": ("name", None),
    "Name.Builtin": ("number", None),
    "Name.Decorator": ("tag", None),
    "Name.Attribute": ("tag", None),
    "Name.Tag": ("keyword", None),
    "String": ("string", None),
    "Number": ("number", None),
    "Generic.Deleted": ("wrong", None),
    "Generic.Inserted": ("string", None),
    "Generic.Heading": ("keyword", _BOLD),
    "Generic.Subheading": ("keyword", _BOLD),
    "Generic.Emph": ("name", _ITALIC),
    "Generic.Strong": ("name", _BOLD),
    "Error": ("wrong", None),
}
"""By Pygments' token type: the name of the colour (see `_syntax`), and what is added to it."""


def make_palette(variables: Mapping[str, str], *, ansi: bool = False, no_color: bool = False) -> Palette:
    """A palette from a theme's CSS variables (`App.theme_variables`).

    `ansi`: use the terminal's own 16 colours. Missing or invalid variables have readable fallbacks, so that a
    half-written user theme still shows text.
    """
    if ansi:
        return _ansi_palette(variables)
    ground = _color(variables, "background", "#121212")
    light = _luminance(ground) > 0.4
    text = _readable(_color(variables, "foreground", "#1f1f1f" if light else "#e0e0e0"), ground)
    box = ground.blend(text, 0.06 if light else 0.07)
    pill = ground.blend(text, 0.09 if light else 0.12)

    def named(name: str, default: str, behind: Color = box) -> Color:
        return _readable(_color(variables, name, default), behind)

    primary, accent = named("primary", "#57a5e2"), named("accent", "#ffa62b")
    secondary, success = named("secondary", "#8aa9c8"), named("success", "#4ebf71")
    warning, error = named("warning", "#ffa62b"), named("error", "#ba3c5b")
    muted = _readable(ground.blend(text, 0.6), box)
    faint = ground.blend(text, 0.3)
    marked = ground.blend(_color(variables, "warning", "#ffa62b"), 0.35)
    chosen = ground.blend(_color(variables, "primary", "#0178d4"), 0.5)

    def on(color: Color, behind: Color = ground, extra: Style | None = None) -> Style:
        style = Style(color=color.rich_color, bgcolor=behind.rich_color)
        return style if extra is None else style + extra

    boxed = not no_color
    code_ground = box if boxed else ground
    return Palette(
        base=on(text),
        muted=on(muted),
        faint=on(faint),
        strong=on(text, extra=_BOLD),
        heading=on(primary, extra=_BOLD),
        link=on(primary, extra=_UNDERLINE),
        code=on(_readable(accent.blend(text, 0.25), pill), pill) if boxed else on(text, extra=_BOLD),
        block=on(_readable(text, code_ground), code_ground),
        block_muted=on(muted, code_ground),
        edge=on(code_ground),
        bullet=on(primary),
        quote=on(ground.blend(primary, 0.6)),
        you=on(accent, extra=_BOLD),
        model=on(primary, extra=_BOLD),
        cursor=on(accent, extra=_BOLD),
        info=on(muted),
        warning=on(warning),
        error=on(error),
        hit=on(_readable(text, marked), marked, _UNDERLINE if no_color else None),
        hit_current=Style(reverse=True, bold=True),
        selection=on(_readable(text, chosen), chosen, Style(reverse=True) if no_color else None),
        boxed=boxed,
        syntax=_syntax(
            lambda color, extra: on(color, code_ground, extra),
            comment=muted, keyword=primary, string=success, number=accent, name=secondary, tag=warning, wrong=error,
        ),
    )  # fmt: skip


def _ansi_palette(variables: Mapping[str, str]) -> Palette:
    """The terminal's own colours: no backgrounds, and no "bright black", which varies widely."""

    def named(name: str, default: str) -> Color:
        color = _color(variables, name, default)
        return color if color.ansi is not None else Color.parse(default)

    def on(color: Color, extra: Style | None = None) -> Style:
        style = Style(color=color.rich_color)
        return style if extra is None else style + extra

    plain = Style()
    primary, accent = named("primary", "ansi_blue"), named("accent", "ansi_green")
    secondary, success = named("secondary", "ansi_cyan"), named("success", "ansi_green")
    warning, error = named("warning", "ansi_yellow"), named("error", "ansi_red")
    dim = Style(dim=True)
    return Palette(
        base=plain,
        muted=dim,
        faint=dim,
        strong=_BOLD,
        heading=on(primary, _BOLD),
        link=on(primary, _UNDERLINE),
        code=on(secondary),
        block=plain,
        block_muted=dim,
        edge=plain,
        bullet=on(primary),
        quote=on(primary),
        you=on(accent, _BOLD),
        model=on(primary, _BOLD),
        cursor=on(accent, _BOLD),
        info=dim,
        warning=on(warning),
        error=on(error, _BOLD),
        hit=_BOLD_UNDERLINE,
        hit_current=Style(reverse=True, bold=True),
        selection=Style(reverse=True),
        boxed=False,
        syntax=_syntax(
            on,
            comment=Color.parse("ansi_default"), keyword=primary, string=success, number=secondary,
            name=secondary, tag=warning, wrong=error,
        ),
    )  # fmt: skip


def _syntax(on: Callable[[Color, Style | None], Style], **colors: Color) -> dict[str, Style]:
    return {token: on(colors[name], extra) for token, (name, extra) in _SYNTAX.items()}


def dimmed(palette: Palette) -> Palette:
    """The same palette in one subdued colour: for messages that are not sent any more, and for reasoning."""
    if palette.dimmed:
        return palette
    muted, block, bold = palette.muted, palette.block_muted, palette.muted + _BOLD
    return replace(
        palette,
        dimmed=True,
        syntax={},
        base=muted, bullet=muted, quote=palette.faint, link=muted + _UNDERLINE,
        code=block, block=block,
        strong=bold, heading=bold, you=bold, model=bold,
        info=muted, warning=muted, error=muted,
    )  # fmt: skip


def _color(variables: Mapping[str, str], name: str, default: str) -> Color:
    try:
        color = Color.parse(variables.get(name) or default)
    except ColorParseError:
        return Color.parse(default)
    return color if color.a == 1 or color.ansi is not None else Color.parse(default)


def _luminance(color: Color) -> float:
    """Relative luminance (WCAG 2.2, definition of contrast ratio)."""
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: Color, other: Color) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _readable(color: Color, behind: Color) -> Color:
    """`color`, shifted towards black or white until it is readable on `behind`."""
    target = max(Color(0, 0, 0), Color(255, 255, 255), key=lambda end: contrast(end, behind))
    for step in range(21):
        moved = color.blend(target, step / 20)
        if contrast(moved, behind) >= CONTRAST:
            return moved
    return target

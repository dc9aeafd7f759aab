from __future__ import annotations

from dataclasses import fields

import pytest
from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES

from tui.render.palette import CONTRAST, Palette, contrast, dimmed, make_palette

RGB = [name for name, theme in BUILTIN_THEMES.items() if not theme.ansi]
ANSI = [name for name, theme in BUILTIN_THEMES.items() if theme.ansi]


def words(palette: Palette) -> dict[str, Style]:
    """The styles that carry words (rules, bars and edges don't)."""
    silent = {"faint", "quote", "edge", "boxed", "dimmed", "syntax", "hit_current"}
    styles = {item.name: getattr(palette, item.name) for item in fields(palette) if item.name not in silent}
    return styles | {f"syntax {key}": style for key, style in palette.syntax.items()}


@pytest.mark.parametrize("theme", RGB)
def test_every_word_can_be_read_in_every_theme(theme: str) -> None:
    palette = make_palette(BUILTIN_THEMES[theme].to_color_system().generate())
    for one in (palette, dimmed(palette)):
        for name, style in words(one).items():
            assert style.color is not None and style.bgcolor is not None, name
            ratio = contrast(Color.from_rich_color(style.color), Color.from_rich_color(style.bgcolor))
            assert ratio >= CONTRAST - 0.05, (name, ratio)  # colours are rounded to whole steps


@pytest.mark.parametrize("theme", ANSI)
def test_sixteen_colour_themes_use_only_the_terminal_s_colours(theme: str) -> None:
    palette = make_palette(BUILTIN_THEMES[theme].to_color_system().generate(), ansi=True)
    for name, style in words(palette).items():
        assert style.bgcolor is None, name
        assert style.color is None or style.color.triplet is None, name
    assert not palette.boxed


def test_without_colour_words_still_differ() -> None:
    palette = make_palette(BUILTIN_THEMES["textual-dark"].to_color_system().generate(), no_color=True)
    plain = {name: style.without_color for name, style in words(palette).items()}
    for name in ("strong", "heading", "link", "code", "hit", "selection", "you"):
        assert plain[name] != plain["base"], name
    assert not palette.boxed


def test_a_broken_theme_still_shows_text() -> None:
    palette = make_palette({"foreground": "no such colour", "background": "auto 87%", "primary": ""})
    assert palette.base.color != palette.base.bgcolor


def test_contrast_is_the_standard_s() -> None:
    assert contrast(Color(0, 0, 0), Color(255, 255, 255)) == pytest.approx(21)
    assert contrast(Color(119, 119, 119), Color(255, 255, 255)) == pytest.approx(4.48, abs=0.01)

"""Theme files: readable on every screen, and honest about a bad one."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.color import Color

from tests.screens.scenarios import Scenario, opener, settings_in
from tui.app import ChatApp
from tui.views.context_picture import COLOURS
from tui.widgets.themes import (
    DEFAULT_THEME,
    ThemeError,
    find_theme,
    load_themes,
    parse_theme,
    read_theme,
    shipped_dir,
    shipped_theme,
)

SHIPPED = sorted(path.stem for path in shipped_dir().glob("*.toml"))
TRUE_COLOUR = [name for name in SHIPPED if name != "chatctx-terminal"]


def contrast(one: str, other: str) -> float:
    """The WCAG 2 contrast ratio of two colours."""

    def luminance(text: str) -> float:
        parts = [value / 255 for value in Color.parse(text).rgb]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_there_are_at_least_six_and_the_special_ones_are_among_them() -> None:
    assert len(SHIPPED) >= 6
    assert {"chatctx-dark", "chatctx-light", "chatctx-contrast", "chatctx-terminal"} <= set(SHIPPED)
    assert shipped_theme("chatctx-terminal").ansi


@pytest.mark.parametrize("name", TRUE_COLOUR)
def test_text_is_readable(name: str) -> None:
    theme = shipped_theme(name)
    grounds = [str(theme.background), str(theme.surface), str(theme.panel), theme.variables["block-cursor-background"]]
    texts = {
        key: str(value)
        for key, value in (
            ("foreground", theme.foreground),
            ("primary", theme.primary),
            ("accent", theme.accent),
            ("success", theme.success),
            ("warning", theme.warning),
            ("error", theme.error),
            ("muted", theme.variables["text-muted"]),
        )
    }
    needed = 7 if name == "chatctx-contrast" else 4.5
    for ground in grounds:
        for key, text in texts.items():
            assert contrast(text, ground) >= needed, f"{name}: {key} {text} on {ground}"


@pytest.mark.parametrize("name", TRUE_COLOUR)
def test_the_picture_is_readable(name: str) -> None:
    theme = shipped_theme(name)
    foregrounds = set()
    for colour in COLOURS:
        front, back = theme.variables[f"context-{colour}"], theme.variables[f"context-{colour}-back"]
        foregrounds.add(front)
        assert contrast(front, str(theme.surface)) >= 4.5, f"{name}: {colour}"
        assert contrast(str(theme.foreground), back) >= 4.5, f"{name}: text on {colour}"
    assert len(foregrounds) == len(COLOURS)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("dark = ", "not valid TOML"),
        ("[colors]\nprimary = '#fff'\nbackground = '#000'", "colors.foreground is missing"),
        ("[colors]\nprimary = 'blu'", "colors.primary is 'blu', which is not a colour"),
        ("[colors]\nprimary = 5", "colors.primary is 5, which is not a colour"),
        ("[colors]\nprimary = ['red']", "which is not a colour"),
        ("[colors]\nprimry = '#fff'", "unknown colour colors.primry"),
        ("colors = 3", "colors is a table"),
        ("colours = 3", "unknown setting colours"),
        ("dark = 'yes'", "true or false"),
        (
            "[colors]\nprimary='#fff'\nforeground='#fff'\nbackground='#000'\n[variables]\nborder='tall $nonsense'",
            "variables.border is 'tall $nonsense'",
        ),
    ],
)
def test_a_bad_file_is_named_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ThemeError) as caught:
        read_theme(path)
    line = str(caught.value)
    assert "mine.toml" in line and complaint in line and "\n" not in line


def test_a_bad_file_is_skipped_and_the_others_are_there(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "mine.toml").write_text(
        "dark = false\n[colors]\nprimary='#123456'\nforeground='#000'\nbackground='#fff'", encoding="utf-8"
    )
    themes, complaints = load_themes(tmp_path)
    assert {"mine", *SHIPPED} == {theme.name for theme in themes}
    assert len(complaints) == 1 and "bad.toml" in complaints[0]


def test_what_is_no_file_of_a_theme_is_named_and_delays_nothing(tmp_path: Path) -> None:
    (tmp_path / "device.toml").symlink_to("/dev/zero")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "large.toml").write_bytes(b"#" * 2_000_000)
    (tmp_path / "nested.toml").write_text("x = " + "[" * 100_000)
    (tmp_path / "gone.toml").symlink_to("nothing")
    themes, complaints = load_themes(tmp_path)
    assert {theme.name for theme in themes} == set(SHIPPED)
    assert [line.split()[1] for line in complaints] == [
        "device.toml", "folder.toml", "gone.toml", "large.toml", "nested.toml",
    ]  # fmt: skip


def test_a_theme_of_ones_own_replaces_one_of_the_program(tmp_path: Path) -> None:
    theme = "[colors]\nprimary='#123456'\nforeground='#000'\nbackground='#fff'"
    (tmp_path / "ember.toml").write_text(theme, encoding="utf-8")
    ember = find_theme("ember", tmp_path)
    assert ember is not None and ember.primary == "#123456"
    assert find_theme("../ember", tmp_path) is None
    assert find_theme("", tmp_path) is None


def test_colours_of_the_picture_can_be_changed_one_by_one() -> None:
    colors = {"primary": "#82aaff", "foreground": "#fff", "background": "#000"}
    theme = parse_theme("x", {"colors": colors, "context": {"system": "#ff0000"}})
    assert theme.variables["context-system"] == "#ff0000"
    assert theme.variables["context-tools"] == shipped_theme("chatctx-dark").variables["context-tools"]


@pytest.mark.parametrize("name", [DEFAULT_THEME, "mine"])
def test_a_broken_file_does_not_stop_the_program(name: str, tmp_path: Path) -> None:
    settings = settings_in(tmp_path, theme=name)
    settings.themes_dir.mkdir()
    (settings.themes_dir / f"{name}.toml").write_text("dark = 3")
    app = ChatApp(settings, opener(Scenario(), settings))
    assert app.theme == DEFAULT_THEME
    assert f"{name}.toml" in app._theme_complaint

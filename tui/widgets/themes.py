"""Themes as files: `themes/*.toml` of the program, and the person's own beside the config file.

A file has `dark`, a table `[colors]`, and optionally `[context]` (the colours of `/context`) and `[variables]`
(Textual's). The theme is named after the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textual.color import Color, ColorParseError
from textual.theme import Theme

from tui.config.files import FileTooLargeError, read_all
from tui.errors import ExpectedError
from tui.views.context_picture import COLOURS

DEFAULT_THEME = "chatctx-dark"
MAX_BYTES = 1_000_000

_COLORS = (
    "primary", "secondary", "accent", "success", "warning", "error", "foreground", "background", "surface", "panel",
    "muted", "border",
)  # fmt: skip
_TABLES = ("dark", "ansi", "colors", "context", "variables")

_DARK = {
    "system": "#7fb2ff", "memory": "#6fd3d8", "instructions": "#9cc0e8", "tools": "#b79cf5", "hidden": "#c9a0b4",
    "user": "#a5d977", "assistant": "#62c48e", "reasoning": "#55bfb0", "calls": "#d79be8", "results": "#ef8fc0",
    "attachments": "#cfa98e", "summaries": "#c8c27a", "other": "#a7adba", "free": "#8a92a1",
    "buffer": "#98a1b3", "reserve": "#8790a2",
}  # fmt: skip
_LIGHT = {
    "system": "#1d5fb8", "memory": "#0b6b78", "instructions": "#34597f", "tools": "#6a3fc0", "hidden": "#7a4460",
    "user": "#44690f", "assistant": "#17693f", "reasoning": "#0d665c", "calls": "#8a2fa3", "results": "#a82a6d",
    "attachments": "#7d5028", "summaries": "#625e10", "other": "#56606e", "free": "#5f6775",
    "buffer": "#525c6e", "reserve": "#5d6675",
}  # fmt: skip
_ANSI = {
    "system": "ansi_blue", "memory": "ansi_cyan", "instructions": "ansi_bright_blue", "tools": "ansi_magenta",
    "hidden": "ansi_default", "user": "ansi_green", "assistant": "ansi_bright_green", "reasoning": "ansi_bright_cyan",
    "calls": "ansi_bright_magenta", "results": "ansi_bright_blue", "attachments": "ansi_cyan",
    "summaries": "ansi_green", "other": "ansi_default", "free": "ansi_default", "buffer": "ansi_default",
    "reserve": "ansi_default",
}  # fmt: skip

_STYLES = {"none", "not", "bold", "dim", "italic", "underline", "reverse", "strike"}


class ThemeError(ExpectedError):
    """An unusable theme file. `str()` is one line: which file, what, and what to do."""


def shipped_dir() -> Path:
    """The folder of the program's themes: in the installed package, or beside it in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / "themes"
    return inside if inside.is_dir() else package.parent / "themes"


def find_theme(name: str, user_dir: Path) -> Theme | None:
    """The theme called `name`, the person's own before the program's; None if there is no such file.

    Raises `ThemeError` if the file is invalid.
    """
    for folder in (user_dir, shipped_dir()):
        path = folder / f"{name}.toml"
        if name and "/" not in name and path.is_file():
            return read_theme(path)
    return None


def shipped_theme(name: str) -> Theme:
    """The program's own theme called `name`, which exists."""
    return read_theme(shipped_dir() / f"{name}.toml")


def load_themes(user_dir: Path) -> tuple[list[Theme], list[str]]:
    """All themes of both directories (the person's replace the program's), and a line for each invalid file."""
    themes: dict[str, Theme] = {}
    complaints: list[str] = []
    for path in [*sorted(shipped_dir().glob("*.toml")), *sorted(user_dir.glob("*.toml"))]:
        try:
            theme = read_theme(path)
        except ThemeError as error:
            complaints.append(str(error))
        else:
            themes[theme.name] = theme
    return list(themes.values()), complaints


def read_theme(path: Path) -> Theme:
    """One theme file. Raises `ThemeError`."""
    try:
        return parse_theme(path.stem, tomllib.loads(read_all(path, MAX_BYTES).decode()))
    except FileTooLargeError:
        raise ThemeError(f"theme {path.name} has more than {MAX_BYTES:,} bytes; it was skipped") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ThemeError(f"theme {path.name} can't be read ({reason}); it was skipped") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ThemeError(f"theme {path.name} is not valid TOML: {error}; it was skipped") from None
    except ThemeError as error:
        raise ThemeError(f"theme {path.name}: {error}; it was skipped") from None


def parse_theme(name: str, data: Mapping[str, Any]) -> Theme:
    """A theme from the tables of its file. Raises `ThemeError` that names the setting."""
    if unknown := sorted(set(data) - set(_TABLES)):
        raise ThemeError(f"unknown setting {unknown[0]}; known: {', '.join(_TABLES)}")
    dark, ansi = data.get("dark", True), data.get("ansi", False)
    if not isinstance(dark, bool) or not isinstance(ansi, bool):
        raise ThemeError("dark and ansi are true or false")
    colors = _table(data, "colors", _COLORS)
    missing = [key for key in ("primary", "foreground", "background") if key not in colors]
    if missing:
        raise ThemeError(f"colors.{missing[0]} is missing")
    context = _table(data, "context", COLOURS)
    variables = _table(data, "variables", None)
    muted, border = colors.pop("muted", colors["foreground"]), colors.pop("border", colors["primary"])
    settings = {
        "text-muted": muted,
        "text-error": colors.get("error", colors["primary"]),
        "text-warning": colors.get("warning", colors["primary"]),
        "text-success": colors.get("success", colors["primary"]),
        "text-primary": colors["primary"],
        "text-accent": colors.get("accent", colors["primary"]),
        "border": border,
        "border-blurred": border,
        "scrollbar": border,
        "scrollbar-background": colors["background"],
        "scrollbar-corner-color": colors["background"],
    }
    settings |= _cursor(colors["background"], colors["primary"], colors["foreground"], ansi=ansi)
    if ansi:
        settings |= {"ansi-background": "ansi_black", "ansi-foreground": "ansi_white"}
    palette = context_variables(dark=dark, ansi=ansi, background=colors["background"], overrides=context)
    colours: dict[str, Any] = colors  # each is a parameter of `Theme`
    return Theme(name, **colours, dark=dark, ansi=ansi, variables={**settings, **palette, **variables})


def _cursor(background: str, primary: str, foreground: str, *, ansi: bool) -> dict[str, str]:
    """The highlighted row of a list: a background shade, or an underline if there are no shades.

    (Textual 8.2.8 leaves "reverse" out of the style of a list's row.)
    """
    shade = "ansi_default" if ansi else Color.parse(background).blend(Color.parse(primary), 0.2).hex
    style = "bold underline" if ansi else "none"
    return {
        f"block-{state}-{part}": value
        for state in ("cursor", "cursor-blurred")
        for part, value in (("background", shade), ("foreground", foreground), ("text-style", style))
    } | {"block-hover-background": shade}


def context_variables(
    *, dark: bool, ansi: bool, background: str, overrides: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables `context-<colour>` and `context-<colour>-back` (a background shade of it) of a theme."""
    base = _ANSI if ansi else _DARK if dark else _LIGHT
    colours = {**base, **(overrides or {})}
    result = {f"context-{key}": value for key, value in colours.items()}
    for key, value in colours.items():
        back = "ansi_default" if ansi else Color.parse(background).blend(Color.parse(value), 0.22).hex
        result[f"context-{key}-back"] = background if key == "free" else back
    return result


def _table(data: Mapping[str, Any], name: str, allowed: tuple[str, ...] | None) -> dict[str, str]:
    """A table of colours with `allowed` names; without names, any of Textual's variables: colours or text styles."""
    table = data.get(name, {})
    if not isinstance(table, dict):
        raise ThemeError(f"{name} is a table: write it as [{name}]")
    for key, value in table.items():
        if allowed is not None and key not in allowed:
            raise ThemeError(f"unknown colour {name}.{key}; known: {', '.join(allowed)}")
        if allowed is None and isinstance(value, str) and set(value.split()) <= _STYLES:
            continue
        try:
            Color.parse(str(value))
        except ColorParseError:
            raise ThemeError(f"{name}.{key} is {value!r}, which is not a colour; write it like #7fb2ff") from None
    return dict(table)

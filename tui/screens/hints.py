"""What can be pressed on a panel, as it says itself: each key as the person has set it, each one to be clicked too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from textual.content import Content
from textual.screen import Screen
from textual.style import Style
from textual.widgets import Static

Hint: TypeAlias = tuple[str, str, str]
"""A key, a word for what it does, and the screen's action that does it (or `app.` and one of the program's)."""

CLOSE: Hint = ("esc", "close", "close")
BACK: Hint = ("esc", "back", "close")


class KeyLine(Static):
    """Where a panel says its keys, or a note in their place. They are clicked, but do not look like links."""

    def __init__(self, classes: str) -> None:
        super().__init__("", classes=classes, markup=False)
        self.set_reactive(Static.auto_links, False)


def key_now(screen: Screen[Any], key: str, action: str) -> str:
    """The key that does `action` on `screen`: `key`, or what the person has set in its place."""
    bound = screen.active_bindings
    named = bound.get(key.replace("^", "ctrl+").replace("esc", "escape"))
    if named is not None and named.binding.action == action:
        return key
    others = (name for name, active in bound.items() if active.binding.action == action and active.binding.id)
    return next((name.replace("ctrl+", "^").replace("escape", "esc") for name in others), key)


def clickable(screen: Screen[Any], *hints: Hint) -> str:
    """`enter open   esc close` for a panel's edge; a click on one does the same."""
    return "   ".join(
        f"[@click={_full(action)}]{key_now(screen, key, action)} {word}[/]" for key, word, action in hints
    )


def key_line(screen: Screen[Any], hints: Sequence[Hint], width: int) -> Content:
    """`m messages   h history …` in `width` cells; narrow, only as many as fit, the last one always.

    Where each of them is a click does the same.
    """
    shown = [(key_now(screen, key, action), word, action) for key, word, action in hints]
    gap = "   " if sum(len(key) + len(word) + 4 for key, word, _ in shown) <= width else "  "
    while len(shown) > 1 and sum(len(key) + len(word) + 1 + len(gap) for key, word, _ in shown) - len(gap) > width:
        shown.pop(-2)
    pieces = [
        Content.assemble((key, "bold $primary"), (f" {word}", "$text-muted")).stylize(
            Style.from_meta({"@click": _full(action)})
        )
        for key, word, action in shown
    ]
    return Content(gap).join(pieces)


def _full(action: str) -> str:
    return action if "." in action else f"screen.{action}"

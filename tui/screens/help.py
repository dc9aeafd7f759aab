"""`/help`: the available commands, and the keys with the person's settings."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.dom import DOMNode
from textual.keys import KEY_NAME_REPLACEMENTS, Keys, key_to_character
from textual.widgets import Static

from tui.screens.base import CLOSE, Panel, clickable, set_title
from tui.views.help_lines import HelpView, Key, help_lines

MODIFIERS = frozenset({"ctrl", "alt", "shift", "meta", "super", "hyper"})
_NAMED = frozenset(key.value.rpartition("+")[2] for key in Keys) | frozenset(KEY_NAME_REPLACEMENTS.values())


class HelpPanel(Panel[None]):
    """A scrollable text."""

    DEFAULT_CSS = """
    HelpPanel VerticalScroll { height: auto; max-height: 1fr; scrollbar-size-vertical: 1; }
    HelpPanel Static { height: auto; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,f1,enter", "close", "close", id="help.close", show=False)]

    def __init__(self, view: HelpView, keys: Mapping[str, Sequence[Key]]) -> None:
        super().__init__()
        self.view = view
        self.keys = keys

    def compose(self) -> ComposeResult:
        """One text."""
        with Vertical(classes="panel") as panel:
            set_title(panel, self.view.title)
            panel.border_subtitle = clickable(self, CLOSE)
            with VerticalScroll():
                yield Static("", markup=False)

    def on_mount(self) -> None:
        """Scroll with the keys at once."""
        self.query_one(VerticalScroll).focus()
        self.redraw()

    def on_resize(self) -> None:
        """Draw for this width."""
        self.redraw()

    def redraw(self) -> None:
        """Both lists."""
        width = self.list_width
        self.query_one(Static).update(Content("\n").join(help_lines(self.view.commands, self.keys, width)))


def all_keys(conversation: Sequence[type[DOMNode]], keymap: Mapping[str, str]) -> dict[str, list[Key]]:
    """All named keys, by section; `conversation` are the classes of the chat screen and the app."""
    from tui.screens.approval import ApprovalPanel
    from tui.screens.context.fits import FitsPanel
    from tui.screens.context.history import HistoryPanel
    from tui.screens.context.messages import MessagesPanel
    from tui.screens.context.panel import ContextPanel
    from tui.screens.mcp import McpPanel
    from tui.screens.pager import Pager
    from tui.screens.sessions import SessionPicker
    from tui.screens.summary import SummaryPanel
    from tui.screens.tools import ToolsPanel
    from tui.screens.usage import UsagePanel
    from tui.widgets.composer.composer import PromptArea
    from tui.widgets.transcript.transcript import Transcript

    sections: dict[str, Sequence[type[DOMNode]]] = {
        "Writing": [PromptArea],
        "Conversation": conversation,
        "A chosen message": [Transcript],
        "/sessions": [SessionPicker],
        "/compact --preview, /summary": [SummaryPanel],
        "/context": [ContextPanel, MessagesPanel, HistoryPanel, FitsPanel],
        "/mcp": [McpPanel],
        "/tools": [ToolsPanel],
        "A call that asks": [ApprovalPanel],
        "A whole text": [Pager],
        "Panels": [Panel, HelpPanel, UsagePanel],
    }
    return {title: keys_of(classes, keymap) for title, classes in sections.items()}


def keys_of(nodes: Iterable[type[DOMNode]], keymap: Mapping[str, str]) -> list[Key]:
    """The named keys of some classes, with the person's settings."""
    named = []
    for node in nodes:
        for binding in node.BINDINGS:
            if isinstance(binding, Binding) and binding.id:
                keys = keymap.get(binding.id, binding.key)
                named.append(Key(keys.replace(",", "  "), binding.description, binding.id))
    return named


def is_key(text: str) -> bool:
    """Whether it is a key in Textual's notation: `f2`, `ctrl+s`, `ctrl+slash`, `question_mark` (or `?`)."""
    *modifiers, key = text.split("+") if text != "+" else [text]
    if len(key) == 1 and modifiers:  # with modifiers, punctuation is written by its name
        named = key.isalnum() or key in _NAMED
    else:
        named = len(key) == 1 or key in _NAMED or key_to_character(key) is not None
    return named and MODIFIERS.issuperset(modifiers)


def keymap_problems(keymap: Mapping[str, str], names: Collection[str]) -> list[str]:
    """A line for each invalid entry of the keymap; `names` are the names of keys."""
    problems = []
    for name, keys in sorted(keymap.items()):
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            step = f"did you mean {near[0]}?" if near else "/help lists them."
            problems.append(f"The config file sets keys.{name}, but no key has that name: {step}")
        elif wrong := [key for key in map(str.strip, keys.split(",")) if not is_key(key)]:
            problems.append(
                f"The config file sets keys.{name} to {wrong[0]!r}, which is no key; write it like ctrl+s or f2."
            )
    return problems

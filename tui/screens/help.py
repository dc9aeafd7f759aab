"""`/help`: the available commands, and the keys with the person's settings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.keys import KEY_NAME_REPLACEMENTS, Keys, key_to_character

from tui.commands.help import HelpView, Key, help_lines
from tui.screens.base import Panel
from tui.screens.pager import Lines, Pager, ReadingPanel, UsagePanel
from tui.text.labels import did_you_mean

MODIFIERS = frozenset({"ctrl", "alt", "shift", "meta", "super", "hyper"})
_NAMED = frozenset(key.value.rpartition("+")[2] for key in Keys) | frozenset(KEY_NAME_REPLACEMENTS.values())


class HelpPanel(ReadingPanel):
    """The commands, and the keys that `keys` lists by section, in a thread."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,f1,enter", "close", "close", id="help.close", show=False)]

    def __init__(self, view: HelpView, keys: Callable[[], Mapping[str, Sequence[Key]]]) -> None:
        async def read() -> Lines:
            return partial(help_lines, view.commands, await asyncio.to_thread(keys))

        super().__init__(view.title, read)


def all_keys(conversation: Sequence[type[DOMNode]], keymap: Mapping[str, str]) -> dict[str, list[Key]]:
    """All named keys, by section; `conversation` are the classes of the chat screen and the app."""
    from tui.screens.context import ContextPanel, FitsPanel
    from tui.screens.context_lists import HistoryPanel, MessagesPanel
    from tui.screens.lists import SessionPicker
    from tui.screens.question import ApprovalPanel
    from tui.screens.summary import SummaryPanel
    from tui.screens.tools import McpPanel, ToolsPanel
    from tui.widgets.composer import PromptArea
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
        "Approval of a tool call": [ApprovalPanel],
        "Reading a text": [Pager],
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
                description = binding.description[:1].lower() + binding.description[1:]
                named.append(Key(keys.replace(",", "  "), description, binding.id))
    return named


def is_key(text: str) -> bool:
    """Whether `text` is a key in Textual's notation: `f2`, `ctrl+s`, `ctrl+slash`, `question_mark` (or `?`)."""
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
            step = did_you_mean(name, names) or "/help lists them."
            problems.append(f"The config file sets keys.{name}, but no key has that name: {step}")
        elif wrong := [key for key in map(str.strip, keys.split(",")) if not is_key(key)]:
            problems.append(
                f"The config file sets keys.{name} to {wrong[0]!r}, which is not a key; write it like ctrl+s or f2."
            )
    return problems

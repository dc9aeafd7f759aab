"""`/help`: the available commands, and the keys with the person's settings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.keys import KEY_NAME_REPLACEMENTS, Keys, key_to_character
from textual.screen import Screen

from tui.commands.help import HelpView, Key, help_lines
from tui.screens.base import Panel
from tui.screens.pager import Lines, Pager, ReadingPanel, UsagePanel
from tui.text.labels import did_you_mean

MODIFIERS = frozenset({"ctrl", "alt", "shift", "meta", "super", "hyper"})
WRITTEN_IN = WRITING, SESSIONS, SUMMARY = "Writing", "/sessions", "/compact --preview, /summary"  # have text fields
SEND = "composer.send"
_NAMED = frozenset(key.value.rpartition("+")[2] for key in Keys) | frozenset(KEY_NAME_REPLACEMENTS.values())


class HelpPanel(ReadingPanel):
    """The commands, and the keys that `keys` lists by section, in a thread."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,f1,enter", "close", "close", id="help.close", show=False)]

    def __init__(self, view: HelpView, keys: Callable[[], Mapping[str, Sequence[Key]]]) -> None:
        async def read() -> Lines:
            return partial(help_lines, view.commands, await asyncio.to_thread(keys))

        super().__init__(view.title, read)


def _sections(conversation: Sequence[type[DOMNode]]) -> dict[str, Sequence[type[DOMNode]]]:
    """The classes with named keys; `conversation` are those of the chat screen and the app."""
    from tui.screens.context import ContextPanel, FitsPanel
    from tui.screens.context_lists import HistoryPanel, MessagesPanel
    from tui.screens.lists import SessionPicker
    from tui.screens.question import ApprovalPanel
    from tui.screens.summary import SummaryPanel
    from tui.screens.tools import McpPanel, ToolsPanel
    from tui.widgets.composer import PromptArea
    from tui.widgets.transcript.transcript import Transcript

    return {
        WRITING: [PromptArea],
        "Conversation": conversation,
        "A chosen message": [Transcript],
        SESSIONS: [SessionPicker],
        SUMMARY: [SummaryPanel],
        "/context": [ContextPanel, MessagesPanel, HistoryPanel, FitsPanel],
        "/mcp": [McpPanel],
        "/tools": [ToolsPanel],
        "Approval of a tool call": [ApprovalPanel],
        "Reading a text": [Pager],
        "Panels": [Panel, HelpPanel, UsagePanel],
    }


def all_keys(conversation: Sequence[type[DOMNode]], keymap: Mapping[str, str]) -> dict[str, list[Key]]:
    """All named keys, by section, with the person's settings."""
    return {title: keys_of(classes, keymap) for title, classes in _sections(conversation).items()}


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


class _Action(NamedTuple):
    """What keys do in one place; `id` is "" if they can't be changed. With `priority` they work before text fields."""

    id: str
    default: frozenset[str]
    keys: frozenset[str]
    priority: bool


def usable_keys(
    keymap: Mapping[str, str], conversation: Sequence[type[DOMNode]]
) -> tuple[Mapping[str, str], Sequence[str]]:
    """The entries of the keymap that can be used, and a line for each problem.

    A set key wins over a default one. An action that has no key then is reported; if it can't be given another one, or
    nothing could be sent, the entry is not used.
    """
    names = {key.id for section in all_keys(conversation, {}).values() for key in section}
    usable: dict[str, str] = {}
    problems = []
    for name, keys in sorted(keymap.items()):
        if name not in names:
            step = did_you_mean(name, names) or "/help lists them."
            problems.append(f"The config file sets keys.{name}, but no key has that name: {step}")
        elif wrong := [key for key in map(str.strip, keys.split(",")) if not is_key(key)]:
            problems.append(
                f"The config file sets keys.{name} to {wrong[0]!r}, which is not a key; write it like ctrl+s or f2."
            )
        else:
            usable[name] = keys
    while refused := {
        name: why for name, why, other in reversed([*_collisions(usable, conversation)]) if other in ("", SEND)
    }:
        problems += [f"{why} It is not used: choose another key." for why in refused.values()]
        usable = {name: keys for name, keys in usable.items() if name not in refused}
    hidden = {other: why for _, why, other in _collisions(usable, conversation)}
    return usable, [*problems, *(f"{why} Set keys.{other} to give that another one." for other, why in hidden.items())]


def _collisions(keymap: Mapping[str, str], conversation: Sequence[type[DOMNode]]) -> Iterator[tuple[str, str, str]]:
    """Entries that hide an action: their name, what happens, and the action's name, "" if it can't be changed."""
    for title, classes in _sections(conversation).items():
        for node in classes:
            around = conversation[-1:] if issubclass(node, Screen) else conversation  # a panel covers the conversation
            actions = list(_actions((node, *around), keymap))
            for action in actions:
                takers = {
                    key: other.id
                    for other in actions
                    if other.id in keymap and other.id != action.id and not action.default & other.default
                    for key in action.keys & other.keys
                }
                if takers.keys() == action.keys:
                    key, taker = min(takers.items())
                    left = action.id or f"a fixed key of {title}"
                    yield taker, f"The config file sets keys.{taker} to {key}, which hides {left}.", action.id
                letters = set(filter(_is_letter, action.keys)) if title in WRITTEN_IN and action.id in keymap else set()
                if letters and (action.priority or letters == action.keys):
                    yield action.id, f"The config file sets keys.{action.id} to {min(letters)}, which is for text.", ""


def _actions(nodes: Iterable[type[DOMNode]], keymap: Mapping[str, str]) -> Iterator[_Action]:
    """The actions of nodes and of what they inherit in this program: editing keys of Textual may be replaced."""
    for base in dict.fromkeys(base for node in nodes for base in node.__mro__ if base.__module__.startswith("tui.")):
        for binding in vars(base).get("BINDINGS", ()):
            keys, name = keymap.get(binding.id or "", binding.key), binding.id or ""
            default, now = (frozenset(map(str.strip, text.split(","))) for text in (binding.key, keys))
            yield _Action(name, default, now, binding.priority)


def _is_letter(key: str) -> bool:
    character = key if len(key) == 1 else key_to_character(key)
    return character is not None and character.isprintable()

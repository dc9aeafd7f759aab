"""The keys under `[keys]` in the config file: which entries can be used, and what they hide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import KEY_NAME_REPLACEMENTS, Keys, key_to_character
from textual.screen import Screen

from tui.screens.base import Panel
from tui.text.labels import did_you_mean
from tui.widgets.composer import PromptArea
from tui.widgets.transcript.transcript import Transcript

if TYPE_CHECKING:
    from tui.commands.help import Key

Sections: TypeAlias = dict[str, Sequence[type[DOMNode]]]

MODIFIERS = frozenset({"ctrl", "alt", "shift", "meta", "super", "hyper"})
WRITTEN_IN = WRITING, SESSIONS, SUMMARY = "Writing", "/sessions", "/compact --preview, /summary"  # have text fields
SEND = "composer.send"
_NAMED = frozenset(key.value.rpartition("+")[2] for key in Keys) | frozenset(KEY_NAME_REPLACEMENTS.values())


def _chat_sections(conversation: Sequence[type[DOMNode]]) -> Sections:
    """The classes with named keys that are loaded at the start; `conversation` are those of the chat screen and app."""
    return {WRITING: [PromptArea], "Conversation": conversation, "A chosen message": [Transcript]}


def _sections(conversation: Sequence[type[DOMNode]]) -> Sections:
    """All classes with named keys. Imports every panel: 40 ms."""
    from tui.screens.context import ContextPanel, FitsPanel
    from tui.screens.context_lists import HistoryPanel, MessagesPanel
    from tui.screens.lists import SessionPicker
    from tui.screens.pager import HelpPanel, Pager, UsagePanel
    from tui.screens.question import ApprovalPanel
    from tui.screens.summary import SummaryPanel
    from tui.screens.tools import McpPanel, ToolsPanel

    return {
        **_chat_sections(conversation),
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
    """All named keys, by section, with the person's settings. Imports every panel: not on the event loop."""
    return {title: keys_of(classes, keymap) for title, classes in _sections(conversation).items()}


def keys_of(nodes: Iterable[type[DOMNode]], keymap: Mapping[str, str]) -> list[Key]:
    """The named keys of some classes, with the person's settings."""
    from tui.commands.help import Key

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


class _Collision(NamedTuple):
    """An entry of the keymap that hides an action; `hidden` is "" if that can't be given another key."""

    entry: str
    text: str
    hidden: str


def start_keys(keymap: Mapping[str, str], conversation: Sequence[type[DOMNode]]) -> Mapping[str, str]:
    """The entries that can be used in the conversation, until `usable_keys` has loaded the panels."""
    are_keys = {name: keys for name, keys in keymap.items() if not _invalid(keys)}
    return _not_refused(are_keys, _chat_sections(conversation), conversation)[0]


def usable_keys(
    keymap: Mapping[str, str], conversation: Sequence[type[DOMNode]]
) -> tuple[Mapping[str, str], Sequence[str]]:
    """The entries of the keymap that can be used, and a line for each problem. Imports every panel.

    A set key wins over a default one. An action that has no key then is reported; if it can't be given another one, or
    nothing could be sent, the entry is not used.
    """
    sections = _sections(conversation)
    names = {key.id for classes in sections.values() for key in keys_of(classes, {})}
    usable: dict[str, str] = {}
    problems = []
    for name, keys in sorted(keymap.items()):
        if name not in names:
            step = did_you_mean(name, names) or "/help lists them."
            problems.append(f"The config file sets keys.{name}, but no key has that name: {step}")
        elif wrong := _invalid(keys):
            problems.append(
                f"The config file sets keys.{name} to {wrong[0]!r}, which is not a key; write it like ctrl+s or f2."
            )
        else:
            usable[name] = keys
    usable, refused = _not_refused(usable, sections, conversation)
    problems += [f"{text} It is not used: choose another key." for text in refused]
    hidden = {each.hidden: each.text for each in _collisions(usable, sections, conversation)}
    problems += [f"{text} Set keys.{name} to give that another one." for name, text in hidden.items()]
    return usable, problems


def _invalid(keys: str) -> list[str]:
    return [key for key in map(str.strip, keys.split(",")) if not is_key(key)]


def _not_refused(
    keymap: dict[str, str], sections: Sections, conversation: Sequence[type[DOMNode]]
) -> tuple[dict[str, str], Sequence[str]]:
    """The entries that hide neither sending nor what can't have another key; and what each of the others hides."""
    reasons: list[str] = []
    while collisions := [each for each in _collisions(keymap, sections, conversation) if each.hidden in ("", SEND)]:
        refused = {each.entry: each.text for each in reversed(collisions)}
        reasons += refused.values()
        keymap = {name: keys for name, keys in keymap.items() if name not in refused}
    return keymap, reasons


def _collisions(
    keymap: Mapping[str, str], sections: Sections, conversation: Sequence[type[DOMNode]]
) -> Iterator[_Collision]:
    for title, classes in sections.items():
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
                    text = f"The config file sets keys.{taker} to {key}, which hides {left}."
                    yield _Collision(taker, text, action.id)
                letters = set(filter(_is_letter, action.keys)) if title in WRITTEN_IN and action.id in keymap else set()
                if letters and (action.priority or letters == action.keys):
                    text = f"The config file sets keys.{action.id} to {min(letters)}, which is for text."
                    yield _Collision(action.id, text, "")


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

from __future__ import annotations

import importlib
import pkgutil

import pytest
from textual.binding import Binding
from textual.dom import DOMNode

from tui import screens, widgets
from tui.app import ChatApp
from tui.screens.chat.screen import ChatScreen
from tui.screens.keymap import all_keys, is_key, start_keys, usable_keys

CLASSES = (ChatScreen, ChatApp)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("f2", True), ("ctrl+s", True), ("alt+enter", True), ("ctrl+shift+up", True), ("a", True), ("?", True),
        ("question_mark", True), ("+", True), ("ß", True), ("slash", True), ("ctrl+plus", True),
        ("", False), ("ctrl+", False), ("ctrl++", False), ("ctrl+/", False), ("control+s", False),
        ("f99", False), ("entre", False),
    ],
)  # fmt: skip
def test_what_a_terminal_may_send(text: str, is_one: bool) -> None:
    assert is_key(text) is is_one


def test_every_key_that_has_a_name_is_in_the_help() -> None:
    names = set()
    for package in (screens, widgets):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for node in vars(importlib.import_module(module.name)).values():
                if isinstance(node, type) and issubclass(node, DOMNode):
                    names |= {binding.id for binding in node.BINDINGS if isinstance(binding, Binding) and binding.id}
    listed = [key.id for section in all_keys(CLASSES, {}).values() for key in section]
    assert names <= set(listed)
    assert len(set(listed)) == len(listed)


def test_each_entry_that_can_not_be_meant_is_said() -> None:
    keymap = {
        "chat.contxt": "f2",
        "composer.send": "ctrl+s, ctlr+x",
        "zzz": "f3",
        "chat.help": "",
    }
    usable, problems = usable_keys(keymap, CLASSES)
    assert usable == {}
    assert problems == [
        "The config file sets keys.chat.contxt, but no key has that name: did you mean chat.context?",
        "The config file sets keys.chat.help to '', which is not a key; write it like ctrl+s or f2.",
        "The config file sets keys.composer.send to 'ctlr+x', which is not a key; write it like ctrl+s or f2.",
        "The config file sets keys.zzz, but no key has that name: /help lists them.",
    ]


@pytest.mark.parametrize(
    ("keymap", "problem"),
    [
        ({"chat.help": "enter"}, "keys.chat.help to enter, which hides composer.send. It is not used: choose another"),
        ({"app.quit": "enter"}, "keys.app.quit to enter, which hides composer.send. It is not used"),
        ({"composer.send": "f5", "chat.help": "f5"}, "keys.chat.help to f5, which hides composer.send. It is not used"),
        ({"app.palette": "down"}, "keys.app.palette to down, which hides a fixed key of /sessions. It is not used"),
        ({"sessions.rename": "enter"}, "keys.sessions.rename to enter, which hides a fixed key of /sessions."),
        ({"composer.send": "a"}, "keys.composer.send to a, which is for text. It is not used"),
        ({"app.palette": "f5,space"}, "keys.app.palette to space, which is for text. It is not used"),
        ({"panel.close": "q"}, "keys.panel.close to q, which is for text. It is not used"),
    ],
)
def test_a_key_that_takes_away_what_can_not_be_done_otherwise_is_not_used(keymap: dict[str, str], problem: str) -> None:
    usable, problems = usable_keys(keymap, CLASSES)
    assert len(usable) == len(keymap) - 1
    assert problem in problems[0]


@pytest.mark.parametrize(
    ("keymap", "hidden"),
    [
        (
            {"chat.context": "f9"},
            "to f9, which hides chat.leave_out. Set keys.chat.leave_out to give that another one.",
        ),
        ({"chat.context": "f5", "chat.help": "f5"}, "to f5, which hides chat.context. Set keys.chat.context to give"),
        ({"app.interrupt": "c"}, "which is for text."),
        ({"approval.once": "n"}, "to n, which hides approval.no."),
        ({"context.compact": "m"}, "to m, which hides context.messages."),
        ({"app.quit": "x"}, "for text"),
        ({"chat.stop": "ctrl+c"}, "which hides app.interrupt."),
    ],
)
def test_a_key_that_hides_another_is_reported(keymap: dict[str, str], hidden: str) -> None:
    assert any(hidden in problem for problem in usable_keys(keymap, CLASSES)[1])


@pytest.mark.parametrize(
    "keymap",
    [
        {"chat.help": "enter", "composer.send": "ctrl+s"},
        {"composer.newline": "enter", "composer.send": "ctrl+s"},
        {"chat.context": "ctrl+j"},  # two others stay
        {"chat.help": "f1,?"},
        {"chat.stop": "f10", "composer.close_list": "f10"},  # share a key by default
        {"context.compact": "f2", "transcript.copy": "m"},  # of other places
        {"context.messages": "k", "mcp.restart": "j"},  # the arrows stay
        {"sessions.delete": "home"},  # of lists without a field
        {"chat.stop": "ctrl+x", "composer.up": "ctrl+p", "app.palette": "f12"},
    ],
)
def test_keys_that_hide_nothing_are_used(keymap: dict[str, str]) -> None:
    assert usable_keys(keymap, CLASSES) == (keymap, [])


@pytest.mark.parametrize(
    ("keymap", "used"),
    [
        ({"chat.help": "enter", "composer.newline": "ctlr+x", "chat.context": "f5"}, {"chat.context": "f5"}),
        ({"composer.send": "a"}, {}),
        ({"app.palette": "down", "context.compact": "x"}, {"app.palette": "down", "context.compact": "x"}),
    ],
)
def test_before_the_panels_are_loaded_only_what_they_hide_is_not_known(
    keymap: dict[str, str], used: dict[str, str]
) -> None:
    assert start_keys(keymap, CLASSES) == used


def test_the_usual_keys_may_be_written_down() -> None:
    keys = {key.id: key.keys.replace("  ", ",") for keys in all_keys(CLASSES, {}).values() for key in keys}
    assert usable_keys(keys, CLASSES) == (keys, [])

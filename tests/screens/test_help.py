from __future__ import annotations

import importlib
import pkgutil

import pytest
from textual.binding import Binding
from textual.dom import DOMNode

from tests.screens.conftest import running
from tui import screens, widgets
from tui.screens.help import is_key, keymap_problems


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


async def test_every_key_that_has_a_name_is_in_the_help() -> None:
    names = set()
    for package in (screens, widgets):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for node in vars(importlib.import_module(module.name)).values():
                if isinstance(node, type) and issubclass(node, DOMNode):
                    names |= {binding.id for binding in node.BINDINGS if isinstance(binding, Binding) and binding.id}
    async with running() as run:
        listed = [key.id for section in run.chat.all_keys().values() for key in section]
    assert names <= set(listed)
    assert len(set(listed)) == len(listed)


def test_each_entry_that_can_not_be_meant_is_said() -> None:
    keymap = {
        "chat.contxt": "f2",
        "composer.send": "ctrl+s, ctlr+x",
        "zzz": "f3",
        "chat.help": "",
        "chat.fold": "f3,f4",
    }
    assert keymap_problems(keymap, {"chat.context", "composer.send", "chat.help", "chat.fold"}) == [
        "The config file sets keys.chat.contxt, but no key has that name: did you mean chat.context?",
        "The config file sets keys.chat.help to '', which is not a key; write it like ctrl+s or f2.",
        "The config file sets keys.composer.send to 'ctlr+x', which is not a key; write it like ctrl+s or f2.",
        "The config file sets keys.zzz, but no key has that name: /help lists them.",
    ]

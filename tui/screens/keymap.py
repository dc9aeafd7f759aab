"""What is wrong with the keys that a person set: names that no key has, keys that there are not. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

from textual.keys import KEY_NAME_REPLACEMENTS, Keys, key_to_character

MODIFIERS = frozenset({"ctrl", "alt", "shift", "meta", "super", "hyper"})
_NAMED = frozenset(key.value.rpartition("+")[2] for key in Keys) | frozenset(KEY_NAME_REPLACEMENTS.values())


def is_key(text: str) -> bool:
    """Whether a terminal may send it, as Textual writes it: `f2`, `ctrl+s`, `ctrl+slash`, `question_mark` (or `?`)."""
    *modifiers, key = text.split("+") if text != "+" else [text]
    if len(key) == 1 and modifiers:  # a sign goes by its name there
        known = key.isalnum() or key in _NAMED
    else:
        known = len(key) == 1 or key in _NAMED or key_to_character(key) is not None
    return known and MODIFIERS.issuperset(modifiers)


def keymap_problems(keymap: Mapping[str, str], names: Collection[str]) -> list[str]:
    """A line for a person for each entry that can't be meant; `names` are those that keys have."""
    found = []
    for name, keys in sorted(keymap.items()):
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            step = f"did you mean {near[0]}?" if near else "/help lists them."
            found.append(f"The config file sets keys.{name}, but no key has that name: {step}")
        elif wrong := [key for key in map(str.strip, keys.split(",")) if not is_key(key)]:
            found.append(
                f"The config file sets keys.{name} to {wrong[0]!r}, which is no key; write it like ctrl+s or f2."
            )
    return found

"""Whether a tool call runs, asks first, or is refused. Pure.

Only a person's decision counts: the config file, and earlier answers. Text written by a model, held in a file or sent
by a server about its own tools is not considered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from tui.config.settings import Rule
from tui.context.counting.digests import tool_digest
from tui.tools.base import Tool

Decision: TypeAlias = Literal["once", "session", "always", "no", "never"]
"""A person's answer to a call that asks: run it once; always in this conversation; always everywhere;
not this time; never."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A stored answer: "allow" or "never". `fingerprint` is that of the tool it was given for."""

    tool: str
    rule: Rule
    fingerprint: str


def fingerprint(tool: Tool) -> str:
    """Changes with everything a person was shown about a tool, so that an answer is void for another description."""
    return tool_digest(tool.schema).hex()


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a tool's name is among `patterns`, which may hold `*` and `?`."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def rule_of(name: str, rules: Mapping[str, Rule]) -> Rule | None:
    """The config's rule for a tool: "never" wins, then the longest matching pattern. None if none matches."""
    matching = [(pattern, rule) for pattern, rule in rules.items() if fnmatchcase(name, pattern)]
    if any(rule == "never" for _, rule in matching):
        return "never"
    return max(matching, key=lambda pair: (pair[0] == name, len(pair[0])))[1] if matching else None


def verdict(
    tool: Tool,
    *,
    rules: Mapping[str, Rule],
    remembered: Mapping[str, Remembered],
    session: AbstractSet[tuple[str, str]] = frozenset(),
    must_ask: bool = False,
) -> Rule:
    """What to do with a call of `tool`.

    "never" always wins. `session` has (name, fingerprint) of tools allowed for this conversation. `must_ask`: this call
    asks in any case (for a file that may hold a secret).
    """
    name = tool.schema.name
    answer, set_rule = remembered.get(name), rule_of(name, rules)
    if set_rule == "never" or (answer is not None and answer.rule == "never"):
        return "never"
    if must_ask:
        return "ask"
    if (name, fingerprint(tool)) in session or (answer is not None and answer.fingerprint == fingerprint(tool)):
        return "allow"
    if set_rule is not None:
        return set_rule
    return "allow" if tool.read_only else "ask"

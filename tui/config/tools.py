"""The `[tools]` table of the config file: what is offered, what runs without asking, how much of a result goes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, get_args

from tui.context.usage.limits import Percent, Tokens

Rule: TypeAlias = Literal["allow", "ask", "never"]
"""Whether a tool runs without asking, asks first, or is not run at all."""

MOST_STEPS = 1_000
MOST_WAIT = 120  # seconds


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """Tools as a person set them. Names may be patterns: "github__*" is every tool of that server.

    `allow`: folders outside the working directory that the built-in tools may read. `steps`: tool steps of one turn.
    `result_tokens`: tokens of a result that enter the conversation; the rest is kept and can be opened.
    `defer`: what the schemas of MCP servers may take before they wait until the model searches for them, in percent of
    the window (a float) or tokens; None is the default. `wait`: seconds the first message waits for servers that start.
    """

    off: tuple[str, ...] = ()
    allow: tuple[Path, ...] = ()
    rules: Mapping[str, Rule] = field(default_factory=dict)
    steps: int = 100
    result_tokens: int = 10_000
    defer: Percent | Tokens | Literal["off"] | None = None
    wait: float = 5.0


class Reader(Protocol):
    """What the config file's reader lends: complaints that name file and key."""

    def fail(self, text: str) -> Exception: ...
    def table(self, name: str, value: object) -> dict[str, Any]: ...
    def typed(self, name: str, value: object, kind: type, words: str) -> Any: ...
    def place(self, name: str, value: object) -> Path: ...
    def count(self, name: str, value: object) -> int: ...
    def compaction(self, name: str, value: object) -> Percent | Tokens | Literal["off"]: ...
    def check_names(self, table: Mapping[str, object], known: set[str], prefix: str) -> None: ...


def read_tools(value: object, reader: Reader) -> ToolSettings:
    """The table as settings. Raises what `reader.fail` makes."""
    table = reader.table("tools", value)
    reader.check_names(table, {f.name for f in fields(ToolSettings)}, "tools.")
    values: dict[str, Any] = {}
    for name, entry in table.items():
        where = f"tools.{name}"
        match name:
            case "off":
                values[name] = _texts(where, entry, "tool names", '["search_files"]', reader)
            case "allow":
                folders = _texts(where, entry, "folders", '["~/notes"]', reader)
                values[name] = tuple(reader.place(where, folder) for folder in folders)
            case "rules":
                rules = reader.table(where, entry)
                values[name] = {tool: _rule(f"{where}.{tool}", rule, reader) for tool, rule in rules.items()}
            case "steps":
                steps = reader.typed(where, entry, int, "a number of steps")
                if isinstance(steps, bool) or not 1 <= steps <= MOST_STEPS:
                    raise reader.fail(f"{where} is {entry!r}; it has to be between 1 and {MOST_STEPS}")
                values[name] = steps
            case "result_tokens":
                values[name] = reader.count(where, entry)
            case "defer":
                values[name] = reader.compaction(where, entry)
            case "wait":
                if isinstance(entry, bool) or not isinstance(entry, int | float) or not 0 <= entry <= MOST_WAIT:
                    raise reader.fail(f"{where} is {entry!r}; it has to be a number of seconds up to {MOST_WAIT}")
                values[name] = float(entry)
    return ToolSettings(**values)


def _texts(where: str, value: object, what: str, example: str, reader: Reader) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(entry, str) and entry.strip() for entry in value):
        raise reader.fail(f"{where} is {value!r}; it has to be a list of {what}, like {example}")
    return tuple(dict.fromkeys(value))


def _rule(where: str, value: object, reader: Reader) -> Rule:
    rules: tuple[Rule, ...] = get_args(Rule)
    for rule in rules:
        if value == rule:
            return rule
    raise reader.fail(f"{where} is {value!r}; use one of {', '.join(rules)}")

"""The `[tools]` table of the config file: what is offered, what runs without asking, how much of a result is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from tui.config.tables import setting, tables_kind
from tui.config.values import COMPACTION, TOKENS, TOKENS_OR_OFF, Compaction, choice, number, parse_path, texts

Rule: TypeAlias = Literal["allow", "ask", "never"]
"""Whether a tool runs without asking, asks first, or is not run at all."""

MOST_STEPS = 1_000
MOST_WAIT = 120  # seconds


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """A person's settings for tools. Names may be patterns: "github__*" is every tool of that server."""

    off: tuple[str, ...] = setting(
        texts("tool names", '["search_files"]'), (), "tools that are not offered to the model; patterns like github__*"
    )
    allow: tuple[Path, ...] = setting(
        texts("folders", '["~/notes"]', parse_path), (), "folders outside the working directory that tools may read"
    )
    rules: Mapping[str, Rule] = setting(
        tables_kind(choice(*get_args(Rule)), "[tools.rules]"),
        dict,
        "tools, or patterns of tools, that run without asking (allow), ask first (ask), or do not run (never)",
    )
    steps: int = setting(
        number(1, MOST_STEPS, "a number of steps", integer=True), 100, "tool steps in one turn, after which it stops"
    )
    result_tokens: int = setting(
        TOKENS, 10_000, "tokens of a result that enter the conversation; the rest is kept and can be opened"
    )
    defer: Compaction | None = setting(
        COMPACTION,
        None,
        "what schemas of MCP servers may take, in percent of the window or tokens, before they wait until the model"
        " searches for them",
    )
    instructions: int | Literal["off"] = setting(
        TOKENS_OR_OFF, 1_000, 'tokens that the instructions of an MCP server may take; more is cut, "off" sends none'
    )
    wait: float = setting(
        number(0, MOST_WAIT, "a number of seconds"), 5.0, "seconds the first message waits for servers that start"
    )

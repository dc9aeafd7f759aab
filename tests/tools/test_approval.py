from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tui.config.settings import Rule
from tui.messages import ToolSchema
from tui.tools.approval import Remembered, fingerprint, rule_of, verdict
from tui.tools.base import Tool, ToolOutput


async def run(_: Mapping[str, Any]) -> ToolOutput:
    return ToolOutput("")


def tool(description: str = "Writes.", *, read_only: bool = False) -> Tool:
    return Tool(ToolSchema("gh__write", description, "{}", "gh"), read_only, run)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, None),
        ({"other": "never"}, None),
        ({"gh__*": "ask"}, "ask"),
        ({"gh__*": "ask", "gh__write": "allow"}, "allow"),
        ({"*": "allow", "gh__*": "ask"}, "ask"),
        ({"gh__write": "allow", "*": "never"}, "never"),
        ({"gh__w*": "allow", "gh__write*": "ask"}, "ask"),
    ],
)
def test_the_most_exact_rule_holds_and_never_wins(rules: dict[str, Rule], expected: Rule | None) -> None:
    assert rule_of("gh__write", rules) == expected


@pytest.mark.parametrize("read_only", [True, False])
def test_without_a_word_what_reads_runs_and_the_rest_asks(read_only: bool) -> None:
    assert verdict(tool(read_only=read_only), rules={}, remembered={}) == ("allow" if read_only else "ask")
    assert verdict(tool(read_only=read_only), rules={}, remembered={}, must_ask=True) == "ask"


def test_never_wins_wherever_it_was_said() -> None:
    remembered = {"gh__write": Remembered("gh__write", "never", "old")}
    session = frozenset({("gh__write", fingerprint(tool()))})
    assert verdict(tool(), rules={"gh__write": "allow"}, remembered=remembered, session=session) == "never"
    yes = {"gh__write": Remembered("gh__write", "allow", fingerprint(tool()))}
    assert verdict(tool(), rules={"gh__*": "never"}, remembered=yes, session=session) == "never"
    assert verdict(tool(), rules={"gh__*": "never"}, remembered={}, must_ask=True) == "never"


def test_an_answer_holds_for_the_tool_as_it_was() -> None:
    yes = {"gh__write": Remembered("gh__write", "allow", fingerprint(tool()))}
    session = frozenset({("gh__write", fingerprint(tool()))})
    assert verdict(tool(), rules={"*": "ask"}, remembered=yes) == "allow"
    assert verdict(tool("Writes anywhere."), rules={}, remembered=yes) == "ask"
    assert verdict(tool("Writes anywhere."), rules={}, remembered={}, session=session) == "ask"
    assert verdict(tool(), rules={}, remembered=yes, session=session, must_ask=True) == "ask"

"""What the tools cost is measured by the calls that include them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.context.helpers import MODEL, WordTokenizer, answer, estimator, registered, request, user
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.usage.limits import BudgetSettings, ModelLimits
from tui.context.usage.rows import UsageRow
from tui.context.usage.usage import calculate_context_usage
from tui.messages import Request, ToolSchema, Usage

TOOLS = (
    ToolSchema("read_file", "Reads a file " * 10, '{"type":"object"}'),
    ToolSchema("gh__issue", "Makes an issue " * 20, '{"type":"object"}', "gh"),
)
TRUE_TOOLS, TRUE_SYSTEM = 190, 60  # what the server really makes of them: not what is estimated
SYSTEM = "Be brief. " * 20


@pytest.fixture(autouse=True)
def _words() -> Iterator[None]:
    with registered(MODEL, WordTokenizer()):
        yield


def rows(known: HybridTokenEstimator, asked: Request) -> dict[str, UsageRow]:
    usage = calculate_context_usage(
        asked, estimator=known, limits=ModelLimits(100_000, source="probe"), settings=BudgetSettings()
    )
    assert sum(row.tokens for row in usage.rows) == usage.total
    for row in usage.rows:
        assert not row.items or sum(item.tokens for item in row.items) == row.tokens
    return {row.key: row for row in usage.rows}


def real(asked: Request) -> int:
    """What the server counts."""
    words = sum(len(message.text.split()) + 4 for message in asked.messages)
    return words + 3 + TRUE_TOOLS * bool(asked.tools) + TRUE_SYSTEM * bool(asked.system)


def measure(known: HybridTokenEstimator, asked: Request) -> Request:
    """Send it; the next request is the conversation with one more exchange."""
    reply = answer("Certainly.")
    known.record(asked, reply, Usage(real(asked), 6), learn=True, at=1.0)
    return replace(asked, messages=(*asked.messages, reply, user("go on")))


@pytest.mark.parametrize("words", [1, 600])
@pytest.mark.parametrize("tools_first", [True, False])
def test_a_call_with_the_tools_and_one_without_tell_what_they_cost(tools_first: bool, words: int) -> None:
    known = estimator()
    asked = request(user("hello " * words), system=SYSTEM, tools=TOOLS if tools_first else ())
    assert rows(known, replace(asked, tools=TOOLS))["tools"].source == "estimated"
    asked = replace(measure(known, asked), tools=() if tools_first else TOOLS)
    asked = replace(measure(known, asked), tools=TOOLS)
    found = rows(known, asked)
    assert (found["tools"].source, found["system"].source) == ("derived", "estimated")
    assert found["tools"].tokens == pytest.approx(TRUE_TOOLS, abs=12)
    assert [(item.name, item.group, item.source) for item in found["tools"].items] == [
        ("read_file", "built-in", "derived"),
        ("gh__issue", "gh", "derived"),
    ]
    assert found["tools"].items[1].tokens > found["tools"].items[0].tokens


def test_with_tools_alone_before_the_messages_the_first_call_tells() -> None:
    known = estimator()
    asked = request(user("hello"), tools=TOOLS)
    assert rows(known, asked)["tools"].source == "estimated"
    asked = measure(known, asked)
    assert rows(known, asked)["tools"].source == "derived"
    assert rows(known, asked)["tools"].tokens == pytest.approx(TRUE_TOOLS, abs=6)


def test_what_one_call_cannot_tell_apart_stays_an_estimate() -> None:
    known = estimator()
    found = rows(known, measure(known, request(user("hello"), system=SYSTEM, tools=TOOLS)))
    assert (found["tools"].source, found["system"].source) == ("estimated", "estimated")


def test_other_tools_are_estimated_again() -> None:
    known = estimator()
    asked = measure(known, request(user("hello"), tools=TOOLS))
    more = (*TOOLS, ToolSchema("new", "Does more " * 30, "{}"))
    assert rows(known, replace(asked, tools=more))["tools"].source == "estimated"

"""The number shown is that of the request that would be sent: while an answer arrives, after it, after Enter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat.fakes import ScriptedProvider, drain, of, open_workspace, real_tokens
from tui.chat.conversation.events import ReplyDelta, UsageChanged
from tui.messages import Reasoning, Usage
from tui.providers.base import (
    Capabilities,
    ReasoningDelta,
    ReasoningMeta,
    ReasoningReturn,
    StreamEnd,
    StreamEvent,
    TextDelta,
    UsageUpdate,
)

THOUGHT = "Perhaps the lazy dog is a parser after all, and nobody has asked it. " * 60
ANSWER = "Forty-two parsers, as far as I can see. " * 4


def thinking(sent: int) -> list[StreamEvent]:
    """An answer after long reasoning, whose tokens the server tells apart."""
    thought, answer = len(THOUGHT) // 4, len(ANSWER) // 4
    return [
        ReasoningDelta(THOUGHT),
        ReasoningMeta(signature="sig"),
        TextDelta(ANSWER),
        UsageUpdate(Usage(sent, thought + answer, reasoning=thought)),
        StreamEnd("stop", "stop"),
    ]


@pytest.mark.parametrize("returned", ["never", "tool_loop", "always"])
async def test_what_the_bar_shows_before_enter_is_what_goes_out(tmp_path: Path, returned: ReasoningReturn) -> None:
    provider = ScriptedProvider(able=Capabilities(reasoning_return=returned), report_usage=False)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        for number in range(3):
            question = f"{number} how many dogs are parsers?"
            usage = await session.refresh_usage()
            shown, real = usage.total, real_tokens(session.conversation.request())
            provider.script = [thinking(real_tokens(session.conversation.request()) + 14)]
            events = await drain(session.send(question))
            sent = next(event.usage for event in of(UsageChanged, events))
            added = sent.total - shown
            assert 0 <= added <= 40, (number, returned)  # the question, and no reasoning that comes or goes
            assert real_tokens(provider.requests[-1]) - real <= 40
            there = any(isinstance(part, Reasoning) for m in provider.requests[-1].messages for part in m.parts)
            assert there == (returned == "always" and number > 0)


async def test_the_number_grows_while_an_answer_arrives_and_ends_where_it_was_heading(tmp_path: Path) -> None:
    pieces: list[StreamEvent] = [TextDelta("a word and another one. ") for _ in range(200)]
    provider = ScriptedProvider([[*pieces, StreamEnd("stop", "stop")]])
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send("write"))
        first = next(i for i, event in enumerate(events) if isinstance(event, ReplyDelta))
        totals = [event.usage for event in events[first:] if isinstance(event, UsageChanged)]
        growing, final = totals[:-1], totals[-1]
        assert len(growing) > 10
        assert [usage.total for usage in growing] == sorted(usage.total for usage in growing)
        assert all(usage.source != "exact" for usage in growing)
        assert all(sum(row.tokens for row in usage.rows) == usage.total for usage in growing)
        assert final.source == "exact"
        assert growing[-1].total == pytest.approx(final.total, rel=0.25)

"""Compaction as a session does it: how often it is tried, what it is asked with, what it leaves alone."""

from __future__ import annotations

from pathlib import Path

from tests.chat.fakes import Answer, ScriptedProvider, answer, drain, open_workspace, real_tokens
from tui.chat.events import CompactionFinished, CompactionStarted, TurnFailed
from tui.messages import Request
from tui.providers.base import ProviderError

LONG = "The keeper counts the boats in the harbour, and writes the number into the book with the red spine. " * 10


def is_summary(request: Request) -> bool:
    return request.messages[-1].id == "summary-request"


async def test_one_try_for_each_measurement_also_when_the_server_refuses_after_it(tmp_path: Path) -> None:
    def reply(request: Request) -> Answer:
        return [ProviderError("auth", "no")] if is_summary(request) else answer("Noted.")

    provider = ScriptedProvider(window=2_000, claimed=100_000, fallback=reply)
    async with open_workspace(tmp_path, provider, compaction=1_600) as workspace:
        session = await workspace.new_session()
        for number in range(6):
            await drain(session.send(f"{number} {LONG}"))
        assert not any(map(is_summary, provider.requests))
        del provider.requests[:]
        events = await drain(session.send(LONG * 4))
        assert not [e for e in events if isinstance(e, TurnFailed)]
        assert [is_summary(request) for request in provider.requests] == [True, True, False, False]  # refused, repeated
        assert len([e for e in events if isinstance(e, CompactionStarted)]) == 1


async def test_after_an_overflow_no_summary_is_asked_behind_the_conversation_that_overflowed(tmp_path: Path) -> None:
    def reply(request: Request) -> Answer:
        if not is_summary(request) and real_tokens(request) > 3_000:
            return [ProviderError("overflow_input", "too long")]
        return answer("Noted. " * 10)

    provider = ScriptedProvider(window=None, claimed=100_000, report_usage=False, fallback=reply)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        events: list[object] = []
        for number in range(18):
            events += await drain(session.send(f"{number} {LONG}"))
        assert [e for e in events if isinstance(e, CompactionFinished)]
        asked = [request for request in provider.requests if is_summary(request)]
        assert asked
        assert all(len(request.messages) == 1 for request in asked)


async def test_pinned_messages_go_out_word_for_word_behind_the_summary(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=20_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        for number in range(8):
            await drain(session.send(f"{number} {LONG}"))
        pinned = session.messages[2]
        await session.pin(pinned.id, True)
        assert [e for e in await drain(session.compact()) if isinstance(e, CompactionFinished)]
        await drain(session.send("on"))
        assert provider.requests[-1].messages[1] == pinned
        assert session.not_sent.get(pinned.id) is None

"""A server's own compaction that goes wrong: its seal refused, not asked for, of no use, with a count that hangs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.chat.compaction.test_sealed_summaries import chat, sealed
from tests.chat.compaction.test_server_compaction import ABLE, AT, LONG, SETTINGS, Compacting, going, seals
from tests.chat.fakes import Answer, answer, drain, of, open_workspace
from tui.chat.conversation.events import CompactionFinished, Notice, TurnFailed
from tui.config.settings import ModelSettings
from tui.context.usage.limits import Tokens
from tui.messages import Request
from tui.providers.base import (
    Capabilities,
    Compacted,
    ReasoningDelta,
    ReasoningMeta,
    StreamEnd,
    StreamEvent,
    TextDelta,
)
from tui.providers.http.errors import classify_error

UNREADABLE = "The encrypted content gAAA...9Qa== could not be verified."


@dataclass
class Refusing(Compacting):
    """Refuses what it does not take, in OpenAI's words."""

    seal: str = ""  # what it says to a seal
    parameter: bool = False
    asked_for: list[int | None] = field(default_factory=list)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        self.asked_for.append(request.compact_at)
        said = self.seal if seals(request.messages) else ""
        if self.parameter and request.compact_at is not None:
            said = "Unknown parameter: 'context_management'."
        if said:
            raise classify_error(400, {"error": {"message": said, "type": "invalid_request_error"}}, provider=self.name)
        async for event in super().stream(request):
            yield event


def thinking() -> Answer:
    return [ReasoningDelta("Hm.", 0), ReasoningMeta(0, encrypted="gAAA"), TextDelta("Yes."), StreamEnd("stop", "stop")]


@pytest.mark.parametrize("thinks", [False, True])
@pytest.mark.parametrize("said", [UNREADABLE, "The encrypted content for item cmp_0f could not be verified."])
async def test_a_seal_that_is_refused_gives_way_to_what_it_stands_for(tmp_path: Path, said: str, thinks: bool) -> None:
    """A key of another organisation, another model behind the name: without this no answer would ever come again."""
    provider = Refusing(able=replace(ABLE, reasoning_return="always"))
    if thinks:
        provider.fallback = lambda _: thinking()
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        await sealed(session, provider)
        provider.seal = said
        events = await drain(session.send("Are you there?"))
        assert not of(TurnFailed, events)
        told = [notice.text for notice in of(Notice, events)]
        expected = [True, False] if thinks and said == UNREADABLE else [False]
        assert ["earlier reasoning" in text for text in told] == expected
        assert "refused its own summary" in told[-1]
        # All of it is over the threshold again, and what the server would seal it would refuse again: we compact.
        assert len(of(CompactionFinished, events)) == 1 and not of(CompactionFinished, events)[0].by
        assert not of(TurnFailed, await drain(session.send("And now?")))
        assert provider.asked_for[-1] is None and await session.undo() is not None
        assert [m.id for m in going(session).messages] == chat(session)
        ident = session.id
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.resume(ident)
        assert not seals(going(session).messages)


async def test_a_server_that_does_not_know_how_is_asked_without_it(tmp_path: Path) -> None:
    provider = Refusing(parameter=True)
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send("Hello."))
        assert not of(TurnFailed, events) and ["does not compact" in n.text for n in of(Notice, events)] == [True]
        assert not of(Notice, await drain(session.send("Hello again.")))
        assert provider.asked_for == [AT, None, None]


@pytest.mark.parametrize("able", [ABLE, Capabilities(count_endpoint=True)])
async def test_what_was_not_asked_for_is_not_gone_by(tmp_path: Path, able: Capabilities) -> None:
    provider = Compacting([[Compacted("gAAA" * 500, "cmp_1"), *answer()]], able=able)
    models = {
        "scripted/m": ModelSettings(compaction=Tokens(900), reserve_output=500)
    }  # less than a server may be asked for
    async with open_workspace(tmp_path, provider, models=models) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send(LONG))
        assert not of(CompactionFinished, events) and not of(Notice, events)
        assert [m.id for m in going(session).messages] == chat(session) and len(session.messages) == 2


@pytest.mark.parametrize("system", ["", "Be good. " * 1_200])
async def test_a_compaction_that_makes_nothing_smaller_is_not_asked_for_again(tmp_path: Path, system: str) -> None:
    """A seal of megabytes, a system prompt over the threshold: it would be made, and paid for, with every request."""
    provider = Compacting(counts=bool(system))
    async with open_workspace(tmp_path, provider, system=system, **SETTINGS) as workspace:
        session = await workspace.new_session()
        events: list[object] = []
        if not system:
            provider.script = [[Compacted("A" * 5_000_000, "cmp_1"), *answer()]]
        for _ in range(4):
            events += await drain(session.send(LONG))
        assert provider.sealed == (1 if system else 0) and not of(TurnFailed, events)
        assert of(Notice, events)[0].text.startswith("scripted compacted to no use: ")
        assert not of(CompactionFinished, events) and [m.id for m in going(session).messages] == chat(session)


async def test_one_that_stays_over_the_threshold_is_the_last(tmp_path: Path) -> None:
    provider = Compacting(window=10_000)
    async with open_workspace(tmp_path, provider, system="Be good. " * 800, **SETTINGS) as workspace:
        session = await workspace.new_session()
        await drain(session.send(LONG * 2))
        await session.pin(session.messages[0].id, True)
        first = of(CompactionFinished, await drain(session.send(LONG * 8)))
        assert [event.by for event in first] == ["scripted"] and first[0].before > first[0].after >= AT
        events = [event for _ in range(3) for event in await drain(session.send("Go on."))]
        assert provider.sealed == 1 and not of(TurnFailed, events)


async def test_excluding_everything_while_it_answers_is_no_error(tmp_path: Path) -> None:
    provider = Compacting()
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        provider.script = [[Compacted("gAAA" * 500, "cmp_1"), 0.0, *answer()]]
        events: list[Any] = []
        async for event in session.send("Hello."):
            events.append(event)
            if len(session.messages) == 1:
                await session.exclude(session.messages[0].id, True)
        assert not of(CompactionFinished, events) and not of(TurnFailed, events)


@dataclass
class Slow(Compacting):
    """Its counting route hangs once it is told to."""

    hangs: bool = False
    hanging: asyncio.Event = field(default_factory=asyncio.Event)

    async def count_tokens(self, request: Request) -> int | None:
        if self.hangs:
            self.hanging.set()
            await asyncio.Event().wait()
        return await super().count_tokens(request)


async def test_esc_ends_a_count_that_hangs_and_keeps_the_compaction(tmp_path: Path) -> None:
    provider = Slow()
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        await drain(session.send(LONG * 8))
        provider.hangs = True
        turn = asyncio.create_task(drain(session.send(LONG * 8)))
        await provider.hanging.wait()
        session.cancel()
        events = await turn
        assert len(of(CompactionFinished, events)) == 1 and seals(going(session).messages) == ["001"]
        assert session.usage is not None and session.usage.source != "exact"


async def test_esc_ends_a_count_before_anything_is_sent(tmp_path: Path) -> None:
    provider = Slow(hangs=True, able=Capabilities(count_endpoint=True, count_freely=True))
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        turn = asyncio.create_task(drain(session.send("Hello.")))
        await provider.hanging.wait()
        session.cancel()
        assert "Nothing was sent" in of(TurnFailed, await turn)[0].text and not provider.requests

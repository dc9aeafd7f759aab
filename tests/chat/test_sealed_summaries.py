"""Sealed summaries where something goes against them: refused, not asked for, of no use, retried, pinned, forked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.chat.fakes import Answer, Tools, answer, drain, of, open_workspace
from tests.chat.test_server_compaction import ABLE, AT, LONG, SETTINGS, Compacting, going, hidden, seals
from tui.chat.events import CompactionFinished, Notice, TurnFailed
from tui.chat.history import HistoryState, leaving
from tui.chat.session import ChatSession
from tui.config import ModelSettings
from tui.context.checkpoints import CompactionRecord
from tui.messages import Message, Request
from tui.providers.base import (
    Capabilities,
    Compacted,
    ReasoningDelta,
    ReasoningMeta,
    StreamEnd,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
)
from tui.providers.overflow import classify_error

UNREADABLE = "The encrypted content gAAA...9Qa== could not be verified."


@dataclass
class Refusing(Compacting):
    """Refuses what `field_` names of a request, in OpenAI's words."""

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


async def sealed(session: ChatSession, provider: Compacting, times: int = 1) -> None:
    """Write on until the server has compacted so often."""
    while provider.sealed < times:
        assert not of(TurnFailed, await drain(session.send(LONG * 4)))


def chat(session: ChatSession) -> list[str]:
    return [m.id for m in session.messages if m.kind == "chat"]


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
    models = {"scripted/m": ModelSettings(compaction=900, reserve_output=500)}  # less than a server may be asked for
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


def steps(count: int) -> list[Answer]:
    return [
        [ToolCallDelta(0, f"c{n}", "fetch", '{"id":1}'), StreamEnd("tool_calls", "tool_calls")] for n in range(count)
    ]


async def test_a_retry_begins_before_what_was_compacted_while_tools_ran(tmp_path: Path) -> None:
    provider = Compacting([*steps(8), answer()])
    async with open_workspace(tmp_path, provider, tools=Tools(lambda _: LONG * 4), **SETTINGS) as workspace:
        session = await workspace.new_session()
        await drain(session.send("Look at everything."))
        assert provider.sealed >= 1
        await drain(session.retry())
        assert [m.id for m in provider.requests[-1].messages] == [session.messages[0].id]
        assert [m.id for m in going(session).messages] == [session.messages[0].id, session.messages[-1].id]


async def test_a_retry_asks_although_the_answer_was_excluded(tmp_path: Path) -> None:
    provider = Compacting()
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        await sealed(session, provider)
        question, reply = (m for m in session.messages[-3:] if m.kind == "chat")
        await session.exclude(reply.id, True)
        await drain(session.retry())
        assert provider.requests[-1].messages[-1] is question


async def test_a_fork_in_the_middle_of_a_step_has_its_results(tmp_path: Path) -> None:
    """The server's compaction stands between a call and its results."""
    provider = Compacting([*steps(8), answer()])
    async with open_workspace(tmp_path, provider, tools=Tools(lambda _: LONG * 4), **SETTINGS) as workspace:
        session = await workspace.new_session()
        await drain(session.send("Look at everything."))
        at = next(i for i, m in enumerate(session.messages) if m.kind == "summary")
        calling, summary, results = session.messages[at - 1 : at + 2]
        for point in (calling, summary):
            fork = await workspace.fork(session.id, point.id)
            assert list(going(fork).messages) == [summary, calling, results]


async def test_a_summary_of_ours_holds_nothing_that_was_set_aside_or_excluded(tmp_path: Path) -> None:
    provider = Compacting(script=[answer("Noted."), answer("WRONG")], fallback=lambda _: answer("Noted."))
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        await drain(session.send(f"PRIVATE {LONG}"))
        await drain(session.send(f"My cat is called Mnemosyne. {LONG}"))
        await drain(session.retry())
        await session.exclude(session.messages[0].id, True)
        await sealed(session, provider)
        for _ in range(5):
            await drain(session.send("Go on."))
        provider.window = hidden(going(session)) + 1_500  # too little for a summary asked behind all of it
        await session.set_window(provider.window)
        provider.requests.clear()
        assert of(CompactionFinished, await drain(session.compact()))
        source = provider.requests[0].messages[0].text
        assert "Mnemosyne" in source and "WRONG" not in source and "PRIVATE" not in source


async def test_what_another_model_goes_by_hides_nothing_of_what_a_seal_stands_for(tmp_path: Path) -> None:
    """A seal, then a summary of ours with another model, then a second seal upon the first: ours is of no concern."""
    provider = Compacting(fallback=lambda _: answer("Noted."))
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        await drain(session.send(f"My cat is called Mnemosyne. {LONG}"))
        await sealed(session, provider)
        await session.set_model("scripted/small")
        for _ in range(4):
            await drain(session.send("Go on."))
        assert of(CompactionFinished, await drain(session.compact()))
        await session.set_model("scripted/m")
        await sealed(session, provider, 2)
        for _ in range(5):
            await drain(session.send("Go on."))
        provider.window = hidden(going(session)) + 1_500
        await session.set_window(provider.window)
        provider.requests.clear()
        assert of(CompactionFinished, await drain(session.compact()))
        assert "Mnemosyne" in "".join(request.messages[0].text for request in provider.requests)


async def test_a_pinned_seal_does_not_stand_behind_another_summary(tmp_path: Path) -> None:
    provider = Compacting(fallback=lambda _: answer("Noted."))
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        await sealed(session, provider)
        first = next(m for m in session.messages if m.kind == "summary")
        await session.pin(first.id, True)
        for _ in range(5):
            await drain(session.send("Go on."))
        assert of(CompactionFinished, await drain(session.compact())) and not seals(going(session).messages)
        await session.undo()
        assert seals(going(session).messages) == ["001"]
        await sealed(session, provider, 2)
        assert seals(going(session).messages) == ["002"]


async def test_only_what_is_in_force_here_is_counted_and_taken_back(tmp_path: Path) -> None:
    """One model goes by the server's compaction, the other by ours, made of what the first has sealed already."""
    provider = Compacting(fallback=lambda _: answer("Noted."))
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        await sealed(session, provider)
        await session.set_model("scripted/small")
        assert (await session.refresh_usage()).basis.compactions == 0 and await session.undo() is None
        for _ in range(4):
            await drain(session.send("Go on."))
        assert of(CompactionFinished, await drain(session.compact()))
        assert (await session.refresh_usage()).basis.compactions == 1
        await session.set_model("scripted/m")
        assert (await session.refresh_usage()).basis.compactions == 1 and seals(going(session).messages) == ["001"]
        assert await session.undo() is not None  # with it gone, ours holds here, too
        assert (await session.refresh_usage()).basis.compactions == 1 and going(session).messages[0].kind == "summary"
        assert await session.undo() is not None and [m.id for m in going(session).messages] == chat(session)
        assert await session.undo() is None


def test_what_is_made_of_a_seal_leaves_with_it() -> None:
    def record(ident: str, first: str, answered: str = "") -> CompactionRecord:
        return CompactionRecord(ident, 0.0, 9, 3, 2, first=first, last="m9", summary=f"s{ident}", answer=answered)

    records = (record("1", "m1", "m5"), record("2", "s1"), record("3", "m1"))
    state = leaving(HistoryState(checkpoints=records), frozenset({"m5"}))
    assert state.checkpoints == records[2:] and state.set_aside == {"m5", "s1", "s2"}


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


async def test_an_import_measures_what_was_sent(tmp_path: Path) -> None:
    provider = Compacting()
    async with open_workspace(tmp_path / "one", provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        await sealed(session, provider)
        await drain(session.send("Go on."))
        total = (await session.refresh_usage()).total
        await session.export(tmp_path / "out.jsonl")
    async with open_workspace(tmp_path / "two", provider, **SETTINGS) as workspace:
        info = await workspace.import_file(tmp_path / "out.jsonl")
        usage = await (await workspace.resume(info.id)).refresh_usage()
        assert (usage.source, usage.total) == ("exact", total)


async def test_a_seal_says_nothing_that_could_be_found(tmp_path: Path) -> None:
    provider = Compacting()
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        await sealed(session, provider)
        assert await workspace.sessions("gaaag") == [] and len(await workspace.sessions("parsers")) == 1


async def test_what_was_excluded_from_a_seal_comes_back_with_its_results(tmp_path: Path) -> None:
    provider = Compacting([*steps(1), answer()])
    async with open_workspace(tmp_path, provider, tools=Tools(), **SETTINGS) as workspace:
        session = await workspace.new_session()
        await drain(session.send("Look."))
        calling, results = session.messages[1:3]
        await session.exclude(calling.id, True)
        await sealed(session, provider)
        assert calling not in going(session).messages
        await session.exclude(calling.id, False)
        assert list(going(session).messages[1:3]) == [calling, results]


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


def test_the_maker_of_a_seal_is_what_the_seal_says() -> None:
    from tui.chat.projection import Target, readable
    from tui.messages import SealedSummary

    target = Target("p", "m", Capabilities(compacts_context=True))
    seal = Message("user", (SealedSummary("p", "other", "gAAA"),), kind="summary", provider="p", model="m")
    assert not readable(seal, target)

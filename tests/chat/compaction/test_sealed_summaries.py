"""Sealed summaries among all else: retries, forks, pins, exclusions, other models, summaries of ours, imports."""

from __future__ import annotations

from pathlib import Path

from tests.chat.compaction.test_server_compaction import LONG, SETTINGS, Compacting, going, hidden, seals
from tests.chat.fakes import Answer, Tools, answer, drain, of, open_workspace
from tui.chat.conversation.events import CompactionFinished, TurnFailed
from tui.chat.conversation.history import HistoryState, leaving
from tui.chat.turn.session import ChatSession
from tui.context.reduction.checkpoints import CompactionRecord
from tui.messages import Message
from tui.providers.base import (
    Capabilities,
    StreamEnd,
    ToolCallDelta,
)


async def sealed(session: ChatSession, provider: Compacting, times: int = 1) -> None:
    """Write on until the server has compacted so often."""
    while provider.sealed < times:
        assert not of(TurnFailed, await drain(session.send(LONG * 4)))


def chat(session: ChatSession) -> list[str]:
    return [m.id for m in session.messages if m.kind == "chat"]


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


def test_the_maker_of_a_seal_is_what_the_seal_says() -> None:
    from tui.chat.conversation.projection import Target, readable
    from tui.messages import SealedSummary

    target = Target("p", "m", Capabilities(compacts_context=True))
    seal = Message("user", (SealedSummary("p", "other", "gAAA"),), kind="summary", provider="p", model="m")
    assert not readable(seal, target)

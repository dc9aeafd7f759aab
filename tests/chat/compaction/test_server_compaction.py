"""A provider that compacts by itself: the numbers follow it, and what it sealed is all that goes out of the past."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.chat.fakes import Answer, ScriptedProvider, Tools, answer, drain, of, open_workspace, real_tokens
from tui.chat.conversation.events import CompactionFinished, ContextTrimmed, Notice, TurnFailed
from tui.chat.conversation.history import TRIM
from tui.chat.interchange.transfer import import_file
from tui.chat.store.database import StoreError
from tui.chat.store.store import SessionStore
from tui.chat.turn.session import ChatSession
from tui.config.settings import ModelSettings
from tui.context.reduction.trimming import TrimState
from tui.context.usage.limits import Tokens
from tui.messages import BilledPass, Message, Request, SealedSummary, ToolCall, Usage
from tui.providers.base import (
    Capabilities,
    Compacted,
    ProviderError,
    StreamEnd,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)

LONG = "The quick brown fox jumps over the lazy dog while forty-two parsers look on. " * 12
ABLE = Capabilities(compacts_context=True, count_endpoint=True)
HIDDEN = 530  # tokens of what is in a seal; by its length it would be 517
AT = 3_000


def hidden(request: Request) -> int:
    """The server's count of a request."""
    sealed = sum(isinstance(part, SealedSummary) for m in request.messages for part in m.parts)
    return real_tokens(request) + sealed * HIDDEN


@dataclass
class Compacting(ScriptedProvider):
    """Compacts a prompt over the asked-for threshold, as Responses does, and bills both passes in one sum."""

    able: Capabilities = ABLE
    window: int | None = 64_000
    real: list[int] = field(default_factory=list)
    sealed: int = 0
    counts: bool = True
    deaf: bool = False

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        for message in request.messages[1:]:  # what stands before it would be read and billed all the same
            assert not any(isinstance(part, SealedSummary) for part in message.parts)
        whole = hidden(request)
        self.real.append(whole)
        compacts = request.compact_at is not None and not self.deaf and whole > request.compact_at
        if compacts:
            self.sealed += 1
            yield Compacted(f"{self.sealed:03d}" + "gAAA" * 800, f"cmp_{self.sealed}")
        async for event in super().stream(request):
            if isinstance(event, UsageUpdate):
                output = event.usage.output_total or 0
                event = UsageUpdate(Usage(whole, output))
                if compacts:
                    both = BilledPass(whole + HIDDEN + 20, output + HIDDEN)
                    event = UsageUpdate(Usage(None, None, passes=(both,)))
            yield event

    async def count_tokens(self, request: Request) -> int | None:
        self.counted += 1
        return hidden(request) if self.counts else None


SETTINGS: dict[str, Any] = {"models": {"scripted/m": ModelSettings(compaction=Tokens(AT), reserve_output=500)}}


def going(session: ChatSession) -> Request:
    """What would go out next."""
    return session._conversation.request()


def seals(messages: Sequence[Message]) -> list[str]:
    return [part.encrypted[:3] for m in messages for part in m.parts if isinstance(part, SealedSummary)]


@pytest.mark.parametrize("counts", [True, False])
async def test_the_numbers_follow_what_the_server_compacted(tmp_path: Path, counts: bool) -> None:
    provider = Compacting(counts=counts)
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        events: list[object] = []
        while not provider.sealed:
            events = await drain(session.send(LONG))
        compacted = of(CompactionFinished, events)
        assert len(compacted) == 1 and compacted[0].line.startswith("scripted compacted")
        assert compacted[0].before > AT > compacted[0].after

        # The call that compacted measures no request: it is billed, and nothing was learned or anchored.
        reply = [m for m in session.messages if m.role == "assistant"][-1]
        assert reply.usage is not None and reply.usage.input_total is None and reply.usage.passes
        row = workspace.services.calls.rows(session.id)[-1]
        assert (row.input_total, row.usage_source) == (None, "provider")

        usage = session.usage
        assert usage is not None and sum(row.tokens for row in usage.rows) == usage.total
        assert [row.key for row in usage.rows if row.key == "summaries"]
        asked = going(session)
        assert seals(asked.messages) == ["001"] and asked.messages[0].kind == "summary"
        truth = hidden(asked)
        if counts:
            assert (usage.source, usage.total) == ("exact", truth)
        else:  # a guess by the seal's length, and known to be one
            assert usage.source != "exact" and usage.total < truth <= usage.upper_bound

        # From the next measured call on the numbers are as good as ever.
        for _ in range(3):
            await drain(session.send("And in one word?"))
        rows = workspace.services.calls.rows(session.id)[-2:]
        for row, real in zip(rows, provider.real[-2:], strict=True):
            assert row.predicted is not None and abs(row.predicted - real) <= 20
        assert provider.sealed == 1


async def test_it_compacts_again_and_only_the_newest_seal_goes_out(tmp_path: Path) -> None:
    provider = Compacting()
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        while provider.sealed < 3:
            assert not of(TurnFailed, await drain(session.send(LONG)))
        assert seals(going(session).messages) == ["003"]
        assert sum(m.role == "user" and m.kind == "chat" for m in session.messages) > 8  # the history is whole

        for left in ("002", "001"):  # one after the other is taken back
            line = await session.undo()
            assert line is not None and line.startswith("Taken back")
            assert seals(going(session).messages) == [left]
        assert await session.undo() is not None and not seals(going(session).messages)
        said = [m.id for m in session.messages if m.kind == "chat"]
        assert [m.id for m in going(session).messages] == said
        assert await session.undo() is None


async def test_what_one_model_sealed_goes_out_to_no_other(tmp_path: Path) -> None:
    provider = Compacting()
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        while provider.sealed < 2:
            await drain(session.send(LONG))
        ident, chat = session.id, [m.id for m in session.messages if m.kind == "chat"]
        sealed_usage = await session.refresh_usage()
        assert sealed_usage.basis.compactions == 2

        await session.set_model("scripted/small")
        usage = await session.refresh_usage()
        assert [m.id for m in going(session).messages] == chat
        assert usage.total > sealed_usage.total and usage.basis.compactions == 0
        assert all(m.kind == "summary" for m in session.messages if m.id in session.not_sent)
        await session.set_model("scripted/m")
        assert seals(going(session).messages) == ["002"]

    # Switched off in the config file, the conversation itself goes out again, and a restart changes nothing in that.
    provider.able = Capabilities(count_endpoint=True)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.resume(ident)
        assert [m.id for m in going(session).messages] == chat
        assert session.summaries.standing() is None
    provider.able = ABLE
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.resume(ident)
        assert seals(going(session).messages) == ["002"]
        assert session.summaries.standing() is None  # there is nothing to read in it


async def test_our_own_summary_is_made_from_what_the_seal_stands_for(tmp_path: Path) -> None:
    """A later summary covers a sealed one: its source is text, so it is what the sealed one stood for."""
    provider = Compacting(fallback=lambda request: answer(f"heard {len(request.messages)}"))
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        await drain(session.send(f"My cat is called Mnemosyne. {LONG}"))
        while provider.sealed < 2:
            await drain(session.send(LONG))
        for _ in range(5):
            await drain(session.send("Go on."))
        provider.window = hidden(going(session)) + 1_500  # too little for a summary asked behind all of it
        await session.set_window(provider.window)
        provider.requests.clear()
        events = await drain(session.compact())
        assert of(CompactionFinished, events), events
        asked = provider.requests[0]
        assert not seals(asked.messages) and "Mnemosyne" in asked.messages[0].text
        assert not seals(going(session).messages)

        # Another model, which can't use the seal, finds the range of the later summary all the same.
        mine = [m.id for m in going(session).messages]
        await session.set_model("scripted/small")
        assert [m.id for m in going(session).messages] == mine


async def test_pinned_messages_go_out_after_it_verbatim(tmp_path: Path) -> None:
    provider = Compacting()
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        await drain(session.send("Keep this."))
        await session.pin(session.messages[0].id, True)
        while not provider.sealed:
            await drain(session.send(LONG))
        sent = going(session).messages
        assert seals(sent[:1]) == ["001"] and sent[1] is session.messages[0] and len(sent) == 3


async def test_in_the_middle_of_a_tool_loop(tmp_path: Path) -> None:
    steps = 6
    script: list[Answer] = [
        [ToolCallDelta(0, f"c{n}", "fetch", '{"id":1}'), StreamEnd("tool_calls", "tool_calls")] for n in range(steps)
    ]
    provider = Compacting(script=[*script, answer()])
    async with open_workspace(tmp_path, provider, tools=Tools(lambda _: LONG * 4), **SETTINGS) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send("Look at everything."))
        assert not of(TurnFailed, events) and provider.sealed >= 1
        assert len(provider.requests) == steps + 1
        for request in provider.requests:  # every call with its results, always
            calls = [part.id for m in request.messages for part in m.parts if isinstance(part, ToolCall)]
            answered = [m.parts[0] for m in request.messages if m.role == "tool"]
            assert len(calls) == len(answered)


async def test_a_retry_takes_the_compaction_of_that_answer_back(tmp_path: Path) -> None:
    provider = Compacting()
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        while not provider.sealed:
            await drain(session.send(LONG))
        question = [m for m in session.messages if m.role == "user" and m.kind == "chat"][-1]
        await drain(session.retry())
        assert provider.requests[-1].messages[-1] is question  # asked again as it was, and compacted again
        assert seals(going(session).messages) == ["002"]
        await session.rewind(question.id)
        sent = going(session).messages
        assert not seals(sent) and all(m.id < question.id for m in sent)
        assert await session.undo() is None


async def test_an_answer_that_breaks_off_compacts_nothing(tmp_path: Path) -> None:
    provider = Compacting()
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        while not of(ProviderError, provider.script[0] if provider.script else []):
            if real_tokens(going(session)) + real_tokens(replace(going(session), messages=())) > AT - 250:
                provider.script = [[TextDelta("Half an"), ProviderError("network", "cut")]]
            else:
                await drain(session.send(LONG))
        before = [m.id for m in going(session).messages]
        events = await drain(session.send(LONG))
        assert provider.sealed == 1 and not of(CompactionFinished, events)
        assert [m.id for m in going(session).messages][: len(before)] == before


async def test_a_full_disk_costs_the_compaction_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Compacting()
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        conversation = session._conversation

        async def full(*_: object) -> None:
            raise StoreError("The disk is full")

        monkeypatch.setattr(conversation, "add_checkpoint", full)
        events: list[object] = []
        while not provider.sealed:
            events = await drain(session.send(LONG))
        assert any(
            "The disk is full" in notice.text and "holds all of it" in notice.text for notice in of(Notice, events)
        )
        assert [m.id for m in going(session).messages] == [m.id for m in session.messages]


async def test_where_it_does_not_compact_and_the_window_is_full_we_do(tmp_path: Path) -> None:
    provider = Compacting(window=6_000, fallback=lambda request: answer("Noted. " * 5))
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        provider.deaf = True
        events: list[object] = []
        while not of(CompactionFinished, events):
            events = await drain(session.send(LONG))
            assert not of(TurnFailed, events) and not of(ContextTrimmed, events), events
        assert provider.real[-1] < AT and provider.refused == 0 and max(provider.real) > AT


async def test_when_the_server_is_not_asked_to(tmp_path: Path) -> None:
    """Not under the least threshold it takes, not for what it was not sent, not while rolling context acts."""
    provider = Compacting()
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        await drain(session.send(f"{LONG} {LONG}"))
        await drain(session.send("Go on."))
        assert [request.compact_at for request in provider.requests] == [AT, AT]
        await session.set_rolling(True)
        await drain(session.send("Go on."))
        assert provider.requests[-1].compact_at is None
        await session.set_rolling(False)
        gone = TrimState(dropped=frozenset({session.messages[0].id, session.messages[1].id}))
        await session._conversation.add_record(TRIM, {"state": gone.to_json(), "messages": 2, "tokens": 500})
        assert session._meter.server_compacts_at(await session.refresh_usage()) is None
    small: dict[str, Any] = {"models": {"scripted/m": ModelSettings(compaction=Tokens(999), reserve_output=500)}}
    async with open_workspace(tmp_path / "small", provider, **small) as workspace:
        session = await workspace.new_session()
        await drain(session.send("Hello."))
        assert provider.requests[-1].compact_at is None


async def test_a_question_that_only_a_summary_of_ours_knows_is_not_asked_again(tmp_path: Path) -> None:
    provider = Compacting(able=Capabilities())
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        for _ in range(6):
            await drain(session.send(LONG[:600]))
        assert of(CompactionFinished, await drain(session.compact()))
        await session.rewind(next(m.id for m in going(session).messages if m.kind == "chat"))
        provider.requests.clear()
        assert "nothing to retry" in of(TurnFailed, await drain(session.retry()))[0].text and not provider.requests


async def test_a_retry_leaves_a_compaction_of_ours_in_force(tmp_path: Path) -> None:
    """Its summary was written after the question, and stands before it."""
    provider = Compacting(able=Capabilities())
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        for _ in range(6):
            await drain(session.send(LONG[:600]))
        assert of(CompactionFinished, await drain(session.compact()))
        first = going(session).messages[0]
        assert first.kind == "summary"
        await drain(session.retry())
        assert provider.requests[-1].messages[0] is first and going(session).messages[0] is first


async def test_it_travels_with_an_export(tmp_path: Path) -> None:
    provider = Compacting()
    async with open_workspace(tmp_path, provider, **SETTINGS) as workspace:
        session = await workspace.new_session()
        while not provider.sealed:
            await drain(session.send(LONG))
        sent = going(session).messages
        for ending in ("jsonl", "md", "html"):
            await session.export(tmp_path / f"out.{ending}")
    assert "only m reads it" in (tmp_path / "out.md").read_text()
    assert "only m reads it" in (tmp_path / "out.html").read_text()
    other = SessionStore(tmp_path / "other.db")
    copy = import_file(tmp_path / "out.jsonl", other)
    assert [m for m in other.messages(copy.id) if m.kind == "summary"] == [sent[0]]
    other.close()

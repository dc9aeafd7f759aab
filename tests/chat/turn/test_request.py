from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chat.fakes import Answer, ScriptedProvider, answer, converse, drain, of, open_workspace, real_tokens
from tests.usages import make_usage
from tui.chat.conversation.events import ContextTrimmed, Notice, TurnFailed
from tui.chat.store.codec import PartsBuilder
from tui.chat.store.database import StoreError
from tui.chat.turn.request import _narrowed, smaller_window
from tui.context.reduction.records import TRIM_LOG, TrimLog
from tui.messages import Message, Request
from tui.providers.base import ProviderError, StreamEnd, StreamEvent, TextDelta


class Disk:
    """Stores what streams; the first `failures` times it is full."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.writes = 0
        self.written = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._builder = PartsBuilder("p", "m")

    def append_events(self, session: str, message: str, events: Sequence[StreamEvent]) -> None:
        self.writes += 1
        self._loop.call_soon_threadsafe(self.written.set)
        if self.failures:
            self.failures -= 1
            raise StoreError("the disk is full")
        for event in events:
            self._builder.apply(event)

    @property
    def text(self) -> str:
        return Message("assistant", self._builder.parts()).text


class SlowProvider(ScriptedProvider):
    """Sends each piece after the one before it was written."""

    disk: Disk

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        for piece in ("one ", "two ", "three"):
            self.disk.written.clear()
            yield TextDelta(piece)
            await self.disk.written.wait()
        yield StreamEnd("stop", "stop")


@pytest.mark.parametrize(("failures", "stored"), [(1, "one two three"), (1_000, "")])
async def test_what_could_not_be_stored_is_stored_with_what_follows_or_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, stored: str
) -> None:
    monkeypatch.setattr("tui.chat.turn.request.FLUSH_SECONDS", 0.01)
    async with open_workspace(tmp_path, provider := SlowProvider()) as workspace:
        session = await workspace.new_session()
        provider.disk = Disk(failures)
        monkeypatch.setattr(workspace.store, "append_events", provider.disk.append_events)
        events = await drain(session.send("hello"))
        assert session.messages[-1].text == "one two three"
    assert provider.disk.text == stored
    problems = [notice.text for notice in of(Notice, events) if notice.level == "error"]
    assert [text.partition(".")[0] for text in problems] == ([] if stored else ["the disk is full"])


async def test_nothing_is_written_while_nothing_arrives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.chat.turn.request.FLUSH_SECONDS", 0.001)
    provider = ScriptedProvider([[TextDelta("a word "), 0.05, *answer("and the end")]])
    async with open_workspace(tmp_path, provider) as workspace:
        session, disk = await workspace.new_session(), Disk(0)
        monkeypatch.setattr(workspace.store, "append_events", disk.append_events)
        await drain(session.send("hello"))
    assert disk.writes <= 4  # one for each event that arrived, at most


LONG = "The keeper counts the boats in the harbour, and writes the number into the book with the red spine. " * 10


def test_the_less_is_known_the_more_is_left_out() -> None:
    measured, guessed = make_usage(80_000, 120_000), replace(make_usage(80_000, 120_000), source="estimated")
    assert [b.max_input for b in _narrowed(measured)] == [72_000]
    assert [b.max_input for b in _narrowed(guessed)] == [53_333, 60_000, 72_000]
    named = make_usage(130_000, 120_000)  # the refusal named a limit, which is in the budget
    assert _narrowed(named) == (named.budget,)
    unknown = replace(make_usage(80_000, None), source="estimated")
    assert [b.max_input for b in _narrowed(unknown)] == [53_333, 60_000, 72_000]


def test_a_refusal_without_a_number_tells_a_window_only_of_a_request_that_surely_fitted() -> None:
    measured = make_usage(80_000, 120_000)
    assert smaller_window(measured, None) == int(0.9 * measured.upper_bound) + 16_000
    assert smaller_window(replace(measured, source="estimated"), None) is None
    assert smaller_window(replace(measured, upper_bound=110_000), None) is None
    assert smaller_window(make_usage(80_000, None), None) is None
    assert smaller_window(measured, 90_000) == 81_000 + 16_000
    assert smaller_window(measured, 130_000) is None  # the number here was too small, not the window


@pytest.mark.parametrize("rolling", [True, False])
async def test_a_server_that_hides_usage_and_names_no_number_refuses_a_few_times_and_no_turn_fails(
    tmp_path: Path, rolling: bool
) -> None:
    """What it counts is two fifths more than the estimate, and nobody says so."""
    refused = 0

    def reply(request: Request) -> Answer:
        nonlocal refused
        if 1.4 * real_tokens(request) + (request.max_output or 0) > 4_000:
            refused += 1
            return [ProviderError("overflow_input", "too long")]
        return answer("Noted. " * 10)

    provider = ScriptedProvider(window=None, claimed=4_000, report_usage=False, fallback=reply)
    async with open_workspace(tmp_path, provider, rolling_context=rolling) as workspace:
        session = await workspace.new_session()
        for number in range(24):
            assert not [e for e in await drain(session.send(f"{number} {LONG}")) if isinstance(e, TurnFailed)]
    assert 1 <= refused <= 6


@pytest.mark.parametrize("rolling", [True, False])
async def test_a_window_that_shrinks_without_a_number_is_approached_from_above_and_no_turn_fails(
    tmp_path: Path, rolling: bool
) -> None:
    """Bedrock names none. Its server was restarted with a third of what it says of itself."""
    refused = 0

    def reply(request: Request) -> Answer:
        nonlocal refused
        if real_tokens(request) > 3_000:
            refused += 1
            return [ProviderError("overflow_input", "too long")]
        return answer("Noted. " * 10)

    provider = ScriptedProvider(window=None, claimed=10_000, fallback=reply)
    async with open_workspace(tmp_path, provider, rolling_context=rolling) as workspace:
        session = await workspace.new_session()
        for number in range(24):
            assert not [e for e in await drain(session.send(f"{number} {LONG}")) if isinstance(e, TurnFailed)]
        limits = workspace.services.models.limits("scripted", session.conversation.target.model)
    assert 1 <= refused <= 3
    assert limits.context is not None
    assert 3_000 <= limits.context <= 4_500
    assert limits.detail == "at most: its server refused more"


async def test_a_refusal_that_counts_more_than_the_window_leaves_the_window_as_it_is(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=None, claimed=10_000)
    async with open_workspace(tmp_path, provider, rolling_context=True) as workspace:
        session = await workspace.new_session()
        await converse(session, 3, LONG)
        provider.script = [[ProviderError("overflow_input", "prompt is too long: 12000 tokens", input_tokens=12_000)]]
        await drain(session.send(LONG))
        assert workspace.services.models.limits("scripted", session.conversation.target.model).context == 10_000


async def test_usage_hears_of_every_request_under_rolling_context_and_of_every_trim(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=4_000, fallback=lambda _: answer("Noted. " * 10))
    async with open_workspace(tmp_path, provider, rolling_context=True) as workspace:
        session = await workspace.new_session()
        events = await converse(session, 20, LONG)
        trims = [e for e in events if isinstance(e, ContextTrimmed)]
        log = TrimLog.from_json(workspace.store.state(TRIM_LOG))
        assert (log.requests, log.trimmed) == (20, len(trims))
        assert trims
        assert list(log.latest) == [trim.tokens for trim in trims]
        assert log.average_utilisation is not None
        assert 20 < log.average_utilisation < 100

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from tests.chat.fakes import ScriptedProvider, drain, of, open_workspace
from tui.chat.conversation.events import Notice
from tui.chat.store.codec import PartsBuilder
from tui.chat.store.database import StoreError
from tui.chat.turn import attempt
from tui.messages import Message, Request
from tui.providers.base import StreamEnd, StreamEvent, TextDelta


class Disk:
    """Stores what streams; the first `failures` times it is full."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.written = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._builder = PartsBuilder("p", "m")

    def append_events(self, session: str, message: str, events: Sequence[StreamEvent]) -> None:
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
    monkeypatch.setattr(attempt, "FLUSH_SECONDS", 0.01)
    async with open_workspace(tmp_path, provider := SlowProvider()) as workspace:
        session = await workspace.new_session()
        provider.disk = Disk(failures)
        monkeypatch.setattr(workspace.store, "append_events", provider.disk.append_events)
        events = await drain(session.send("hello"))
        assert session.messages[-1].text == "one two three"
    assert provider.disk.text == stored
    problems = [notice.text for notice in of(Notice, events) if notice.level == "error"]
    assert [text.partition(".")[0] for text in problems] == ([] if stored else ["the disk is full"])

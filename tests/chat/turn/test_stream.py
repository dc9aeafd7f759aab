from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from tui.chat.store.database import StoreError
from tui.chat.store.parts import PartsBuilder
from tui.chat.turn.stream import FLUSH_SECONDS, StreamProcessor
from tui.messages import Message
from tui.providers.base import StreamEvent, TextDelta


async def words(*pieces: str) -> AsyncGenerator[StreamEvent, None]:
    """Each piece in a flush of its own."""
    for piece in pieces:
        yield TextDelta(piece)
        await asyncio.sleep(2.5 * FLUSH_SECONDS)


class Disk:
    """Keeps what it is given; the first `failures` times it is full."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.kept: list[StreamEvent] = []

    def save(self, events: Sequence[StreamEvent]) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreError("the disk is full")
        self.kept += events

    @property
    def text(self) -> str:
        builder = PartsBuilder("p", "m")
        for event in self.kept:
            builder.apply(event)
        return Message("assistant", builder.parts()).text


async def read(disk: Disk, *pieces: str) -> StreamProcessor:
    processor = StreamProcessor(Message("assistant", (), id="1", status="streaming"), disk.save, lambda _: None)
    await processor.run(words(*pieces))
    return processor


async def test_what_could_not_be_kept_is_kept_with_what_follows() -> None:
    disk = Disk(failures=1)
    processor = await read(disk, "one ", "two ", "three")
    assert disk.text == "one two three"
    assert processor.save_error is None


async def test_a_disk_that_stays_full_is_said() -> None:
    processor = await read(Disk(failures=1_000), "one ", "two")
    assert str(processor.save_error) == "the disk is full"
    assert processor.message.text == "one two"

"""What must not stop half-way does not, and the cancellation is not lost."""

from __future__ import annotations

import asyncio

import pytest

from tui.chat.runtime.services import end_cancellation, uninterrupted


async def test_the_cancellation_comes_at_the_next_await() -> None:
    inside, go_on = asyncio.Event(), asyncio.Event()
    reached: list[str] = []

    async def work() -> str:
        inside.set()
        await go_on.wait()
        return "done"

    async def caller() -> None:
        reached.append(await uninterrupted(work()))
        await asyncio.sleep(0)
        reached.append("never")

    task = asyncio.create_task(caller())
    await inside.wait()
    for why in ("the first reason", None, "the last reason"):
        task.cancel(why)
        await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError, match="the first reason"):
        await task
    assert reached == ["done"]


async def test_what_the_work_raises_is_raised() -> None:
    async def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await uninterrupted(work())


async def test_a_timeout_around_it_is_still_a_timeout() -> None:
    async def work() -> None:
        await asyncio.sleep(0.05)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await uninterrupted(work())
            await asyncio.sleep(1)


async def test_a_cancellation_that_is_ended_leaves_the_task_as_it_was() -> None:
    async def caller() -> str:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            end_cancellation()
        async with asyncio.timeout(10):
            await asyncio.sleep(0)
        current = asyncio.current_task()
        assert current is not None and current.cancelling() == 0
        return "went on"

    task = asyncio.create_task(caller())
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "went on"

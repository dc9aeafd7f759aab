"""Cancellation: work that must not stop half-way, and a task that ends its own cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. A cancellation that comes meanwhile is raised at the caller's next await instead.

    For what is written to the store and then shown: both happen or neither does.
    """
    task = asyncio.create_task(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
            end_cancellation()
    if cancelled and (current := asyncio.current_task()) is not None:
        current.cancel()
    return task.result()


def end_cancellation() -> None:
    """Go on after a `CancelledError` that was caught: the running task does not count as cancelled any more."""
    if (task := asyncio.current_task()) is not None:
        task.uncancel()

"""Cancellation: work that must not stop half-way, and a task that ends its own cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. A cancellation in the meantime is raised at the caller's next await instead.

    For changes that are stored and then shown: both happen, or neither.
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


def uninterruptible(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """`work`, always run by `uninterrupted`."""

    @wraps(work)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return await uninterrupted(work(*args, **kwargs))

    return run


def end_cancellation() -> None:
    """Continue after a caught `CancelledError`: the running task is no longer being cancelled."""
    if (task := asyncio.current_task()) is not None:
        task.uncancel()

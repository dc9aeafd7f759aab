"""ctrl+c while a command runs on an event loop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable


def on_interrupt(act: Callable[[], None]) -> None:
    """From now on ctrl+c calls `act` on the running loop, and ends nothing by itself.

    The loop of Windows has no handlers for signals: there the signal's own handler wakes it.
    """
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGINT, act)
    except NotImplementedError:
        signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(act))

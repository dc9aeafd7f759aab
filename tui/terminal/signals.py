"""Signals that ask the program to end: of the system (TERM), of a terminal that is closed (HUP), of a person (QUIT)."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

ENDING = ("SIGTERM", "SIGHUP", "SIGQUIT")


def on_termination(act: Callable[[], object]) -> None:
    """From now on these signals call `act` on the running loop, and end nothing by themselves.

    The loop of Windows has no handlers for signals: there the signal's own handler wakes it.
    """
    loop = asyncio.get_running_loop()
    for name in ENDING:
        if (number := getattr(signal, name, None)) is None:
            continue
        try:
            loop.add_signal_handler(number, act)
        except NotImplementedError:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(act))

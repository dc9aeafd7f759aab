"""Signals that ask the program to end: TERM, HUP (the terminal was closed), QUIT."""

from __future__ import annotations

import signal
from collections.abc import Callable

ENDING = ("SIGTERM", "SIGHUP", "SIGQUIT")


def on_termination(act: Callable[[], object]) -> None:
    """Call `act` on the running loop at these signals, instead of ending the process.

    Event loops on Windows have no signal handlers: there the signal's own handler wakes the loop.
    """
    import asyncio  # not before the terminal is taken

    loop = asyncio.get_running_loop()
    for name in ENDING:
        if (number := getattr(signal, name, None)) is None:
            continue
        try:
            loop.add_signal_handler(number, act)
        except NotImplementedError:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(act))

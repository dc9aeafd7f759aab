from __future__ import annotations

import asyncio
import signal

import pytest

from tui.cli.interrupts import on_interrupt


@pytest.mark.parametrize("handlers", [True, False], ids=["a loop with handlers", "the loop of Windows"])
async def test_a_signal_is_a_call_on_the_loop(monkeypatch: pytest.MonkeyPatch, handlers: bool) -> None:
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    pressed = asyncio.Event()
    if not handlers:

        def none(*_: object) -> None:
            raise NotImplementedError

        monkeypatch.setattr(loop, "add_signal_handler", none)
    try:
        on_interrupt(pressed.set)
        signal.raise_signal(signal.SIGINT)
        await asyncio.wait_for(pressed.wait(), 5)
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)

"""The wait before a request is repeated, as `chatctx ask` shows it."""

from __future__ import annotations

import asyncio
import io

import pytest

from tests.machine import Terminal
from tui.chat.conversation.events import RetryScheduled
from tui.cli.subcommands.ask import Countdown


async def test_it_counts_down_on_a_terminal_and_the_line_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    stopped = asyncio.Event()
    err = Terminal()

    async def sleep(seconds: float) -> None:
        now[0] += seconds
        if now[0] >= 103:
            stopped.set()
            await stopped_for_good.wait()

    stopped_for_good = asyncio.Event()
    monkeypatch.setattr("tui.cli.subcommands.ask.time.monotonic", lambda: now[0])
    monkeypatch.setattr("tui.cli.subcommands.ask.asyncio.sleep", sleep)
    monkeypatch.setattr("sys.stderr", err)
    shown = Countdown()
    shown.start(RetryScheduled(4.0, 1, "box: too many\nrequests."), "all at once")
    await stopped.wait()
    shown.stop()
    lines = err.getvalue().split("\r\x1b[K")
    assert lines[0] == "chatctx: box: too many requests.\n"
    assert lines[1:-1] == [f"chatctx: asking again in {seconds} s (attempt 2); ctrl+c stops" for seconds in (4, 3, 2)]
    assert lines[-1] == ""


async def test_elsewhere_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    err = io.StringIO()
    monkeypatch.setattr("sys.stderr", err)
    shown = Countdown()
    shown.start(RetryScheduled(4.0, 1, "box: busy."), "box: busy. Asking again in 4 s (attempt 2)")
    shown.stop()
    assert err.getvalue() == "chatctx: box: busy. Asking again in 4 s (attempt 2)\n"

"""SIGTSTP, SIGCONT and the terminal's driver."""

from __future__ import annotations

import asyncio
import inspect
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest
from textual.driver import Driver

from tui.terminal.screen import use_lasting_driver


class FakeDriver:
    """Records what is done to the terminal."""

    def __init__(self, *, running: bool = True, suspended: bool = False, auto_restart: bool = True) -> None:
        self._app = SimpleNamespace(is_running=running)
        self._loop = asyncio.get_running_loop()
        self._auto_restart = auto_restart
        self._must_signal_resume = suspended
        self.done: list[str] = []

    def _sigtstp_application(self, *_: Any) -> None:
        self.done.append("stop")

    def _sigcont_application(self, *_: Any) -> None:
        self.done.append("Textual's own")

    def suspend_application_mode(self) -> None:
        self.done.append("suspend")

    def resume_application_mode(self) -> None:
        self.done.append("resume" if self._must_signal_resume else "resume without drawing")


def lasting(**state: bool) -> Any:
    return cast("Any", use_lasting_driver(cast("type[Driver]", FakeDriver)))(**state)


async def continued(**state: bool) -> list[str]:
    driver = lasting(**state)
    driver._sigcont_application()
    assert driver.done == []  # a handler may interrupt the writing of output, and writes nothing itself
    await asyncio.sleep(0)
    done: list[str] = driver.done
    return done


async def test_a_program_that_has_ended_takes_no_terminal_back() -> None:
    assert await continued(running=False) == await continued(running=False, suspended=True) == []


async def test_a_suspended_program_resumes_once() -> None:
    assert await continued(suspended=True) == ["resume"]


async def test_a_program_that_was_not_suspended_starts_nothing_twice() -> None:
    assert await continued() == ["suspend", "resume"]


async def test_a_program_stops_from_its_loop() -> None:
    driver = lasting()
    driver._sigtstp_application()
    assert driver.done == []
    await asyncio.sleep(0)
    assert driver.done == ["stop"]


async def test_while_an_editor_has_the_screen_it_stops_at_once() -> None:
    driver = lasting(auto_restart=False)
    driver._sigtstp_application()
    assert driver.done == ["stop"]
    driver._sigcont_application()
    assert driver.done == ["stop"]


def test_a_signal_after_the_loop_has_closed_does_nothing() -> None:
    async def make() -> Any:
        return lasting()

    driver = asyncio.run(make())
    driver._sigcont_application()
    assert driver.done == []


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGCONT on Windows")
def test_textual_s_driver_is_as_we_take_it_to_be() -> None:
    from textual.drivers.linux_driver import LinuxDriver

    for name in ("tstp", "cont"):
        handler = f"signal.signal(signal.SIG{name.upper()}, self._sig{name}_application)"
        assert handler in inspect.getsource(LinuxDriver.__init__)
    assert {"_auto_restart", "_must_signal_resume"} <= set(LinuxDriver._sigtstp_application.__code__.co_names)
    assert "self._loop = asyncio.get_running_loop()" in inspect.getsource(Driver.__init__)

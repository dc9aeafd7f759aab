"""SIGCONT and the terminal's driver."""

from __future__ import annotations

import inspect
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest
from textual.driver import Driver

from tui.terminal.screen import use_lasting_driver


class FakeDriver:
    """Records what is done to the terminal."""

    def __init__(self, *, running: bool = True, suspended: bool = False) -> None:
        self._app = SimpleNamespace(is_running=running)
        self._auto_restart = True
        self._must_signal_resume = suspended
        self.done: list[str] = []

    def _sigcont_application(self, *_: Any) -> None:
        self.done.append("Textual's own")

    def suspend_application_mode(self) -> None:
        self.done.append("suspend")

    def resume_application_mode(self) -> None:
        self.done.append("resume" if self._must_signal_resume else "resume without drawing")


def continued(**state: bool) -> list[str]:
    driver: Any = cast("Any", use_lasting_driver(cast("type[Driver]", FakeDriver)))(**state)
    driver._sigcont_application()
    done: list[str] = driver.done
    return done


def test_a_program_that_has_ended_takes_no_terminal_back() -> None:
    assert continued(running=False) == continued(running=False, suspended=True) == []


def test_a_suspended_program_resumes_once() -> None:
    assert continued(suspended=True) == ["resume"]


def test_a_program_that_was_not_suspended_starts_nothing_twice() -> None:
    assert continued() == ["suspend", "resume"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGCONT on Windows")
def test_textual_s_driver_is_as_we_take_it_to_be() -> None:
    from textual.drivers.linux_driver import LinuxDriver

    assert "signal.signal(signal.SIGCONT, self._sigcont_application)" in inspect.getsource(LinuxDriver.__init__)
    assert {"_auto_restart", "_must_signal_resume"} <= set(LinuxDriver._sigtstp_application.__code__.co_names)

"""Lines a corpus test has to say, printed under the test run's summary (also when the tests ran in other processes)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

KEY = "corpus-line"


@pytest.fixture
def say(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Keep a line for the summary."""
    return lambda line: record_property(KEY, line)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = [
        str(value)
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        for name, value in getattr(report, "user_properties", [])
        if name == KEY
    ]
    if lines:
        terminalreporter.section("recorded material")
        for line in lines:
            terminalreporter.write_line(line)

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import pytest

from tests.chat.interchange.test_following import append, lines
from tui.cli.subcommands import watch
from tui.config.settings import Settings
from tui.terminal.output import clean_streams


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_panel_is_drawn_by_control_sequences_and_shows_none_of_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.jsonl"
    first, *rest = lines(3)
    first["message"]["content"] = "a question \x1b[31mabout red"
    append(path, first, *rest)
    terminal = Terminal()

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "__stdout__", terminal)
    monkeypatch.setattr(time, "sleep", stop)
    monkeypatch.setenv("TERM", "xterm-256color")
    with clean_streams(), pytest.raises(KeyboardInterrupt):
        watch.run(Settings(), file=path, line=False, as_json=False, window="20k")
    drawn = terminal.getvalue()
    assert drawn.startswith("\x1b[?1049h")  # the alternate screen
    assert "1,212 / 20,000 tokens" in drawn
    assert "\x1b[31m" not in drawn

"""A real terminal: the program in tmux, typed at and read as a person does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

# A test runner's own: its idea of the terminal's size would go before the real one's.
FOREIGN = ("TMUX", "COLUMNS", "LINES")

# The small model, whatever servers run on this machine. Without a limit it goes on for ever.
CONFIG = 'model = "local"\nreserve_output = 48\n'


def need_tmux() -> None:
    """Fails in CI and skips elsewhere where there is no tmux."""
    if shutil.which("tmux") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("tmux is not installed")


class Terminal:
    """`chatctx ARGS` in a tmux window of its own, `columns` x `rows`. Everything it keeps is in `folder`.

    `config` is its config file.
    """

    def __init__(self, folder: Path, *args: str, columns: int = 120, rows: int = 40, config: str = CONFIG) -> None:
        need_tmux()
        (folder / "config.toml").write_text(config)
        self.folder = folder
        self._name = f"chatctx-{uuid.uuid4().hex[:8]}"
        self._env = {
            **{k: v for k, v in os.environ.items() if not k.endswith("_API_KEY") and k not in FOREIGN},
            "CHATCTX_CONFIG": str(folder / "config.toml"),
            "CHATCTX_DATA_DIR": str(folder / "data"),
            "CHATCTX_LOG_DIR": str(folder / "log"),
            "TERM": "xterm-256color",
        }
        command = [sys.executable, "-m", "tui", *args]
        shell = " ".join(map(_quoted, command)) + "; echo ended with code $?; sleep 600"
        self._tmux("new-session", "-d", "-s", self._name, "-x", str(columns), "-y", str(rows), shell)

    def _tmux(self, *args: str, stdin: str | None = None) -> str:
        command = ["tmux", "-L", self._name, "-f", "/dev/null", *args]
        return subprocess.run(command, env=self._env, input=stdin, capture_output=True, text=True, check=True).stdout

    def type(self, text: str, *keys: str) -> None:
        """Type `text` and then press `keys`, all in one burst, as a fast person or a script does."""
        args = [*(["-l", text] if text else [])]
        if args:
            self._tmux("send-keys", "-t", self._name, *args, ";", "send-keys", "-t", self._name, *keys or ("",))
        else:
            self._tmux("send-keys", "-t", self._name, *keys)

    def paste(self, text: str) -> None:
        """Paste `text` as the terminal does (bracketed)."""
        self._tmux("load-buffer", "-", stdin=text)
        self._tmux("paste-buffer", "-p", "-t", self._name)

    def resize(self, columns: int, rows: int) -> None:
        """Change the window's size."""
        self._tmux("resize-window", "-t", self._name, "-x", str(columns), "-y", str(rows))

    def screen(self) -> str:
        """What is on screen, line by line."""
        return self._tmux("capture-pane", "-p", "-t", self._name)

    def wait(self, condition: str | Callable[[str], bool], seconds: float = 60.0) -> str:
        """The screen as soon as it shows a text (or fulfils a condition). Fails with the screen after `seconds`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            screen = self.screen()
            if condition in screen if isinstance(condition, str) else condition(screen):
                return screen
            time.sleep(0.05)
        pytest.fail(f"waited {seconds:.0f} s for {condition!r}; the screen:\n{self.screen()}")

    def close(self) -> None:
        """End the window and its program, which must not stay behind."""
        shell = self._tmux("display-message", "-p", "-t", self._name, "#{pane_pid}").strip()
        programs = [pid for pid, (_, parent) in _processes().items() if parent == shell]
        self._tmux("kill-server")
        end = time.monotonic() + 60
        while running := [pid for pid, (state, _) in _processes().items() if pid in programs and state != "Z"]:
            if time.monotonic() > end:
                pytest.fail(f"still there after its terminal was closed: {running}")
            time.sleep(0.05)

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        """`chatctx ARGS` beside the terminal, on the same files."""
        return subprocess.run(
            [sys.executable, "-m", "tui", *args], env=self._env, capture_output=True, text=True, timeout=90, check=False
        )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _processes() -> dict[str, tuple[str, str]]:
    """All processes by their ids: state and parent, from /proc (see proc(5)). None where there is no /proc."""
    states = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            state, parent, *_ = path.read_text(errors="replace").rpartition(")")[2].split()
            states[path.parent.name] = state, parent
    return states

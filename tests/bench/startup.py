"""Starting: help and version without the screen, the first usable frame beside a bare Textual app, memory there.

Whole processes in a pseudo-terminal, in turns, by the wall clock. Compile the bytecode first (`uv sync
--compile-bytecode` and `python -m compileall -q tui`), or its compilation is what is measured.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from tests.bench.rows import BenchRow

ROUNDS = 7
PROMPT = b"or / for commands"  # the letters before it are drawn apart, under the cursor
PROMISED_MB = 55.0

BARE = """
from textual.app import App, ComposeResult
from textual.widgets import Static, TextArea

class Bare(App[None]):
    def compose(self) -> ComposeResult:
        yield Static("bare")
        yield TextArea(placeholder="ask, or / for commands", compact=True)

Bare().run()
"""


def rows() -> Iterable[BenchRow]:
    """Every row of this group."""
    yield from _without_screen()
    for sessions in (0, 1_000):
        with tempfile.TemporaryDirectory() as folder:
            yield from _first_frame(Path(folder), sessions)


def _without_screen() -> Iterable[BenchRow]:
    reference = _fastest([sys.executable, "-c", "pass"])
    for flag in ("--version", "--help"):
        yield BenchRow(f"chatctx {flag}", _fastest([sys.executable, "-m", "tui", flag]), reference, 12, at_most=0.15)


def _fastest(command: Sequence[str]) -> float:
    def once() -> float:
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        return time.perf_counter() - began

    return min(once() for _ in range(ROUNDS))


def _first_frame(folder: Path, sessions: int) -> Iterable[BenchRow]:
    _fill(folder, sessions)
    ours = [sys.executable, "-m", "tui", "-m", "demo"]
    bare = [sys.executable, "-c", BARE]
    pairs = [(_frame(ours, folder), _frame(bare, folder)) for _ in range(ROUNDS)]
    seconds, memory = (median(ours[i] for ours, _ in pairs) for i in (0, 1))
    floor, floor_memory = (median(bare[i] for _, bare in pairs) for i in (0, 1))
    yield BenchRow(f"first usable frame, {sessions:,} sessions", seconds, floor, 1.4)
    yield BenchRow(f"memory there, {sessions:,} sessions", memory, floor_memory, PROMISED_MB / floor_memory, unit="MB")


def _fill(folder: Path, sessions: int) -> None:
    from tui.chat.store.database import new_id
    from tui.chat.store.store import SessionInfo, SessionStore
    from tui.messages import Message, Text

    (folder / "config.toml").touch()
    store = SessionStore(folder / "chatctx.db")
    with store.transaction():
        for number in range(sessions):
            ident = new_id()
            store.create_session(SessionInfo(ident, f"session {number}", "demo", "demo", number, number))
            for turn in range(4):
                text = (Text("some words " * 50),)
                store.add_message(
                    ident, Message("assistant" if turn % 2 else "user", text, id=new_id(), created_at=number)
                )
    store.close()


def _frame(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """Seconds until the prompt is on screen, megabytes resident then."""
    env = {
        **os.environ,
        "CHATCTX_CONFIG": str(folder / "config.toml"),
        "CHATCTX_DATA_DIR": str(folder),
        "CHATCTX_LOG_DIR": str(folder),
        "TERM": "xterm-256color",
        "COLUMNS": "120",
        "LINES": "40",
    }
    began = time.perf_counter()
    child, screen = pty.fork()
    if child == 0:
        os.execvpe(command[0], list(command), env)
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    shown = b""
    try:
        while PROMPT not in shown:
            ready, _, _ = select.select([screen], [], [], 30)
            if not ready:
                raise TimeoutError(f"no prompt from {command}: {shown[-300:]!r}")
            shown += os.read(screen, 65_536)
        seconds = time.perf_counter() - began
        status = Path(f"/proc/{child}/status").read_text(encoding="ascii")
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return seconds, int(resident.split()[1]) / 1024
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(screen)

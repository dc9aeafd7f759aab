"""A program in a pseudo-terminal: started, typed into, and its whole process tree measured. Linux only."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

SIZE = (40, 120)  # rows, columns
TICKS = os.sysconf("SC_CLK_TCK")


class Program:
    """A child with a terminal of its own, killed with its children at the end of the context."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], folder: Path) -> None:
        self._command = list(command)
        self._env = {**env, "TERM": "xterm-256color", "COLUMNS": str(SIZE[1]), "LINES": str(SIZE[0])}
        self._folder = folder
        self.shown = bytearray()

    def __enter__(self) -> Program:
        self.began = time.perf_counter()
        self.pid, self._screen = pty.fork()
        if self.pid == 0:
            os.chdir(self._folder)
            os.execvpe(self._command[0], self._command, self._env)
        fcntl.ioctl(self._screen, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for pid in [*tree(self.pid)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        os.waitpid(self.pid, 0)

    def _read(self) -> None:
        try:
            while piece := os.read(self._screen, 65_536):
                with self._changed:
                    self.shown += piece
                    self._changed.notify_all()
        except OSError:
            pass  # the child has ended
        os.close(self._screen)

    def type(self, text: str) -> None:
        """Keys, all at once."""
        os.write(self._screen, text.encode())

    def wait_for(self, text: bytes, *, after: int = 0, seconds: float = 60.0) -> float:
        """Seconds from the start until `text` was written after byte `after`. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.shown.find(text, after) >= 0, seconds):
                raise TimeoutError(f"{text!r} was not written by {self._command}: {bytes(self.shown[-300:])!r}")
        return time.perf_counter() - self.began

    def memory(self) -> float:
        """Megabytes of the process tree: resident, with shared pages divided among those that map them."""
        return sum(_pss(pid) for pid in tree(self.pid))

    def processor_seconds(self) -> float:
        """User and system time of the process tree, ended children included."""
        total = 0
        for pid in tree(self.pid):
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            total += sum(int(fields[index]) for index in (11, 12, 13, 14))
        return total / TICKS


def tree(pid: int) -> Iterator[int]:
    """`pid` and all processes below it."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text(encoding="ascii").split():
            yield from tree(int(child))


def _pss(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:  # it has just ended
        return 0.0
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024


def run_to_end(command: Sequence[str], env: Mapping[str, str], folder: Path) -> tuple[float, float, float]:
    """Run a program without a terminal: when it began (`perf_counter`), its processor seconds, its largest megabytes.

    Raises `RuntimeError` with the end of its error output where it fails.
    """
    with tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        nowhere = subprocess.DEVNULL
        child = subprocess.Popen(command, env=env, cwd=folder, stdin=nowhere, stdout=nowhere, stderr=errors)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            errors.seek(0)
            raise RuntimeError(f"{command} ended with {child.returncode}: {errors.read()[-300:]!r}")
    return began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024

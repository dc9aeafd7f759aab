"""The program in a pseudo-terminal, with every byte that it writes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

EVIL = "\x1b]0;EVIL\x07\x1b[5;7;35mEVIL\x1bPqEVIL\x1b\\\x9b5;7mEVIL\x9d0;EVIL\x9c\u202eEVIL\u2066\x07\x08\r\x7f\x00EVIL"
"""Text that sets a title, blinks, sends a device string, uses C1 controls, reorders and rings."""

CHATCTX = ("-m", "tui")

QUIET = 0.3
"""Seconds without output after which a screen has been drawn."""

_OURS = re.compile(
    r"\x1b\[[0-9;:]*m"  # colours
    r"|\x1b\[[0-9;]*[ABCDHJKfhlrsu]|\x1b\[\?[0-9;]*[hl]|\x1b\[\?[0-9;]*\$p|\x1b\[[<>=?][0-9;]*u|\x1b\[>[0-9]*[mq]"
    r"|\x1b\[[0-9;]*[nt]|\x1b\[[0-9]* q|\x1b[=>78M]|\x1b\(B"  # cursor, scrolling, modes and questions of the driver
    r"|\x1b\]8;(?:id=[\w.-]*)?;(?:(?:https?|mailto):[\x21-\x7e]*)?\x1b\\"  # links
    r"|\x1b\]52;c;[A-Za-z0-9+/=]*(?:\x07|\x1b\\)"  # a copy
    r"|\x1b\]22;[a-z-]*\x07"  # the mouse pointer
    r"|\x1b\]1[01];\?(?:\x07|\x1b\\)"  # the terminal's colours
)
_BLINK = re.compile(r"\x1b\[[0-9;]*5;7[0-9;]*m")
_CONTROLS = re.compile("[\x00-\x06\x07\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def foreign(written: bytes) -> list[str]:
    """What was written that a terminal would act on and that is not the program's own, each with what is around it."""
    text = written.decode("utf-8", "surrogateescape")
    rest = _OURS.sub("", text)
    return [_around(text, at) for at in _BLINK.finditer(text)] + [_around(rest, at) for at in _CONTROLS.finditer(rest)]


def _around(text: str, at: re.Match[str]) -> str:
    return repr(text[max(0, at.start() - 40) : at.end() + 40])


class Recorder:
    """A program in a terminal of 100 by 30."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self._master, self._process = master, process
        self.written = b""

    def read(self, seconds: float, until: str = "") -> None:
        """Read what is written in `seconds`: up to `until`, or until nothing more comes for a while."""
        end, start = time.monotonic() + seconds, len(self.written)
        while (remaining := end - time.monotonic()) > 0:
            if not select.select([self._master], [], [], min(remaining, QUIET))[0]:
                if len(self.written) > start and not until:
                    return
                continue
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:
                return
            if not data:
                return
            self.written += data
            if until and until in _OURS.sub("", self.written[start:].decode("utf-8", "replace")):
                return

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def ended(self, seconds: float = 30) -> int:
        """Read until the program ends; its exit code."""
        end = time.monotonic() + seconds
        while self._process.poll() is None and time.monotonic() < end:
            self.read(0.2)
        self.read(0.2)
        return self._process.wait(1)


@contextlib.contextmanager
def recorded(arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Iterator[Recorder]:
    """Run Python with these arguments in a terminal; `CHATCTX` and more are those of the program."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=dict(environment), start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    recorder = Recorder(master, process)
    try:
        yield recorder
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        with contextlib.suppress(OSError):
            os.close(master)

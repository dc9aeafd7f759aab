"""Files that only their owner may read: sessions, logs, exports, pasted pictures.

Modes are those of Unix. On Windows a person's own folders are closed to others by the system.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

FOLDER = "chatctx"
"""The name of our folders where nobody chose another: only these are closed where they existed before."""

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def private_folder(path: Path) -> Path:
    """Make a folder for its owner alone (0700), folders above it as usual. Raises OSError.

    One that existed is closed where it is ours by its name: another may be shared on purpose.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700)
    except FileExistsError:
        if not path.is_dir():
            raise
        if path.name == FOLDER:
            close_to_others(path)
    return path


def open_private(path: Path | str, mode: str, **how: Any) -> IO[Any]:
    """`open` for a file that only its owner may read (0600), also where it existed. Raises OSError."""
    file: IO[Any] = open(path, mode, opener=lambda name, flags: os.open(name, flags, 0o600), **how)  # noqa: SIM115  the caller's
    if hasattr(os, "fchmod"):
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_mode & OTHERS:
            with suppress(OSError):  # another's file, or a file system without modes
                os.fchmod(file.fileno(), status.st_mode & ~OTHERS & 0o7777)
    return file


def close_to_others(path: Path) -> None:
    """Take group's and others' rights to `path` away. What can't be changed stays: `readable_by_others` tells of it."""
    with suppress(OSError):
        mode = path.stat().st_mode
        if mode & OTHERS and os.name != "nt":
            path.chmod(stat.S_IMODE(mode) & ~OTHERS)


def readable_by_others(paths: Iterable[Path]) -> list[tuple[Path, int]]:
    """Those of `paths` that others than their owner may use, with their modes."""
    exposed = []
    for path in paths:
        with suppress(OSError):  # not there
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & OTHERS and os.name != "nt":
                exposed.append((path, mode))
    return exposed


def private_log(path: Path, *, most_bytes: int, older: int) -> logging.Handler:
    """A handler that writes to a private file, and keeps `older` ones of `most_bytes` beside it. Raises OSError."""
    from logging.handlers import RotatingFileHandler

    class PrivateLog(RotatingFileHandler):
        def _open(self) -> Any:
            return open_private(self.baseFilename, self.mode, encoding=self.encoding, errors=self.errors)

    private_folder(path.parent)
    return PrivateLog(path, maxBytes=most_bytes, backupCount=older, encoding="utf-8")

"""Paths as people write them, reading the files they name, and files that only their owner can read."""

from __future__ import annotations

import errno
import logging
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

is_there, is_file, is_link = os.path.exists, os.path.isfile, os.path.islink
"""Like the methods of `Path`, but False where these raise: for folders without permission, and invalid names."""

_expand_home = os.path.expanduser


def at_home(text: str) -> Path:
    """`text` as a path, with `~` and `~name` expanded as in a shell: unknown names stay as they are."""
    return Path(_expand_home(text))


def from_home(text: str) -> Path:
    """Like `at_home`, for a setting, which must be a usable path. Raises ValueError with a one-line reason."""
    path = at_home(text)
    if (first := path.parts[:1]) and first[0].startswith("~"):
        raise ValueError(f"{first[0]!r} is not a home folder here; write the whole path")
    return path


def short_path(path: Path, home: Path) -> str:
    """`path` with "~" in place of the home folder."""
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


PIPE_SECONDS = 2.0  # to wait for a writer


def find_program(name: str) -> str | None:
    """The path of a program in an absolute folder of PATH; None if there is none.

    A relative entry, or the working directory, which Windows searches first, may be in somebody else's project.
    """
    import shutil

    path = shutil.which(name)
    return path if path is not None and Path(path).is_absolute() else None


class FileTooLargeError(Exception):
    """More bytes than allowed."""


def read_all(path: Path, most: int) -> bytes:
    """The bytes of a file or a pipe. Raises `FileTooLargeError` above `most` bytes, and OSError also for a device."""
    status = path.stat()  # first: opening a device may already do something
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        raise OSError(errno.EINVAL, "it is a device")
    if status.st_size > most:
        raise FileTooLargeError
    at_once = getattr(os, "O_NONBLOCK", 0)  # a pipe opens also if nothing writes to it
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | at_once)) as file:
        data = _first_of_pipe(file.fileno()) if stat.S_ISFIFO(path.lstat().st_mode) else b""
        os.set_blocking(file.fileno(), True)
        data += file.read(most + 1)
    if len(data) > most:
        raise FileTooLargeError
    return data


def _first_of_pipe(descriptor: int) -> bytes:
    """What a named pipe holds now. Raises OSError if nothing writes to it for `PIPE_SECONDS`."""
    end = time.monotonic() + PIPE_SECONDS
    data = b""
    with suppress(BlockingIOError):  # there is a writer, who has not written yet
        while not (data := os.read(descriptor, 65_536)):
            if time.monotonic() > end:
                raise OSError(errno.EPIPE, "nothing writes to this pipe")
            time.sleep(0.01)
    return data


# -- private files: sessions, logs, exports, pasted images -------------------------------------------------------------
# Modes are those of Unix. On Windows a person's own folders are protected by the system.

FOLDER = "chatctx"
"""Default name of our folders: existing folders are restricted only if they have this name."""

UNSENT = "unsent-"
"""Prefix of the names of files and folders with text that is not stored."""

LOCK = ".lock"
"""Name of the file that is locked while such a folder is in use."""

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def private_folder(path: Path) -> Path:
    """Create a folder, and its parents, for its owner alone (0700). Raises OSError.

    An existing folder is restricted only if it is ours by its name: others may be shared on purpose.
    """
    for folder in (*reversed(path.parents), path):
        folder.mkdir(mode=0o700, exist_ok=True)
    if path.name == FOLDER:
        close_to_others(path)
    return path


def open_private(path: Path | str, mode: str, **options: Any) -> IO[Any]:
    """`open` for a file that only its owner may read (0600), even if it exists. Raises OSError."""
    file: IO[Any] = open(path, mode, opener=lambda name, flags: os.open(name, flags, 0o600), **options)  # noqa: SIM115  the caller's
    if hasattr(os, "fchmod"):
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_mode & OTHERS:
            with suppress(OSError):  # someone else's file, or a file system without modes
                os.fchmod(file.fileno(), status.st_mode & ~OTHERS & 0o7777)
    return file


def write_unsent(text: str, folders: Iterable[Path]) -> Path | None:
    """Write text that could not be stored to a new private file in the first of `folders`, else in a temporary one.

    Returns its path, None where nothing can be written.
    """
    import tempfile

    for folder in (*folders, None):
        with suppress(OSError):
            descriptor, path = tempfile.mkstemp(prefix=UNSENT, suffix=".txt", dir=folder)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogatepass") as file:
                file.write(text)
            return Path(path)
    return None


@contextmanager
def unsent_folder(folders: Iterable[Path]) -> Iterator[Path]:
    """A private folder in the first of `folders` that takes one, else a temporary one; removed at the end if possible.

    What is in it survives a kill (`unsent_files`); until then it is locked. Raises OSError where there can be none.
    """
    import tempfile

    with ExitStack() as stack:
        for folder in folders:
            with suppress(OSError):
                name = stack.enter_context(
                    tempfile.TemporaryDirectory(prefix=UNSENT, dir=folder, ignore_cleanup_errors=True)
                )
                break
        else:
            name = stack.enter_context(tempfile.TemporaryDirectory(prefix=UNSENT, ignore_cleanup_errors=True))
        lock(stack.enter_context((Path(name) / LOCK).open("wb")))
        yield Path(name)


def unsent_files(folders: Iterable[Path]) -> list[Path]:
    """The files of `write_unsent`, and those left in an `unsent_folder` that is not in use, each once."""
    patterns = (f"{UNSENT}*.txt", f"{UNSENT}*/*.md")
    paths = {path for folder in folders for pattern in patterns for path in folder.glob(pattern)}
    return sorted(path for path in paths if not _is_locked(path.with_name(LOCK)))


def _is_locked(mark: Path) -> bool:
    try:
        with mark.open("r+b") as file:
            return not lock(file)
    except OSError:
        return False


def lock(file: IO[bytes]) -> bool:
    """Take the lock without waiting; False where another process holds it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def close_to_others(path: Path) -> None:
    """Remove the permissions of group and others. Ignores failures, which `readable_by_others` reports."""
    with suppress(OSError):
        for exposed, mode in readable_by_others([path]):
            exposed.chmod(mode & ~OTHERS)


def readable_by_others(paths: Iterable[Path]) -> list[tuple[Path, int]]:
    """Those of `paths` that others may access, with their modes."""
    exposed = []
    for path in paths:
        with suppress(OSError):  # missing
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & OTHERS and os.name != "nt":
                exposed.append((path, mode))
    return exposed


def private_log(path: Path, *, most_bytes: int, older: int) -> logging.Handler:
    """A handler that writes to a private file, and keeps `older` ones of `most_bytes` beside it. Raises OSError.

    What can't be written, as on a full disk, is lost.
    """
    from logging.handlers import RotatingFileHandler

    class PrivateLog(RotatingFileHandler):
        def _open(self) -> Any:
            return open_private(self.baseFilename, self.mode, encoding=self.encoding, errors=self.errors)

    logging.raiseExceptions = False  # it would write a traceback over the screen
    private_folder(path.parent)
    return PrivateLog(path, maxBytes=most_bytes, backupCount=older, encoding="utf-8", errors="backslashreplace")

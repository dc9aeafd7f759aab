"""Paths as people write them, and reading the files they name."""

from __future__ import annotations

import errno
import stat
from pathlib import Path


def at_home(text: str) -> Path:
    """`text` as a path, with `~` and `~name` expanded as in a shell: unknown names stay as they are."""
    path = Path(text)
    try:
        return path.expanduser()
    except RuntimeError:  # no such user, or no home folder
        return path


def from_home(text: str) -> Path:
    """Like `at_home`, for a setting, which must be a usable path. Raises ValueError with a one-line reason."""
    path = at_home(text)
    if (first := path.parts[:1]) and first[0].startswith("~"):
        raise ValueError(f"{first[0]!r} is no home folder here; write the whole path")
    return path


def short_path(path: Path, home: Path) -> str:
    """`path` with "~" in place of the home folder."""
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def is_there(path: Path) -> bool:
    """`path.exists()`, but False if that raises: for folders without permission, and invalid names."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def is_file(path: Path) -> bool:
    """`path.is_file()`, but False if that raises."""
    return is_there(path) and path.is_file()


def is_link(path: Path) -> bool:
    """`path.is_symlink()`, but False if that raises."""
    try:
        return path.is_symlink()
    except (OSError, ValueError):
        return False


def new_file(name: str) -> Path:
    """The path of a new file. Raises ValueError with a one-line reason if it exists or the name is invalid."""
    path = at_home(name)
    try:
        exists = path.exists()
    except PermissionError:  # writing will give a better error
        exists = False
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        shown = name if len(name) <= 40 else f"{name[:40]}…"
        raise ValueError(f"no file can be called {shown!r} ({reason}): name another") from None
    if exists:
        raise ValueError(f"{path} is there already: name another file")
    return path


class FileTooLargeError(Exception):
    """More bytes than allowed."""


def read_all(path: Path, most: int) -> bytes:
    """The bytes of a file or a pipe. Raises `FileTooLargeError` above `most` bytes, and OSError also for a device."""
    status = path.stat()  # first: opening a device may already do something
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        raise OSError(errno.EINVAL, "it is a device")
    if status.st_size > most:
        raise FileTooLargeError
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise FileTooLargeError
    return data

"""Paths as a person writes them, and reading what they name."""

from __future__ import annotations

import errno
import stat
from pathlib import Path


def at_home(text: str) -> Path:
    """`text` as a path, `~` and `~name` read as a shell reads them: a name that nobody has here stays as it is."""
    path = Path(text)
    try:
        return path.expanduser()
    except RuntimeError:  # no such person, or no home folder at all
        return path


def from_home(text: str) -> Path:
    """The same for a setting, which has to lead somewhere. Raises ValueError with a one-line reason."""
    path = at_home(text)
    if (first := path.parts[:1]) and first[0].startswith("~"):
        raise ValueError(f"{first[0]!r} is no home folder here; write the whole path")
    return path


def is_there(path: Path) -> bool:
    """`path.exists()`, and False where that raises: below a folder that may not be looked into, for an odd name."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def is_file(path: Path) -> bool:
    """`path.is_file()`, and False where that raises."""
    return is_there(path) and path.is_file()


def is_link(path: Path) -> bool:
    """`path.is_symlink()`, and False where that raises."""
    try:
        return path.is_symlink()
    except (OSError, ValueError):
        return False


def new_file(name: str) -> Path:
    """Where a file of that name may be written, over none that is there. Raises ValueError with a one-line reason."""
    path = at_home(name)
    try:
        exists = path.exists()
    except PermissionError:  # what writing will say better
        exists = False
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        shown = name if len(name) <= 40 else f"{name[:40]}…"
        raise ValueError(f"no file can be called {shown!r} ({reason}): name another") from None
    if exists:
        raise ValueError(f"{path} is there already: name another file")
    return path


class TooLargeError(Exception):
    """More bytes than are taken."""


def read_all(path: Path, most: int) -> bytes:
    """The bytes of a file or a pipe. Raises `TooLargeError` over `most` bytes, and OSError also for a device."""
    status = path.stat()  # first: to open some devices is to use them
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        raise OSError(errno.EINVAL, "it is a device")
    if status.st_size > most:
        raise TooLargeError
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise TooLargeError
    return data

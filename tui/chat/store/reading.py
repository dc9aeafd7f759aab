"""Reading what a person names on the command line: a file, a pipe (`<(…)`), but nothing that may never end."""

from __future__ import annotations

import errno
import stat
from pathlib import Path


class TooLargeError(Exception):
    """More bytes than are taken."""


def read_all(path: Path, most: int) -> bytes:
    """The bytes of a file or a pipe. Raises `TooLargeError` over `most` bytes, and OSError also for a device."""
    found = path.stat()  # first: to open some devices is to use them
    if stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode):
        raise OSError(errno.EINVAL, "it is a device")
    if found.st_size > most:
        raise TooLargeError
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise TooLargeError
    return data

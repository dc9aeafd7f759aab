"""Which running programs use the store: each holds a lock on a file of its own, which ends with the process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO

from tui.chat.store.ids import new_id


def _lock(file: IO[bytes]) -> bool:
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


class Liveness:
    """This process's mark in `folder`; `is_alive` asks for another's. Raises OSError where the folder can't be used."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.owner = new_id()
        self._file = self._path(self.owner).open("wb")
        _lock(self._file)

    def _path(self, owner: str) -> Path:
        return self._folder / f"{owner}.lock"

    def is_alive(self, owner: str) -> bool:
        """Whether the process that left `owner` still runs. A dead one's file is removed."""
        if owner == self.owner:
            return True
        try:
            with self._path(owner).open("r+b") as file:
                dead = _lock(file)
        except OSError:
            return False
        if dead:
            self._path(owner).unlink(missing_ok=True)
        return not dead

    def close(self) -> None:
        """Give the mark up. Idempotent."""
        self._file.close()
        self._path(self.owner).unlink(missing_ok=True)

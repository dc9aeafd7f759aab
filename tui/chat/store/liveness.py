"""Which running programs use the store: each locks a file of its own; the lock ends with the process."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from tui.chat.store.ids import new_id
from tui.config.private import private_folder

YOUNG = 60.0  # seconds


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
    """This process's lock file in `folder`; `is_alive` checks another's. Raises OSError if the folder can't be used.

    `killed`: another process ended without removing its lock file: by a signal, or a power failure.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = private_folder(folder)
        self.owner = new_id()
        self.killed = self._forget_dead()
        self._file = self._path(self.owner).open("wb")
        _lock(self._file)

    def _path(self, owner: str) -> Path:
        return self._folder / f"{owner}.lock"

    def is_alive(self, owner: str) -> bool:
        """Whether the process that left `owner` is running. Removes the file of a dead one."""
        if owner == self.owner:
            return True
        try:
            dead = self._is_dead(self._path(owner))
        except OSError:
            return False
        if dead:
            self._path(owner).unlink(missing_ok=True)
        return not dead

    @staticmethod
    def _is_dead(mark: Path) -> bool:
        with mark.open("r+b") as file:
            return _lock(file)

    def _forget_dead(self) -> bool:
        """Remove the files of dead processes, except new ones, which may not be locked yet.

        Returns whether there were any, including new ones.
        """
        dead = False
        for mark in self._folder.glob("*.lock"):
            with suppress(OSError):
                if self._is_dead(mark):
                    dead = True
                    if time.time() - mark.stat().st_mtime > YOUNG:
                        mark.unlink()
        return dead

    def close(self) -> None:
        """Release the lock. Idempotent."""
        self._file.close()
        self._path(self.owner).unlink(missing_ok=True)

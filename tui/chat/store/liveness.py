"""Which running programs use the store: each holds a lock on a file of its own, which ends with the process."""

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
    """This process's mark in `folder`; `is_alive` asks for another's. Raises OSError where the folder can't be used.

    `killed` says whether another process ended without giving its mark up: by a signal, or a loss of power.
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
        """Whether the process that left `owner` still runs. A dead one's file is removed."""
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
        """Remove the marks of processes that were killed, but for young ones: they may not be locked yet.

        Returns whether there were any, young ones too.
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
        """Give the mark up. Idempotent."""
        self._file.close()
        self._path(self.owner).unlink(missing_ok=True)

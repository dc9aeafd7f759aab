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
    """This process's mark in `folder`; `is_alive` asks for another's. Raises OSError where the folder can't be used."""

    def __init__(self, folder: Path) -> None:
        self._folder = private_folder(folder)
        self._forget_dead()
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

    def _forget_dead(self) -> None:
        """Remove the marks of processes that were killed. A young one may not be locked yet."""
        for path in self._folder.glob("*.lock"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > YOUNG:
                    self.is_alive(path.stem)

    def close(self) -> None:
        """Give the mark up. Idempotent."""
        self._file.close()
        self._path(self.owner).unlink(missing_ok=True)

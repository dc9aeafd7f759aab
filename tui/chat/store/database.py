"""The SQLite file of the session store: opening it, refusing others, describing errors, who else uses it, and its ids.

Every method is synchronous and thread-safe; callers on an event loop use `asyncio.to_thread`.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tui.chat.store.schema import APPLICATION_ID, MIGRATIONS
from tui.config.files import close_to_others, lock, open_private, private_folder
from tui.errors import ExpectedError

BUSY_SECONDS = 10.0
YOUNG = 60.0  # seconds: a lock file that may not be locked yet
WAY_OUT = "move it away, or set CHATCTX_DATA_DIR to another folder"
REPAIR = "chatctx doctor --repair saves what can be read"


class StoreError(ExpectedError):
    """A failure of the store. `str()` is one line: what, where, and what to do."""


class DamagedError(StoreError):
    """Pages of the file can't be read."""


class Database:
    """An open database. Every method raises `StoreError` if the database can't be used.

    `damage` lists unreadable parts. Once a damaged page was read, nothing is written any more.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage: dict[str, str] = {}  # unreadable parts, by location
        self._guard = threading.RLock()
        is_cut = self._check_header()
        with self._errors(), ExitStack() as undo:
            private_folder(path.parent)
            if not path.exists():
                open_private(path, "ab").close()  # SQLite gives its other files the same permissions
            self._identity = _identity(path)
            for file in database_files(path):
                close_to_others(file)
            self._liveness = Liveness(path.parent / "running")
            undo.callback(self._liveness.close)
            self._connect()
            undo.callback(self._db.close)
            if self._liveness.killed or is_cut:
                self._check_pages()
            self._open()
            undo.pop_all()

    def close(self) -> None:
        """Close the database. Idempotent."""
        with self._guard:
            self._liveness.close()
            self._db.close()

    # -- opening -------------------------------------------------------------------------------------------------

    def _check_header(self) -> bool:
        """Refuse a file that is not ours, or newer, before SQLite has opened (and perhaps changed) it.

        Returns whether it is shorter than its header says (https://www.sqlite.org/fileformat.html, section 1.3).
        """
        try:
            with self.path.open("rb") as file:
                head = file.read(100)
                size = file.seek(0, os.SEEK_END)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._error(error) from None
        if not head:
            return False
        if len(head) < 100 or not head.startswith(b"SQLite format 3\0"):
            raise StoreError(f"{self.path} is damaged or not a database; it was left untouched: {WAY_OUT}")
        self._check_identity(int.from_bytes(head[68:72], "big"), int.from_bytes(head[60:64], "big"))
        page, pages = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
        return head[24:28] == head[92:96] and pages * (65_536 if page == 1 else page) > size

    def _check_identity(self, application: int, version: int) -> None:
        if application not in (0, APPLICATION_ID):
            raise StoreError(f"{self.path} belongs to another program; it was left untouched: {WAY_OUT}")
        if version > len(MIGRATIONS):
            raise StoreError(
                f"{self.path} was written by a newer chatctx (format {version}, this one knows {len(MIGRATIONS)}); "
                "it was left untouched: update chatctx"
            )

    def _connect(self) -> None:
        self._db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        self._log_identity: tuple[int, int] | None = None

    def _open(self) -> None:
        db = self._db
        # Text that is not UTF-8 (due to another program, or the disk) loses its invalid bytes, not the row.
        db.text_factory = partial(str, encoding="utf-8", errors="replace")
        self._check_identity(self._pragma("application_id"), self._pragma("user_version"))
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        if self._pragma("user_version") < len(MIGRATIONS):
            with self.transaction():  # two programs may start at once: the second one waits until this is done
                version = self._pragma("user_version")
                for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
                    for statement in statements(script):
                        db.execute(statement)
                    db.execute(f"PRAGMA user_version = {number}")
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._log_identity = _identity(self._log_path)

    @property
    def _log_path(self) -> Path:
        return self.path.with_name(self.path.name + "-wal")

    def _pragma(self, name: str) -> int:
        return int(self._db.execute(f"PRAGMA {name}").fetchone()[0])

    def _check_pages(self) -> None:
        """Look for damage before anything is written: takes a second for some hundred megabytes."""
        try:
            (verdict,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            verdict = str(error)
        if verdict != "ok":
            self.damage["pages"] = f"{self.path} is damaged ({' '.join(verdict.split())})"

    # -- errors --------------------------------------------------------------------------------------------------

    def _error(self, error: sqlite3.Error | OSError) -> StoreError:
        """`error` in a line for a person. Result codes: https://www.sqlite.org/rescode.html"""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without what extends it; Python's own errors have none
        if isinstance(error, OSError):
            code = sqlite3.SQLITE_FULL if error.errno == errno.ENOSPC else sqlite3.SQLITE_CANTOPEN
        match code:
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN:
                reason = (isinstance(error, OSError) and error.strerror) or error
                return StoreError(
                    f"can't write to {self.path.parent} ({reason}): make the folder writable, or set CHATCTX_DATA_DIR"
                )
            case sqlite3.SQLITE_FULL:
                return StoreError(f"the disk is full: {self.path} could not be written; free some space and try again")
            case sqlite3.SQLITE_IOERR:  # also of a quota, and of a full disk that has no space for the -shm file
                return StoreError(
                    f"{self.path} could not be read or written ({error}): check the disk and its free space, try again"
                )
            case sqlite3.SQLITE_CORRUPT:
                self.damage["pages"] = f"{self.path} is damaged ({error})"
                return DamagedError(f"{self.path} is damaged ({error}): {REPAIR}")
            case sqlite3.SQLITE_NOTADB:
                return StoreError(f"{self.path} is damaged ({error}): {WAY_OUT}")
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return StoreError(
                    f"{self.path} is held by another program for over {BUSY_SECONDS:.0f} s: close it, try again"
                )
            case _:
                return StoreError(f"{self.path} could not be used ({error}): chatctx doctor checks it")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._error(error) from error

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """All or nothing. Nested transactions join the outer one. Raises `StoreError`.

        A commit survives the program being killed; it survives a power failure if it is `durable` or a later one is,
        which waits for the disk (https://www.sqlite.org/pragma.html#pragma_synchronous).
        """
        with self._guard, self._errors():
            if "pages" in self.damage:
                raise DamagedError(f"{self.damage['pages']}, nothing is written to it: {REPAIR}")
            if self._db.in_transaction:
                yield self._db
                return
            if _identity(self.path) != self._identity:  # what is written to the one that is open would be lost
                raise StoreError(
                    f"{self.path} was removed or replaced: start chatctx again; /export saves what is here"
                )
            if self._log_identity not in (None, _identity(self._log_path)):
                # This program has read the file (a tool, an attachment), which ended its locks: see section 2.2 of
                # https://www.sqlite.org/howtocorrupt.html. Another one then took itself for the last, and removed this.
                self._db.close()
                self._connect()
                self._open()
            self._db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled back already
                    self._db.execute("ROLLBACK")
                raise

    def write(self, sql: str, values: Sequence[object], *, durable: bool = True) -> None:
        """Execute a statement in a transaction."""
        with self.transaction(durable=durable) as db:
            db.execute(sql, values)

    def value(self, sql: str, *values: object) -> Any:
        """The first value of the only row of a query, or None."""
        rows = self.query(sql, values)
        return rows[0][0] if rows else None

    def query(self, sql: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[Any]:
        """All rows of a query."""
        with self._guard, self._errors():
            return self._db.execute(sql, values).fetchall()

    def readable(self, rows: Rows, values: Mapping[str, object], convert: Callable[[Any], Any] = tuple) -> list[Any]:
        """The rows of a table, in order of their key, each converted; of a damaged file, the readable ones.

        No row is kept once it is converted: the text of a long history is not in memory twice.
        """
        with self._guard:
            try:
                with self._errors():
                    return [convert(row) for row in self._db.execute(rows.sql(), values)]
            except DamagedError:
                return [convert(row) for row in readable_rows(self._db, rows, values)]


def damage_lines(damage: Mapping[str, str]) -> list[str]:
    """The unreadable parts, each once, in lines for a person."""
    return [f"{line}: {REPAIR}" for line in dict.fromkeys(damage.values())]


class Rows(NamedTuple):
    """Rows of a table: `key` is unique among those that match `where`, and their first column."""

    table: str
    key: str
    columns: str
    where: str = "1"

    def sql(self, direction: str = "ASC") -> str:
        """The query for them."""
        return f"SELECT {self.key}, {self.columns} FROM {self.table} WHERE {self.where} ORDER BY 1 {direction}"


def readable_rows(db: sqlite3.Connection, rows: Rows, values: Mapping[str, object]) -> list[Any]:
    """The readable rows, in order of their key: from both ends up to a damaged page, then one by one."""
    readable: dict[Any, Any] = {}
    keys: set[Any] = set()
    for direction in ("ASC", "DESC"):
        with suppress(sqlite3.DatabaseError):
            readable.update((row[0], row) for row in db.execute(rows.sql(direction), values))
        with suppress(sqlite3.DatabaseError):
            keys.update(key for key, _ in db.execute(rows._replace(columns="1").sql(direction), values))
    single = rows._replace(where=f"({rows.where}) AND {rows.key} = :the_key").sql()
    for key in keys - readable.keys():
        with suppress(sqlite3.DatabaseError):
            readable.update((row[0], row) for row in db.execute(single, {**values, "the_key": key}))
    return [readable[key] for key in sorted(readable)]


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file; None if it is gone."""
    with suppress(FileNotFoundError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None


def database_files(path: Path) -> list[Path]:
    """The database and SQLite's other files (https://www.sqlite.org/tempfiles.html)."""
    return [path, *(path.with_name(path.name + ending) for ending in ("-wal", "-shm", "-journal"))]


def statements(script: str) -> Iterator[str]:
    """Split a script: `executescript` would commit the surrounding transaction."""
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


class Liveness:
    """Which running programs use the store: each locks a file of its own in `folder`; the lock ends with the process.

    `killed`: another process ended without removing its file: by a signal, or a power failure. Raises OSError if the
    folder can't be used.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = private_folder(folder)
        self.owner = new_id()
        self.killed = self._forget_dead()
        self._file = self._path(self.owner).open("wb")
        lock(self._file)

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
            return lock(file)

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


# -- identifiers that sort by time ------------------------------------------------------------------------------------

_OURS = re.compile(r"0[0-9a-f]{23}")  # half the range of 48 bits of milliseconds: until the year 2527
_ids_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """A unique id of 24 hex digits: 48 bits of milliseconds since the epoch, 16 of sequence, 32 random.

    Ids made by one process increase strictly, also within a millisecond and when the clock is set back.
    """
    global _last
    with _ids_lock:
        stamp = max(time.time_ns() // 1_000_000 << 16, _last + 1)
        _last = stamp
    return f"{stamp:016x}{os.urandom(4).hex()}"


def follow(idents: Iterable[str]) -> None:
    """Make later ids greater than these, even if the clock was set back since they were made."""
    global _last
    stamps = [int(ident[:16], 16) for ident in idents if _OURS.fullmatch(ident)]
    with _ids_lock:
        _last = max([_last, *stamps])

"""`chatctx doctor --repair`: copies the readable parts of a damaged database into a new one. The old one is kept."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tui.chat.store import codec
from tui.chat.store.database import Database, Liveness, Rows, StoreError, database_files, readable_rows, statements
from tui.chat.store.schema import IMPORTS_FROM_STATE, LEARNED_BEFORE_8
from tui.chat.store.store import damaged_message, message_of
from tui.text.numbers import plural

NEW = ".repaired"

# Keys of the tables, referenced tables first. The content of other tables can be computed again.
COPIED_TABLES = (
    ("calls", "id"),
    ("imports", "rowid"),
    ("imported_files", "path"),
    ("blobs", "sha256"),
    ("state", "key"),
    ("prompts", "id"),
)
COPIED_WITH_SESSIONS = (("deltas", "message || '/' || seq"), ("records", "id"))


@dataclass(slots=True)
class Repaired:
    """The outcome. `backup` is the old file; `lost` are lines on what could not be read."""

    sessions: int = 0
    messages: int = 0
    lost: list[str] = field(default_factory=list)
    backup: Path | None = None


def repair(path: Path) -> Repaired:
    """Copy the readable parts of the database at `path` into a new one in its place.

    Raises `StoreError` if another program has it open, nothing of it can be read, or the copy can't be written.
    """
    new = path.with_name(path.name + NEW)
    _forget(new)
    done = Repaired()
    with _alone(path):
        try:
            with closing(_opened(path)) as old, closing(Database(new)) as store, store.transaction() as db:
                _copy(old, db, done)
            if not done.sessions:
                raise StoreError(f"nothing in {path} can be read: move it away, and a new one is made")
            done.backup = _swap(path, new)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{path} can't be repaired ({error}); it was not changed") from None
        finally:
            _forget(new)
    return done


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Ensure that no other chatctx has the database open. Raises `StoreError` if one has."""
    liveness = Liveness(path.parent / "running")
    try:
        if any(
            liveness.is_alive(mark.stem)
            for mark in (path.parent / "running").glob("*.lock")
            if mark.stem != liveness.owner
        ):
            raise StoreError(f"{path} is open in another chatctx: end it, then repair")
        yield
    finally:
        liveness.close()


def _opened(path: Path) -> sqlite3.Connection:
    """The old database, opened read-only, including its WAL."""
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    db.text_factory = lambda data: data.decode("utf-8", "replace")
    db.execute("PRAGMA writable_schema = ON")  # read a damaged schema as far as possible
    return db


def _copy(old: sqlite3.Connection, new: sqlite3.Connection, done: Repaired) -> None:
    sessions = {row[0]: row for row in _rows(old, new, "sessions", "id")}
    # The index of the messages may be intact where the table of the sessions is not.
    of_messages = readable_rows(old, Rows("messages", "session || '/' || id", "session"), {})
    for ident in sorted({*sessions, *(session for _, session in of_messages)}):
        if ident in sessions:
            _insert(new, "sessions", sessions[ident])
        else:
            done.lost.append(f"the title of session {ident}")
            now = time.time()
            new.execute(
                "INSERT INTO sessions (id, title, created_at, updated_at, provider, model) VALUES (?, ?, ?, ?, '', '')",
                (ident, "Recovered", now, now),
            )
        done.sessions += 1
        done.messages += _copy_session(old, new, ident, done)
    for table, key in COPIED_TABLES:
        for row in _rows(old, new, table, key):
            _insert(new, table, row)
    # An old file may be too damaged to be brought forward.
    for statement in statements(IMPORTS_FROM_STATE + LEARNED_BEFORE_8):
        new.execute(statement)


def _copy_session(old: sqlite3.Connection, new: sqlite3.Connection, session: str, done: Repaired) -> int:
    """Returns the number of messages."""
    messages = _rows(old, new, "messages", "id", session)
    with suppress(sqlite3.DatabaseError):  # the index may be intact
        (count,) = old.execute("SELECT count(*) FROM messages WHERE session = ?", (session,)).fetchone()
        if count > len(messages):
            done.lost.append(f"{plural(count - len(messages), 'message')} of session {session}")
    for row in messages:
        _insert(new, "messages", _readable_message(row, session, done))
    for table, key in COPIED_WITH_SESSIONS:
        for row in _rows(old, new, table, key, session):
            _insert(new, table, row)
    return len(messages)


def _readable_message(row: tuple[Any, ...], session: str, done: Repaired) -> tuple[Any, ...]:
    """A readable row of `messages`; an unreadable one is replaced by a placeholder, so that its position stays."""
    try:
        message_of(row[1:12])
    except (ValueError, TypeError, AttributeError):
        done.lost.append(f"the text of a message of session {session}")
        stand_in = damaged_message(*row[1:4])
        return (*row[:4], stand_in.status, *row[5:8], codec.dump(stand_in.parts), None, None, stand_in.error, None)
    return row


def _rows(
    old: sqlite3.Connection, new: sqlite3.Connection, table: str, key: str, session: str | None = None
) -> list[tuple[Any, ...]]:
    """The readable rows of a table, all or of a session, with the columns of the new table, in its order."""
    where = "1" if session is None else "session = :session"
    new_columns = [name for _, name, *_ in new.execute(f"PRAGMA table_info({table})")]
    with suppress(sqlite3.DatabaseError):
        old_columns = {name for _, name, *_ in old.execute(f"PRAGMA table_info({table})")}
        columns = ", ".join(name if name in old_columns else "NULL" for name in new_columns)
        return [row[1:] for row in readable_rows(old, Rows(table, key, columns, where), {"session": session})]
    return []


def _insert(new: sqlite3.Connection, table: str, row: tuple[Any, ...]) -> None:
    with suppress(sqlite3.IntegrityError):  # the row exists already, or refers to a lost one
        new.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def _swap(path: Path, new: Path) -> Path:
    """Move the new database to the place of the old one. Returns the old one's new path."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    damaged = path.with_name(f"{path.stem}.damaged-{stamp}{path.suffix}")
    for file in database_files(path):
        if file.exists():
            file.rename(damaged.with_name(file.name.replace(path.name, damaged.name, 1)))
    new.rename(path)
    return damaged


def _forget(path: Path) -> None:
    for file in database_files(path):
        file.unlink(missing_ok=True)

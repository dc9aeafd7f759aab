"""Stores with many pages, and ways to damage them."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.messages import assistant, user
from tui.chat.store.database import new_id
from tui.chat.store.store import SessionInfo, SessionStore
from tui.messages import Usage

PAGE = 4096


def make_store(path: Path) -> Path:
    """A store at `path` with 60 sessions of 12 messages, over many pages."""
    with closing(SessionStore(path)) as store, store.transaction():
        for number in range(60):
            ident = f"{number:04}"
            store.create_session(SessionInfo(ident, f"session {number} " + "t" * 200, "demo", "guide", number, number))
            for turn in range(6):
                store.add_message(ident, user(f"question {number}.{turn} " + "x" * 900, id=new_id()))
                usage = Usage(10, 0, 0, 5)
                store.add_message(ident, assistant(f"answer {number}.{turn}", id=new_id(), usage=usage))
            store.add_record(ident, "pin", {"id": ident, "on": True})
    return path


def spoil(path: Path, sql: str, *values: object) -> None:
    """Run `sql` against the rules of the store."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for name in ("messages_are_append_only", "records_are_append_only"):
            db.execute(f"DROP TRIGGER IF EXISTS {name}")
        db.execute(sql, values)


def break_pages(path: Path, *pages: int) -> None:
    """Overwrite pages, counted from 0, with noise."""
    data = bytearray(path.read_bytes())
    for page in pages:
        data[page * PAGE : (page + 1) * PAGE] = random.Random(page).randbytes(PAGE)
    path.write_bytes(data)


def pages_of(path: Path, table: str) -> list[int]:
    """The leaf pages of a table, counted from 0."""
    with closing(sqlite3.connect(path)) as db:
        try:
            sql = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY pageno"
            return [number - 1 for (number,) in db.execute(sql, (table,))]
        except sqlite3.OperationalError:
            pytest.skip("this SQLite has no dbstat")

"""What was imported: sessions by the digest of their messages, and files by their size and time of change."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tui.chat.store.database import Database


class ImportLog:
    """The tables `imports` and `imported_files`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, session: str, digest: str, unmeasured: str) -> None:
        """Record an imported session: the digest of its messages, and what `measure_imported` needs, as JSON."""
        with self._database.transaction(durable=False) as db:
            db.execute(
                "INSERT INTO imports (session, digest, unmeasured) VALUES (?, ?, ?)", (session, digest, unmeasured)
            )

    def newest(self, digests: Sequence[str]) -> tuple[str, str] | None:
        """The session imported last, of those in the list, with one of these digests; and its digest."""
        rows: list[tuple[str, str]] = self._database.query(
            "SELECT session, digest FROM imports JOIN sessions ON sessions.id = session"
            " WHERE deleted_at IS NULL AND digest IN (SELECT value FROM json_each(?))"
            " ORDER BY imports.rowid DESC LIMIT 1",
            (json.dumps(digests),),
        )
        return rows[0] if rows else None

    def unmeasured(self, session: str) -> str | None:
        """What was recorded for measuring a session; None if it was measured, or not imported."""
        rows = self._database.query("SELECT unmeasured FROM imports WHERE session = ?", (session,))
        return rows[0][0] if rows else None

    def set_measured(self, session: str) -> None:
        """Record that a session was measured."""
        with self._database.transaction(durable=False) as db:
            db.execute("UPDATE imports SET unmeasured = NULL WHERE session = ?", (session,))

    def add_file(self, path: Path, size: int, changed: float) -> None:
        """Record that a file was imported: its size in bytes and time of change, in seconds since the epoch."""
        with self._database.transaction(durable=False) as db:
            db.execute("INSERT OR REPLACE INTO imported_files VALUES (?, ?, ?)", (str(path.absolute()), size, changed))

    def has_file(self, path: Path, size: int, changed: float) -> bool:
        """Whether a file was imported in this state."""
        sql = "SELECT 1 FROM imported_files WHERE path = ? AND size = ? AND changed = ?"
        return bool(self._database.query(sql, (str(path.absolute()), size, changed)))

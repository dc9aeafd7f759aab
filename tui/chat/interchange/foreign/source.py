"""A session file of any program, read once and offered in the forms that readers need.

Damage is local: a line that is not JSON is skipped and listed in `skipped`, the rest is read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from tui.chat.interchange.recording import MALFORMED, RecordingError
from tui.config.files import FileTooLargeError, read_all
from tui.text.numbers import size_text

MAX_BYTES = 500_000_000  # bytes; larger files are not read
MOST_HEADER = 1_000_000  # of its first line
SQLITE_MAGIC = b"SQLite format 3\0"
MOST_NAMED = 3  # damaged lines listed individually

Line = dict[str, Any]


class SourceFile:
    """One file or task folder. Every form is computed on first use and then cached; `close` when done.

    Of a file of lines only the first and those after `start` bytes are read.
    """

    def __init__(self, path: Path, start: int = 0) -> None:
        self.path = path
        self._start = start
        self.name = path.name
        self.stem = path.stem
        self._damaged: list[int] = []

    @cached_property
    def data(self) -> bytes:
        """The bytes of the file, none for a folder. Raises `RecordingError` if it can't be read."""
        if self.path.is_dir():
            return b""
        try:
            if self._start:
                with self.path.open("rb") as stream:
                    first = stream.readline(MOST_HEADER)
                    stream.seek(max(self._start, len(first)) - 1)
                    stream.readline()  # the rest of a line that was begun before
                    return first + stream.read(MAX_BYTES)
            return read_all(self.path, MAX_BYTES)
        except FileTooLargeError:
            raise RecordingError(f"{self.name}: larger than {size_text(MAX_BYTES)}, not read") from None
        except OSError as error:
            raise RecordingError(f"{self.path}: {error.strerror or error}") from None

    @cached_property
    def text(self) -> str:
        """The file as text. Bytes that are not UTF-8 become surrogates; a byte order mark is dropped."""
        encoding = "utf-16" if self.data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
        return self.data.decode(encoding, "surrogateescape").removeprefix("\ufeff")

    @cached_property
    def document(self) -> Any:
        """The whole file as one JSON value; None if it is not one."""
        if not self._is_json:
            return None
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            return None

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The JSON objects of the file, one or more per line. Damaged lines are left out."""
        if isinstance(self.document, list) or not self._is_json:
            return ()
        return (self.document,) if isinstance(self.document, dict) else tuple(self._objects())

    @property
    def _is_json(self) -> bool:
        return not self.is_database and self.text[:100].lstrip("\x00\ufeff \t\r\n")[:1] in ("{", "[")

    def _objects(self) -> Iterator[Line]:
        decoder = json.JSONDecoder()
        for number, line in enumerate(self.text.split("\n"), 1):
            text = line.strip("\x00\ufeff \t\r")  # NULs: left by a power cut in a growing file
            while text:
                try:
                    value, end = decoder.raw_decode(text)
                except (ValueError, RecursionError):
                    self._damaged.append(number)
                    break
                if isinstance(value, dict):
                    yield value
                text = text[end:].lstrip("\x00 \t\r")

    def feed(self, add: Callable[[Line], None]) -> None:
        """Pass every line to `add`. Lines that it can't process are skipped, like those that are not JSON."""
        for number, line in enumerate(self.lines, 1):
            try:
                add(line)
            except MALFORMED:
                self._damaged.append(number)

    @property
    def skipped(self) -> str:
        """The damaged lines, for a person; "" for none."""
        if not self._damaged:
            return ""
        count, first = len(self._damaged), sorted(self._damaged)[:MOST_NAMED]
        named = ", ".join(map(str, first)) + ("…" if count > MOST_NAMED else "")
        return f"{count:,} damaged line{'s' if count > 1 else ''} skipped (line {named})"

    @cached_property
    def is_database(self) -> bool:
        """Whether the file is a SQLite database."""
        try:
            if not self.path.is_file():
                return False
            with self.path.open("rb") as stream:
                return stream.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
        except OSError:
            return False

    @cached_property
    def tables(self) -> frozenset[str]:
        """Names of the database's tables; empty for any other file."""
        if not self.is_database:
            return frozenset()
        return frozenset(str(row["name"]) for row in self.query("SELECT name FROM sqlite_master WHERE type = 'table'"))

    def query(self, sql: str, values: tuple[object, ...] = ()) -> list[sqlite3.Row]:
        """Rows of the database. Raises `RecordingError`."""
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise RecordingError(f"{self.name}: the database can't be read ({error})") from None

    @cached_property
    def _connection(self) -> sqlite3.Connection:
        """The database, opened read-only."""
        # Without a write-ahead log there is no writer, and `immutable` avoids creating files beside the database.
        mode = "mode=ro" if self.path.with_name(self.name + "-wal").exists() else "mode=ro&immutable=1"
        connection = sqlite3.connect(f"{self.path.absolute().as_uri()}?{mode}", uri=True)
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        return connection

    def close(self) -> None:
        """Close the database, if it was read."""
        if "_connection" in vars(self):
            self._connection.close()

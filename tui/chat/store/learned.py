"""What the accounting stores between runs: counts, measurements and calibrations."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields

from tui.chat.store.codec import MALFORMED
from tui.chat.store.database import Database, StoreError
from tui.context.estimate.calibration import CalibrationStore
from tui.context.estimate.measurements import REMEMBERED, Measurement, MeasurementStore

log = logging.getLogger(__name__)

MAX_COUNTS = 500_000  # rows, about 60 bytes each; the oldest are dropped first
PRUNE_EVERY = 20_000  # added rows
_BATCH = 500  # variables in one statement, under SQLite's limit in every build


@contextmanager
def optional_write() -> Iterator[None]:
    """Ignore a full disk: these values can be computed again, and must not fail the running turn."""
    try:
        yield
    except StoreError as error:
        log.warning("not remembered: %s", error)


# A conversation was mostly counted in its order: its rows stand together, and looking each up takes twice as long.
_STORED_AFTER = f"""
SELECT later.digest, later.value
FROM counts AS first JOIN counts AS later ON later.rowid BETWEEN first.rowid AND first.rowid + {_BATCH}
WHERE (first.tokenizer, first.version, first.digest) = (:tokenizer, :version, :digest)
    AND (+later.tokenizer, +later.version) = (:tokenizer, :version)
"""


class StoredCounts:
    """A `CountCache` in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._added = 0

    def get_many(self, tokenizer: str, version: int, digests: Sequence[bytes]) -> dict[bytes, tuple[int, ...]]:
        """The stored values of `digests`."""
        texts: dict[bytes, str] = {}
        for start in range(0, len(digests), _BATCH):
            batch = digests[start : start + _BATCH]
            if len(batch) == _BATCH:
                first = {"tokenizer": tokenizer, "version": version, "digest": batch[0]}
                texts.update(self._database.query(_STORED_AFTER, first))
            if missing := [digest for digest in batch if digest not in texts]:
                marks = ",".join("?" * len(missing))
                sql = f"SELECT digest, value FROM counts WHERE tokenizer = ? AND version = ? AND digest IN ({marks})"
                texts.update(self._database.query(sql, (tokenizer, version, *missing)))
        return {digest: tuple(map(int, texts[digest].split())) for digest in digests if digest in texts}

    def put_many(self, tokenizer: str, version: int, values: Mapping[bytes, tuple[int, ...]]) -> None:
        """Store `values`, replacing earlier ones."""
        rows = ((tokenizer, version, digest, " ".join(map(str, value))) for digest, value in values.items())
        with optional_write(), self._database.transaction(durable=False) as db:
            db.executemany(
                "INSERT OR REPLACE INTO counts (tokenizer, version, digest, value) VALUES (?, ?, ?, ?)", rows
            )
            self._added += len(values)
            if self._added >= PRUNE_EVERY:
                self._added = 0
                db.execute("DELETE FROM counts WHERE rowid <= (SELECT max(rowid) FROM counts) - ?", (MAX_COUNTS,))

    def clear(self, tokenizer: str) -> None:
        """Remove all values stored under `tokenizer`."""
        with optional_write():
            self._database.write("DELETE FROM counts WHERE tokenizer = ?", (tokenizer,), durable=False)


class StoredMeasurements(MeasurementStore):
    """Measurements in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, provider: str, model: str) -> Iterable[Measurement]:
        """The newest measurements of a model, oldest first."""
        rows = self._database.query(
            "SELECT sent, preamble, at, data FROM measurements WHERE provider = ? AND model = ?"
            " ORDER BY at DESC LIMIT ?",
            (provider, model, REMEMBERED),
        )
        for sent, preamble, at, text in reversed(rows):
            try:
                data = json.loads(text)
                replied = data["replied"]
                data["replied"] = None if replied is None else bytes.fromhex(replied)
                measurement = Measurement(provider=provider, model=model, sent=sent, preamble=preamble, at=at, **data)
            except MALFORMED as error:
                log.warning("a measurement of %s/%s can't be read: %r", provider, model, error)
            else:
                yield measurement

    def save(self, measurement: Measurement) -> None:
        """Add one, and drop the model's oldest above a limit."""
        keyed = ("provider", "model", "sent", "preamble", "at")
        data = {f.name: getattr(measurement, f.name) for f in fields(measurement) if f.name not in keyed}
        data["replied"] = None if measurement.replied is None else measurement.replied.hex()
        model = (measurement.provider, measurement.model)
        with optional_write(), self._database.transaction(durable=False) as db:
            db.execute(
                "INSERT OR REPLACE INTO measurements (provider, model, sent, preamble, at, data)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (*model, measurement.sent, measurement.preamble, measurement.at, json.dumps(data)),
            )
            (count,) = db.execute(
                "SELECT count(*) FROM measurements WHERE provider = ? AND model = ?", model
            ).fetchone()
            if count > 2 * REMEMBERED:
                db.execute(
                    "DELETE FROM measurements WHERE provider = ? AND model = ? AND at < (SELECT at FROM measurements"
                    " WHERE provider = ? AND model = ? ORDER BY at DESC LIMIT 1 OFFSET ?)",
                    (*model, *model, REMEMBERED - 1),
                )

    def remove(self, measurement: Measurement) -> None:
        """Remove one that proved wrong."""
        key = (measurement.provider, measurement.model, measurement.sent, measurement.preamble)
        sql = "DELETE FROM measurements WHERE provider = ? AND model = ? AND sent = ? AND preamble = ?"
        with optional_write():
            self._database.write(sql, key, durable=False)

    def clear(self, provider: str, model: str) -> None:
        """Remove all of a model."""
        sql = "DELETE FROM measurements WHERE provider = ? AND model = ?"
        with optional_write():
            self._database.write(sql, (provider, model), durable=False)


class StoredCalibrations(CalibrationStore):
    """Calibrations in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, provider: str, model: str) -> Mapping[str, object] | None:
        """What was saved last, or None."""
        sql = "SELECT data FROM calibrations WHERE provider = ? AND model = ?"
        data: Mapping[str, object] | None = json.loads(self._database.value(sql, provider, model) or "null")
        return data

    def save(self, provider: str, model: str, data: Mapping[str, object]) -> None:
        """Replace what was saved."""
        sql = "INSERT OR REPLACE INTO calibrations (provider, model, data) VALUES (?, ?, ?)"
        with optional_write():
            self._database.write(sql, (provider, model, json.dumps(data)), durable=False)

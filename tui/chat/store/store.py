"""The session store: sessions, their append-only history, the records beside it, and the search in them."""

from __future__ import annotations

import json
import logging
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from sys import intern
from typing import Any

from tui.chat.store import codec
from tui.chat.store.codec import PartsBuilder, dump_events, load_events
from tui.chat.store.database import DamagedError, Database, Rows, new_id
from tui.errors import UsageError
from tui.messages import Message, MessageKind, Role, Text
from tui.providers.base import StreamEvent

log = logging.getLogger(__name__)

EMPTY_SESSION_SECONDS = 86_400.0
DAMAGED = "[This message is damaged in the database and can't be read.]"
_COLUMNS = "title, provider, model, created_at, updated_at, rolling, draft, parent"
MESSAGE_COLUMNS = "role, kind, status, created_at, provider, model, parts, usage, finish_reason, error"
_HAS_MESSAGES = "EXISTS (SELECT 1 FROM messages m WHERE m.session = s.id)"

SEARCHED = ("text", "name", "arguments")
"""The readable fields of a stored part; the others are ids, kinds, signatures and encrypted content."""

_MATCHES = (
    "(contains(CAST(s.title AS BLOB), :words) OR EXISTS (SELECT 1 FROM messages m WHERE m.session = s.id AND"
    " CASE WHEN instr(lower(m.parts), :stored) THEN parts_contain(CAST(m.parts AS BLOB), :words) ELSE 0 END))"
)
"""The condition on sessions `s`. The stored text is searched first, so that most messages need not be parsed."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session in the list. Times are seconds since the epoch; `rolling` is `/rolling-context`."""

    id: str
    title: str
    provider: str
    model: str
    created_at: float
    updated_at: float
    rolling: bool = False
    draft: str = ""
    parent: str | None = None
    messages: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """A record beside the history, which it leaves unchanged: a compaction, a trim, a pin, an undo ..."""

    id: str
    kind: str
    at: float  # seconds since the epoch
    data: dict[str, Any]


def _info(*row: Any) -> SessionInfo:
    """A row of the table, with the number of messages."""
    info = SessionInfo(*row)
    return replace(info, rolling=bool(info.rolling))


MAX_ID = 100
"""Characters; SQLite refuses patterns of over 50,000 bytes."""


class SessionStore(Database):
    """An open database. Every method raises `StoreError` if the database can't be used."""

    def _connect(self) -> None:
        super()._connect()
        self._db.create_function("contains", 2, contains, deterministic=True)
        self._db.create_function("parts_contain", 2, parts_contain, deterministic=True)

    # -- sessions ------------------------------------------------------------------------------------------------

    def create_session(self, info: SessionInfo) -> None:
        """Add a session."""
        values = [getattr(info, name) for name in ("id", *_COLUMNS.split(", "))]
        sql = f"INSERT INTO sessions (id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        self.write(sql, values, durable=False)

    def update_session(self, session: str, **values: str | float | bool | None) -> None:
        """Set columns of a session: title, updated_at, provider, model, rolling, draft, deleted_at."""
        names = ", ".join(map("{} = ?".format, values))
        values = {name: storable(value) if isinstance(value, str) else value for name, value in values.items()}
        self.write(f"UPDATE sessions SET {names} WHERE id = ?", (*values.values(), session))

    def session(self, ident: str) -> SessionInfo | None:
        """A session by its id or an unambiguous part of it; None if there is none."""
        with suppress(UsageError):
            return self.find(ident)
        return None

    def find(self, ident: str) -> SessionInfo:
        """The session with this id, or whose id begins or ends with it. Raises `UsageError`."""
        matches = self.with_id(ident)
        if not matches:
            raise UsageError(f"no session {ident!r}; list them with: chatctx sessions")
        if len(matches) > 1:
            raise UsageError(f"several sessions have an id like {ident!r}: type more of it (chatctx sessions)")
        return matches[0]

    def with_id(self, ident: str) -> list[SessionInfo]:
        """The session with this id, else those (two at most) whose id begins or ends with it."""
        matches = self._sessions("s.id = :id", {"id": ident}, 1)
        if matches or not 0 < len(ident) <= MAX_ID:
            return matches
        part = "".join(f"[{c}]" if c in "*?[" else c for c in ident)
        where = "(s.id GLOB :start OR s.id GLOB :end) AND s.deleted_at IS NULL"
        try:
            return self._sessions(where, {"start": f"{part}*", "end": f"*{part}"}, 2)
        except DamagedError:
            readable = self._readable_sessions("")
            return [info for info in readable if info.id.startswith(ident) or info.id.endswith(ident)][:2]

    def sessions(self, query: str = "", limit: int = 1000) -> list[SessionInfo]:
        """Sessions, newest first; with `query`, those whose title or messages contain it."""
        where = "s.deleted_at IS NULL" + (f" AND {_MATCHES}" if query else "")
        try:
            return self._sessions(where, search_values(query) if query else {}, limit)
        except DamagedError:
            return self._readable_sessions(query)[:limit]

    def last_session(self) -> SessionInfo | None:
        """The session used last; None if none has messages: every start leaves an empty one for a day."""
        return next(iter(self._sessions(f"s.deleted_at IS NULL AND {_HAS_MESSAGES}", {}, 1)), None)

    def _readable_sessions(self, query: str) -> list[SessionInfo]:
        """The readable sessions of a damaged file, newest first, with the readable messages of each."""
        rows = self.readable(Rows("sessions", "id", _COLUMNS, "deleted_at IS NULL"), {})
        parts = Rows("messages", "id", "parts", "session = :session")
        infos = []
        for ident, title, *rest in rows:
            messages = self.readable(parts, {"session": ident})
            words = query.casefold()
            if not words or contains(title, words) or any(parts_contain(row[1], words) for row in messages):
                infos.append(_info(ident, title, *rest, len(messages)))
        return sorted(infos, key=lambda info: (info.updated_at, info.id), reverse=True)

    def _sessions(self, where: str, values: Mapping[str, object], limit: int) -> list[SessionInfo]:
        rows = self.query(
            f"SELECT id, {_COLUMNS}, (SELECT count(*) FROM messages WHERE session = s.id)"
            f" FROM sessions s WHERE {where} ORDER BY updated_at DESC, id DESC LIMIT :limit",
            {**values, "limit": limit},
        )
        return [_info(*row) for row in rows]

    # -- messages ------------------------------------------------------------------------------------------------

    def add_message(self, session: str, message: Message) -> None:
        """Append a message, or replace what is stored of one while it is streaming; a finished one never changes.

        A message of the person restores a session that another program has deleted meanwhile.
        """
        streaming = message.status == "streaming"
        # A stream, whose parts are in its events, may lose its last second; a tool's result may have taken longer.
        with self.transaction(durable=not streaming or bool(message.parts)) as db:
            db.execute(
                f"INSERT INTO messages (session, id, {MESSAGE_COLUMNS}, owner)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (session, id) DO UPDATE SET"
                " (status, parts, usage, finish_reason, error, owner) = (excluded.status, excluded.parts,"
                " excluded.usage, excluded.finish_reason, excluded.error, excluded.owner)",
                (
                    session, message.id, message.role, message.kind, message.status, message.created_at,
                    message.provider, message.model, *_content(message), self._liveness.owner if streaming else None,
                ),
            )  # fmt: skip
            if not streaming:
                db.execute("DELETE FROM deltas WHERE session = ? AND message = ?", (session, message.id))
            db.execute(
                "UPDATE sessions SET updated_at = max(updated_at, :at),"
                " deleted_at = CASE :role WHEN 'user' THEN NULL ELSE deleted_at END"
                " WHERE id = :session AND (updated_at < :at OR deleted_at IS NOT NULL)",
                {"at": message.created_at, "role": message.role, "session": session},
            )

    def append_events(self, session: str, message: str, events: Sequence[StreamEvent]) -> None:
        """Store what arrived for a streaming message. The cost is independent of the message's length."""
        seq = "SELECT coalesce(max(seq), 0) + 1 FROM deltas WHERE session = ? AND message = ?"
        sql = f"INSERT INTO deltas (session, message, seq, events) VALUES (?, ?, ({seq}), ?)"
        self.write(sql, (session, message, session, message, dump_events(events)), durable=False)

    def messages(self, session: str) -> list[Message]:
        """The whole history, oldest first. A message streaming in another program comes with what has arrived."""
        rows = Rows("messages", "id", MESSAGE_COLUMNS, "session = :session")
        messages = self.readable(rows, {"session": session}, partial(self._message, session))
        return [self._grown(session, m) if m.status == "streaming" else m for m in messages]

    def message_ids(self, session: str) -> list[str]:
        """The ids of the whole history, oldest first."""
        return [ident for (ident,) in self.query("SELECT id FROM messages WHERE session = ? ORDER BY id", (session,))]

    def _grown(self, session: str, message: Message) -> Message:
        builder = PartsBuilder(message.provider, message.model)
        sql = "SELECT events FROM deltas WHERE session = ? AND message = ? ORDER BY seq"
        for (events,) in self.query(sql, (session, message.id)):
            try:
                for event in load_events(events):
                    builder.apply(event)
            except (ValueError, TypeError, LookupError):
                self.damage[f"{session}/{message.id}"] = f"a part of a message of session {session} can't be read"
        return replace(message, parts=(*message.parts, *builder.parts()), usage=builder.usage)

    def _message(self, session: str, row: Sequence[Any]) -> Message:
        """A row as a message; an unreadable one becomes a message that says so."""
        try:
            return message_of(row)
        except (ValueError, TypeError, AttributeError):
            ident, role, kind, *_ = row
            self.damage[f"{session}/{ident}"] = f"a message of session {session} can't be read"
            return damaged_message(ident, role, kind)

    def recover(self) -> int:
        """Close messages whose writer died while streaming: what arrived is kept and marked. Returns their number.

        Sessions without messages and draft are deleted after a day.
        """
        rows = self.query("SELECT session, id, owner FROM messages WHERE status = 'streaming'")
        dead = {(session, ident) for session, ident, owner in rows if not self._liveness.is_alive(owner or "")}
        text = "the program ended while this was being written"
        for session in {session for session, _ in dead}:
            for message in self.messages(session):
                if (session, message.id) in dead:
                    with self.transaction():
                        self.add_message(session, replace(message, status="interrupted", error=text))
                        self.write(
                            "UPDATE calls SET status = 'failed', error = 'interrupted'"
                            " WHERE session = ? AND message = ? AND status = 'pending'",
                            (session, message.id),
                        )
        self.write(
            f"DELETE FROM sessions AS s WHERE draft = '' AND updated_at < ? AND NOT {_HAS_MESSAGES}",
            (time.time() - EMPTY_SESSION_SECONDS,),
            durable=False,
        )
        return len(dead)

    # -- records beside the history ------------------------------------------------------------------------------

    def add_record(self, session: str, kind: str, data: dict[str, Any]) -> Record:
        """Append a record."""
        record = Record(new_id(), kind, time.time(), data)
        self.add_records(session, [record])
        return record

    def add_records(self, session: str, records: Iterable[Record]) -> None:
        """Append records of another session or program."""
        with self.transaction() as db:
            db.executemany(
                "INSERT INTO records (session, id, kind, at, data) VALUES (?, ?, ?, ?, ?)",
                [(session, r.id, r.kind, r.at, json.dumps(r.data, separators=(",", ":"))) for r in records],
            )

    def records(self, session: str) -> list[Record]:
        """All records of a session, oldest first."""
        rows = Rows("records", "id", "kind, at, data", "session = :session")
        records = []
        for ident, kind, at, data in self.readable(rows, {"session": session}):
            try:
                records.append(Record(ident, kind, at, json.loads(data)))
            except ValueError:
                self.damage[f"{session}/{ident}"] = f"a record ({kind}) of session {session} can't be read"
        return records

    def unmeasured(self, session: str) -> str | None:
        """What `import_session` recorded for measuring a session; None if it was measured, or not imported."""
        text: str | None = self.value("SELECT unmeasured FROM imports WHERE session = ?", session)
        return text

    def set_measured(self, session: str) -> None:
        """Record that an imported session was measured."""
        self.write("UPDATE imports SET unmeasured = NULL WHERE session = ?", (session,), durable=False)

    def save_draft(self, session: str, text: str, before: str) -> None:
        """Set a session's draft, which was `before` when this program last read it.

        Text written by another program in the meantime goes to the prompt history, unless it is part of `text`.
        """
        if text == before:
            return
        last_read = storable(before)
        with self.transaction():
            stored = self.value("SELECT draft FROM sessions WHERE id = ?", session) or ""
            if stored != last_read and stored.strip() and stored not in text:
                self.add_prompt(stored)
            self.update_session(session, draft=text)

    def recover_drafts(self, current: str) -> int:
        """Move drafts of sessions without messages, which nothing lists, to the prompt history. Returns their number.

        That of the `current` session stays.
        """
        sql = (
            "SELECT id, draft FROM sessions s WHERE draft != '' AND deleted_at IS NULL AND id != ?"
            f" AND NOT {_HAS_MESSAGES} ORDER BY created_at"
        )
        with self.transaction():
            drafts = self.query(sql, (current,))
            for session, draft in drafts:
                self.add_prompt(draft)
                self.update_session(session, draft="")
        return len(drafts)

    # -- state, prompts, blobs -----------------------------------------------------------------------------------------

    def get_state(self, key: str) -> str | None:
        """A stored value, or None."""
        text: str | None = self.value("SELECT value FROM state WHERE key = ?", key)
        return text

    def state(self, key: str) -> dict[str, Any]:
        """A stored JSON object; {} if there is none, or if it is damaged."""
        try:
            values = json.loads(self.get_state(key) or "{}")
        except ValueError:
            values = None
        if not isinstance(values, dict):
            log.warning("what is stored as %s can't be read, and is replaced", key)
            return {}
        return values

    def put_state(self, key: str, value: str | None) -> None:
        """Store a value; None deletes it."""
        if value is None:
            self.write("DELETE FROM state WHERE key = ?", (key,), durable=False)
        else:
            self.write("INSERT OR REPLACE INTO state (key, value) VALUES (?, ?)", (key, value), durable=False)

    def change_state(self, key: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """Replace a stored JSON object by the result of `change`, which gets {} if there is none. Returns the new one.

        In one transaction: concurrent changes by two programs are both applied.
        """
        with self.transaction(durable=False):
            values = change(self.state(key))
            self.put_state(key, json.dumps(values))
        return values

    def add_prompt(self, text: str) -> None:
        """Append to the prompt history."""
        self.write("INSERT INTO prompts (id, text) VALUES (?, ?)", (new_id(), json.dumps(text)))

    def prompts(self, limit: int = 500) -> list[str]:
        """The newest prompts over all sessions, oldest of them first."""
        prompts = []
        for ident, text in reversed(self.query("SELECT id, text FROM prompts ORDER BY id DESC LIMIT ?", (limit,))):
            try:
                prompts.append(str(json.loads(text)))
            except ValueError:
                self.damage[f"prompts/{ident}"] = "a prompt of the history can't be read"
        return prompts

    def put_blob(self, sha256: str, data: bytes) -> None:
        """Store an attachment's bytes."""
        self.write("INSERT OR IGNORE INTO blobs (sha256, data) VALUES (?, ?)", (sha256, data), durable=False)

    def blob(self, sha256: str) -> bytes | None:
        """An attachment's bytes, or None."""
        data: bytes | None = self.value("SELECT data FROM blobs WHERE sha256 = ?", sha256)
        return data


def _content(message: Message) -> tuple[object, ...]:
    usage = None if message.usage is None else codec.dump(message.usage)
    return codec.dump(message.parts), usage, storable(message.finish_reason), storable(message.error)


def storable(text: str | None) -> str | None:
    """`text` as SQLite can store it: lone surrogates become a replacement character. For labels, not for content."""
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8")


def damaged_message(ident: str, role: Role, kind: MessageKind) -> Message:
    """The placeholder for an unreadable message."""
    return Message(role, (Text(DAMAGED),), ident, kind, "failed", error="damaged in the database")


_shared: Callable[[Any], Any] = intern
"""One string for the same word of all messages, which SQLite gives one by one."""


def message_of(row: Sequence[Any]) -> Message:
    """A row of the table as a message. Raises ValueError or TypeError if it is damaged."""
    ident, role, kind, status, created_at, provider, model, parts, usage, finish_reason, error = row
    return Message(
        _shared(role),
        codec.load_parts(parts),
        ident,
        _shared(kind),
        _shared(status),
        created_at,
        _shared(provider),
        _shared(model),
        None if finish_reason is None else _shared(finish_reason),
        None if usage is None else codec.usage_from_dict(json.loads(usage)),
        error,
    )


# -- search: text, calls, results and attachments, ignoring case -------------------------------------------------------


def search_values(query: str) -> dict[str, str]:
    """The values for `_MATCHES`: the query, case-folded, and a word of it as it is stored."""
    # "Lo": letters without case, as in Chinese, Japanese, Korean, Arabic, Hebrew and more
    words = (word for word in query.split() if all(c.isascii() or unicodedata.category(c) == "Lo" for c in word))
    plain = [word.lower() for word in words]
    return {"words": query.casefold(), "stored": json.dumps(max(plain, key=len, default=""))[1:-1]}


def contains(text: str | bytes, words: str) -> bool:
    """Whether `text` contains `words`. SQL passes bytes, since text that is not UTF-8 would be an error."""
    return words in _decoded(text).casefold()


def _decoded(text: str | bytes) -> str:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


def parts_contain(parts: str | bytes, words: str) -> bool:
    """Whether a message's stored parts (JSON text) contain `words` in readable text."""
    try:
        return any(
            contains(str(part.get(field, "")), words) for part in json.loads(_decoded(parts)) for field in SEARCHED
        )
    except (ValueError, AttributeError, TypeError):
        return contains(parts, words)  # a damaged row

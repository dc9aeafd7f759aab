"""`chatctx import`: a recorded conversation becomes a session of the store. All of it or nothing.

Our own export comes back as it was: messages, records, calls and attachments. The conversations of other programs keep
their messages, and their compactions as records, so that everything can still be read and undone.
"""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet
from dataclasses import astuple, fields, replace
from pathlib import Path

from tui.chat.interchange.foreign import read_recording
from tui.chat.interchange.recording import Recording
from tui.chat.store.calls import CallRow
from tui.chat.store.ids import new_id
from tui.chat.store.store import SessionInfo, SessionStore


def import_file(path: Path, store: SessionStore, *, model: str | None = None) -> SessionInfo:
    """Read `path` into a new session, which goes on with `model` ("provider/model") or the one it was made with.

    Raises `RecordingError` for a file that can't be read, `StoreError` where it can't be written.
    """
    return import_recording(read_recording(path), store, model=model)


def import_recording(recording: Recording, store: SessionStore, *, model: str | None = None) -> SessionInfo:
    """Put `recording` into the store. An id that is taken is replaced by a new one."""
    info = _info(recording)
    if model is not None:
        provider, _, name = model.partition("/")
        info = replace(info, provider=provider, model=name)
    if store.session(info.id) is not None:
        info = replace(info, id=new_id())
    with store.transaction() as db:
        store.create_session(info)
        for sha256, data in recording.blobs.items():
            store.put_blob(sha256, data)
        for message in recording.messages:
            # A message that was growing when it was exported grows no more.
            store.add_message(
                info.id, replace(message, status="interrupted") if message.status == "streaming" else message
            )
        db.executemany(
            "INSERT INTO records (session, id, kind, at, data) VALUES (?, ?, ?, ?, ?)",
            [(info.id, r.id, r.kind, r.at, json.dumps(r.data, separators=(",", ":"))) for r in recording.records],
        )
        names = [field.name for field in fields(CallRow)]
        taken = {
            call.id for call in recording.calls if db.execute("SELECT 1 FROM calls WHERE id = ?", (call.id,)).fetchone()
        }
        db.executemany(
            f"INSERT INTO calls ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
            [astuple(_call(call, info, recording, taken)) for call in recording.calls],
        )
    return replace(info, messages=len(recording.messages))


def _info(recording: Recording) -> SessionInfo:
    if recording.info is not None:
        return recording.info
    provider, model = recording.model
    times = [message.created_at for message in recording.messages if message.created_at]
    return SessionInfo(new_id(), recording.title, provider, model, min(times, default=0.0), max(times, default=0.0))


def _call(call: CallRow, info: SessionInfo, recording: Recording, taken: AbstractSet[str]) -> CallRow:
    """A call of the session it is now in; where that is a second copy, or the id is taken, under an id of its own."""
    if recording.info is not None and recording.info.id == info.id and call.id not in taken:
        return call
    return replace(call, id=new_id(), session=info.id)

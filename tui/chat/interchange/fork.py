"""Forks: a new conversation that begins like another one up to one of its messages."""

from __future__ import annotations

import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from tui.chat.conversation.history import RecordKind, readable_records
from tui.chat.store.database import new_id
from tui.chat.store.store import MESSAGE_COLUMNS, Record, SessionInfo, SessionStore
from tui.errors import ExpectedError


def fork_session(store: SessionStore, session: str, message_id: str) -> SessionInfo:
    """Copy `session` up to and including a message, and the results of its tool calls, into a new one.

    In one transaction; messages keep their ids (unique within a session) and attachments their bytes. Raises
    `ExpectedError` if there is nothing to fork, and `StoreError`.
    """
    with store.transaction() as db:
        info = store.session(session)
        if info is None:
            raise ExpectedError("This conversation is no longer stored: nothing was forked.")
        sql = "SELECT id, role, status, kind FROM messages WHERE session = ? ORDER BY id"
        rows: list[tuple[str, str, str, str]] = db.execute(sql, (info.id,)).fetchall()
        ids = [ident for ident, *_ in rows]
        at = ids.index(message_id) if message_id in ids else None
        if at is None or rows[at][2] == "streaming":
            raise ExpectedError("This message is not complete yet: fork from it when it is.")
        end = at + 1
        _, role, _, kind = rows[at]
        if role != "user" or kind == "summary":
            for position, (_, role, status, kind) in enumerate(rows[end:], end):
                if (role, status) == ("tool", "complete"):
                    end = position + 1
                elif kind != "summary":  # a server-side compaction may be between the calls and their results
                    break
        after = ids[end] if end < len(ids) else ""
        now = time.time()
        fork = replace(info, id=new_id(), created_at=now, updated_at=now, draft="", parent=info.id, messages=end)
        store.create_session(fork)
        db.execute(
            f"INSERT INTO messages (session, id, {MESSAGE_COLUMNS}) SELECT ?, id, {MESSAGE_COLUMNS} FROM messages"
            " WHERE session = ? AND id <= ? AND status <> 'streaming'",
            (fork.id, info.id, ids[end - 1]),
        )
        records = readable_records(store, info.id)
        store.add_records(fork.id, forked_records(records, set(ids[:end]), message_id, after))
    return fork


def forked_records(
    records: Sequence[Record], copied: AbstractSet[str], message_id: str, after: str = ""
) -> list[Record]:
    """The records that apply to a fork of the messages `copied`, made at `message_id`.

    `after` is the next message ("" for none): later trims, compactions and set-asides do not apply to the fork. The
    person's choices (pins, instructions, an undone compaction) apply as they are now. A message that was set aside is
    sent again if the fork continues from it.
    """
    forked: list[Record] = []
    forked_ids: set[str] = set()  # ids of the records and compactions included so far
    for record in records:
        data, early = record.data, not after or record.id < after
        match record.kind:
            case RecordKind.TRIM | RecordKind.LOADED:
                keep = early
            case RecordKind.CHECKPOINT if data["type"] == "undo":
                keep = data["compaction"] in forked_ids
            case RecordKind.CHECKPOINT:
                keep = early and (not data["summary"] or data["summary"] in copied)
                forked_ids.add(data["id"] if keep else "")
            case RecordKind.SET_ASIDE:
                ids = [ident for ident in data["ids"] if ident in copied]
                keep = early and bool(ids) and message_id not in ids
                record = replace(record, data={**data, "ids": ids})
            case RecordKind.RESTORE:
                keep = data["record"] in forked_ids
            case RecordKind.PIN | RecordKind.EXCLUDE:
                keep = data["id"] in copied
            case RecordKind.LEAVE_OUT:
                keep = data["message"] in copied
            case _:
                keep = True
        if keep:
            forked_ids.add(record.id)
            forked.append(record)
    return forked

"""crush's database (`.crush/crush.db` in a project): sessions and messages, usage only as sums a session."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from sqlite3 import Row

from tui.chat.interchange.foreign.reading import Builder, SourceFile, seconds
from tui.chat.interchange.recording import Recording
from tui.messages import MessageStatus

SOURCE, NAME = "crush", "crush"

UNSCORED = "crush stores the last call of a session only, not every call"
_STATUS: Mapping[str, MessageStatus] = {"canceled": "cancelled", "error": "failed"}


def detect(file: SourceFile) -> bool:
    """Whether `file` has crush's tables."""
    return file.tables >= {"sessions", "messages", "files"} and "goose_db_version" in file.tables


def read(file: SourceFile) -> Iterator[Recording]:
    """Every session with messages; those of sub-agents too."""
    for session in file.query("SELECT * FROM sessions ORDER BY created_at"):
        rows = file.query("SELECT * FROM messages WHERE session_id = ? ORDER BY created_at, rowid", (session["id"],))
        if rows:
            chat = Builder()
            file.feed(partial(_add, chat, session["summary_message_id"]), rows)
            yield chat.recording(SOURCE, session["id"], session["title"], unscored=UNSCORED)


def _add(chat: Builder, summary: str | None, row: Row) -> None:
    blocks = [{**(piece.get("data") or {}), "type": piece.get("type")} for piece in json.loads(row["parts"])]
    reason = next((str(block.get("reason") or "") for block in blocks if block["type"] == "finish"), "")
    about = {"provider": row["provider"] or "", "model": row["model"] or ""}
    at = seconds(row["created_at"])  # the column says milliseconds, most files hold seconds
    before, parts = list(chat.messages), chat.parts(blocks, **about)
    if row["role"] == "assistant":
        status = _STATUS.get(reason, "complete")
        ident = chat.add("assistant", parts, at, **about, finish_reason=reason, status=status)
    else:
        ident = chat.add_entry("user", parts, at)
    if row["id"] == summary and before and ident:
        chat.record_summary(before, ident, chat.messages[-1].created_at)

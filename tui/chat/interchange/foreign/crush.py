"""crush's database (`.crush/crush.db` in a project): sessions and messages, usage only as sums a session."""

from __future__ import annotations

import json
from collections.abc import Mapping
from sqlite3 import Row
from typing import Any

from tui.chat.interchange.foreign.source import SourceFile
from tui.chat.interchange.recording import Recording, compaction, first_words
from tui.chat.store.ids import new_id
from tui.chat.store.store import Record
from tui.messages import Message, MessageStatus, Part, Reasoning, Text, ToolCall, ToolResult

SOURCE, NAME = "crush", "crush"

UNSCORED = "crush stores the last call of a session only, not every call"
_STATUS: Mapping[str, MessageStatus] = {"canceled": "cancelled", "error": "failed"}


def detect(file: SourceFile) -> bool:
    """Whether `file` has crush's tables."""
    return file.tables >= {"sessions", "messages", "files"} and "goose_db_version" in file.tables


def read(file: SourceFile) -> list[Recording]:
    """Every session with messages; those of sub-agents too."""
    recordings = []
    for session in file.query("SELECT * FROM sessions ORDER BY created_at"):
        rows = file.query("SELECT * FROM messages WHERE session_id = ? ORDER BY created_at, rowid", (session["id"],))
        if rows:
            recordings.append(_session(session, rows))
    return recordings


def _session(session: Row, rows: list[Row]) -> Recording:
    messages: list[Message] = []
    records: list[Record] = []
    names: dict[str, str] = {}
    for row in rows:
        message = _message(row, names)
        if message is None:
            continue
        if row["id"] == session["summary_message_id"] and messages:
            first, last = messages[0].id, messages[-1].id
            records.append(compaction(message.created_at, first, last, message.id, (), len(messages)))
        messages.append(message)
    title = session["title"] or first_words(messages, session["id"])
    return Recording(SOURCE, title, tuple(messages), tuple(records), unscored=UNSCORED)


def _message(row: Row, names: dict[str, str]) -> Message | None:
    parts: list[Part] = []
    results: list[Part] = []
    finish: Mapping[str, Any] = {}
    for piece in json.loads(row["parts"]):
        data = piece.get("data") or {}
        match piece.get("type"):
            case "text" if data.get("text"):
                parts.append(Text(str(data["text"])))
            case "reasoning":
                signature = data.get("signature") or None
                text = str(data.get("thinking") or "")
                parts.append(Reasoning(text, row["provider"] or "", row["model"] or "", signature=signature))
            case "tool_call":
                names[str(data["id"])] = str(data.get("name", ""))
                parts.append(ToolCall(str(data["id"]), str(data.get("name", "")), str(data.get("input") or "{}")))
            case "tool_result":
                call = str(data.get("tool_call_id"))
                text, failed = str(data.get("content") or ""), bool(data.get("is_error"))
                results.append(ToolResult(call, names.get(call, ""), text, failed))
            case "finish":
                finish = data
    at = float(row["created_at"])
    at = at / 1000 if at > 1e11 else at  # the column says milliseconds, most files hold seconds
    if results:
        return Message("tool", tuple(results), id=new_id(), created_at=at)
    if row["role"] == "user":
        return Message("user", tuple(parts), id=new_id(), created_at=at) if parts else None
    reason = str(finish.get("reason") or "")
    return Message(
        "assistant", tuple(parts), id=new_id(), created_at=at, provider=row["provider"] or "", model=row["model"] or "",
        finish_reason=reason or None, status=_STATUS.get(reason, "complete"),
    )  # fmt: skip

"""Sessions of goose: its database (`sessions.db`), and the `.jsonl` files of earlier versions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from sqlite3 import Row
from typing import Any

from tui.chat.interchange.foreign.reading import Builder, SourceFile, loaded, seconds, text_of
from tui.chat.interchange.recording import Recording
from tui.messages import Part
from tui.providers.wire import find_count

SOURCE, NAME = "goose", "goose"

UNSCORED = "goose stores the last call of a session only, not every call"


def detect(file: SourceFile) -> bool:
    """Whether `file` is goose's database, or a session file with its metadata in the first line."""
    if file.tables:
        return file.tables >= {"sessions", "messages"} and any(
            row["name"] == "content_json" for row in file.query("SELECT name FROM pragma_table_info('messages')")
        )
    return any("working_dir" in line and "message_count" in line for line in file.lines[:1])


def read(file: SourceFile) -> Iterator[Recording]:
    """Every session with messages."""
    if not file.is_database:
        head, *lines = file.lines
        chat = Builder()
        file.feed(partial(_add, chat, "", "unknown"), lines)
        yield chat.recording(SOURCE, file.stem, head.get("description"), unscored=UNSCORED)
        return
    for session in file.query("SELECT * FROM sessions ORDER BY id"):
        about = dict(session)
        entries = file.query("SELECT * FROM messages WHERE session_id = ? ORDER BY id", (session["id"],))
        if not entries:
            continue
        model = loaded(about.get("model_config_json"))
        chat = Builder()
        chat.window = find_count(model, "context_limit", least=1)
        provider, name = str(about.get("provider_name") or ""), str(model.get("model_name") or "unknown")
        file.feed(partial(_add, chat, provider, name), entries)
        title = about.get("description") or about.get("name")
        yield chat.recording(SOURCE, str(session["id"]), title, unscored=UNSCORED)


def _add(chat: Builder, provider: str, model: str, entry: Mapping[str, Any] | Row) -> None:
    if isinstance(entry, Row):
        entry = {
            "role": entry["role"],
            "created": entry["created_timestamp"],
            "content": json.loads(entry["content_json"]),
            "metadata": loaded(dict(entry).get("metadata_json")),
        }
    if (entry.get("metadata") or {}).get("agentVisible") is False:
        return  # compacted away: on goose's screen, but not sent any more
    parts = [part for block in entry.get("content") or [] for part in _parts(block, chat)]
    chat.add_entry(entry.get("role"), parts, seconds(entry.get("created")), provider=provider, model=model)


def _parts(block: Mapping[str, Any], chat: Builder) -> list[Part]:
    match block.get("type"):
        case "toolRequest":
            call = (block.get("toolCall") or {}).get("value") or {}
            return [chat.call(block.get("id"), call.get("name", ""), call.get("arguments") or {})]
        case "toolResponse":
            outcome = block.get("toolResult") or {}
            value = outcome.get("value") or []
            pieces = value.get("content") or [] if isinstance(value, dict) else value
            text = text_of(pieces) or str(outcome.get("error") or "")
            return [chat.result(block.get("id"), text, outcome.get("status") == "error")]
        case _:
            return chat.parts([block])

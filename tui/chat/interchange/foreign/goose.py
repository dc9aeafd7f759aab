"""Sessions of goose: its database (`sessions.db`), and the `.jsonl` files of earlier versions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from sqlite3 import Row
from typing import Any

from tui.chat.interchange.foreign.reading import Builder, SourceFile, loaded, seconds, text_of
from tui.chat.interchange.recording import Recording
from tui.messages import Part

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
        yield _session(file, str(head.get("description") or ""), lines, file.stem, "", "", None)
        return
    for session in file.query("SELECT * FROM sessions ORDER BY id"):
        about = dict(session)
        entries = file.query("SELECT * FROM messages WHERE session_id = ? ORDER BY id", (session["id"],))
        model = loaded(about.get("model_config_json"))
        title = str(about.get("description") or about.get("name") or "")
        provider, name = str(about.get("provider_name") or ""), str(model.get("model_name") or "")
        if entries:
            yield _session(file, title, entries, str(session["id"]), provider, name, model.get("context_limit"))


def _session(
    file: SourceFile,
    title: str,
    entries: Sequence[Mapping[str, Any] | Row],
    fallback: str,
    provider: str,
    model: str,
    window: int | None,
) -> Recording:
    chat = Builder()
    chat.window = window

    def add(entry: Mapping[str, Any] | Row) -> None:
        if isinstance(entry, Row):
            about = loaded(dict(entry).get("metadata_json"))
            content = json.loads(entry["content_json"])
            entry = {
                "role": entry["role"],
                "created": entry["created_timestamp"],
                "content": content,
                "metadata": about,
            }
        if (entry.get("metadata") or {}).get("agentVisible") is False:
            return  # compacted away: on goose's screen, but not sent any more
        parts = [part for block in entry.get("content") or [] for part in _parts(block, chat)]
        at = seconds(entry.get("created"))
        chat.add_entry(entry.get("role"), parts, at, provider=provider, model=model or "unknown")

    file.feed(add, entries)
    return chat.recording(SOURCE, fallback, title, unscored=UNSCORED)


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

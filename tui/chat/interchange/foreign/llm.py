"""The log of simonw/llm (`logs.db`): `responses` up to 0.35, since then `turns` over content-addressed messages."""

from __future__ import annotations

from collections.abc import Iterator
from sqlite3 import Row

from tui.chat.interchange.foreign.reading import Builder, SourceFile, loaded, seconds
from tui.chat.interchange.recording import Recording
from tui.messages import Part, Text, ToolCall, ToolResult
from tui.providers.usage_reading import read_usage

SOURCE, NAME = "llm", "llm"


def detect(file: SourceFile) -> bool:
    """Whether `file` has llm's tables."""
    return "responses" in file.tables and "_llm_migrations" in file.tables


def read(file: SourceFile) -> Iterator[Recording]:
    """Every conversation of both generations; a file that was upgraded holds both."""
    yield from _older(file)
    if "turns" in file.tables:
        yield from _threads(file)


def _older(file: SourceFile) -> Iterator[Recording]:
    """Every row of `responses` holds its own prompt only: a conversation is its rows in the order of their ids."""
    conversations = file.query(
        "SELECT DISTINCT r.conversation_id AS id, c.name FROM responses r"
        " LEFT JOIN conversations c ON c.id = r.conversation_id ORDER BY r.id"
    )
    for conversation in conversations:
        chat = Builder()
        rows = file.query("SELECT * FROM responses WHERE conversation_id IS ? ORDER BY id", (conversation["id"],))
        for row in rows:
            at = _time(row["datetime_utc"])
            results = file.query("SELECT * FROM tool_results WHERE response_id = ? ORDER BY id", (row["id"],))
            chat.add("tool", (ToolResult(r["tool_call_id"] or "", r["name"], r["output"] or "") for r in results), at)
            chat.add("user", [Text(row["prompt"])] if row["prompt"] else [], at)
            calls = file.query("SELECT * FROM tool_calls WHERE response_id = ? ORDER BY id", (row["id"],))
            answer: list[Part] = [Text(row["response"])] if row["response"] else []
            answer += [ToolCall(c["tool_call_id"] or "", c["name"], c["arguments"] or "{}") for c in calls]
            _answer(chat, row, answer, at)
        if chat.messages:
            yield chat.recording(SOURCE, str(conversation["id"]), conversation["name"])


def _threads(file: SourceFile) -> Iterator[Recording]:
    for thread in file.query("SELECT * FROM threads ORDER BY id"):
        turns = file.query("SELECT * FROM turns WHERE thread_id = ? ORDER BY id", (thread["id"],))
        chat = Builder()
        before: str | None = None
        for turn in turns:
            at = _time(turn["datetime_utc"])
            for stored in _chain(file, turn["tip_message_hash"], before):
                match stored["role"]:
                    case "user" | "tool" as role:
                        chat.add(role, _parts(chat, file, stored), at)
                    case "assistant":  # a system prompt is no part of the history here
                        _answer(chat, turn, _parts(chat, file, stored), at)
            before = turn["tip_message_hash"]
        if chat.messages:
            yield chat.recording(SOURCE, thread["id"], thread["name"])


def _chain(file: SourceFile, tip: str | None, stop: str | None) -> list[Row]:
    """The messages from after `stop` to `tip`, oldest first."""
    chain: list[Row] = []
    visited: set[str] = set()
    while tip and tip != stop and tip not in visited:
        visited.add(tip)
        rows = file.query("SELECT * FROM messages WHERE hash = ?", (tip,))
        if not rows:
            break
        chain.append(rows[0])
        tip = rows[0]["parent_hash"]
    return chain[::-1]


def _parts(chat: Builder, file: SourceFile, row: Row) -> list[Part]:
    blocks = []
    for part in file.query("SELECT * FROM parts WHERE message_hash = ? ORDER BY position", (row["hash"],)):
        payload = loaded(part["payload"])
        call = {"id": payload.get("tool_call_id") or "", "name": part["tool_name"] or "", "tool_call_id": ""}
        text = part["text"] or ""
        content = text or str(payload.get("output") or "")
        blocks.append({**call, **payload, "type": part["type"], "text": text, "content": content})
    return chat.parts(blocks)


def _answer(chat: Builder, row: Row, parts: list[Part], at: float) -> None:
    """Add an answer with its call's usage: `input_tokens` includes cached tokens."""
    details = loaded(row["token_details"])
    usage = read_usage({**details, "prompt_tokens": row["input_tokens"], "completion_tokens": row["output_tokens"]})
    model = str(row["resolved_model"] or row["model"] or "unknown")
    chat.add("assistant", parts, at, provider="llm", model=model, usage=usage)


def _time(stamp: str | None) -> float:
    return seconds(f"{stamp}+00:00" if stamp and "+" not in stamp else stamp)

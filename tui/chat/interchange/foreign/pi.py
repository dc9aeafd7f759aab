"""Session files of pi: a `session` line, then messages and compactions, one JSON object a line."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tui.chat.interchange.recording import Recording, compaction, first_words, seconds
from tui.chat.store.ids import new_id
from tui.chat.store.store import Record
from tui.messages import Attachment, Message, MessageStatus, Part, Reasoning, Text, ToolCall, ToolResult, Usage

_STATUS: Mapping[str, MessageStatus] = {"aborted": "cancelled", "error": "failed"}


def read(lines: Sequence[Mapping[str, Any]], name: str) -> Recording:
    """The conversation in `lines`. A compaction keeps the entries from `firstKeptEntryIndex` (later
    versions: `firstKeptEntryId`) on verbatim."""
    messages: list[Message] = []
    records: list[Record] = []
    blobs: dict[str, bytes] = {}
    kept_from: dict[int | str, int] = {}  # number or id of an entry -> position of the first message from there on
    start = 0  # where the context begins
    for number, line in enumerate(lines):
        kept_from[number] = len(messages)
        if "id" in line:
            kept_from[str(line["id"])] = len(messages)
        if line.get("type") == "message":
            message = _message(line, blobs)
            if message is not None:
                messages.append(message)
        elif line.get("type") == "compaction":
            at = seconds(line.get("timestamp"))
            text = Text(f"Summary of the conversation so far:\n\n{line.get('summary', '')}")
            summary = Message("user", (text,), id=new_id(), kind="summary", created_at=at)
            first_kept = line.get("firstKeptEntryIndex", line.get("firstKeptEntryId", number))
            begin = kept_from.get(first_kept, len(messages))
            if len(messages) > start:
                kept = [message.id for message in messages[max(start, begin) :]]
                count = len(messages) - start
                record = compaction(at, messages[start].id, messages[-1].id, summary.id, kept, count)
                records.append(record)
            messages.append(summary)
            start = max(start, min(begin, len(messages) - 1))
    kept_messages = _without_unfinished_calls(messages)
    return Recording("pi", first_words(messages, name), kept_messages, _chained(records), blobs)


def _without_unfinished_calls(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Leave out calls of answers that were cut off: pi never ran them, and never sent them back."""
    answered = {part.call_id for message in messages for part in message.parts if isinstance(part, ToolResult)}
    found = []
    for message in messages:
        if message.status in ("cancelled", "failed"):
            parts = [part for part in message.parts if not isinstance(part, ToolCall) or part.id in answered]
            message = replace(message, parts=tuple(parts))
        found.append(message)
    return tuple(found)


def _chained(records: Sequence[Record]) -> tuple[Record, ...]:
    """Make a later compaction begin at the summary of the one before, which then stands first."""
    found: list[Record] = []
    before = ""
    for record in records:
        data = dict(record.data)
        if before:
            data["first"] = before
        before = str(data["summary"])
        found.append(Record(record.id, record.kind, record.at, data))
    return tuple(found)


def _message(line: Mapping[str, Any], blobs: dict[str, bytes]) -> Message | None:
    data = line["message"]
    at = seconds(line.get("timestamp"))
    match data.get("role"):
        case "user":
            return Message("user", tuple(_parts(data.get("content"), data, blobs)), id=new_id(), created_at=at)
        case "toolResult":
            parts = _parts(data.get("content"), data, blobs)
            text = "\n".join(part.text for part in parts if isinstance(part, Text))
            result = ToolResult(str(data["toolCallId"]), str(data.get("toolName", "")), text, bool(data.get("isError")))
            seen = [part for part in parts if isinstance(part, Attachment)]
            return Message("tool", (result, *seen), id=new_id(), created_at=at)
        case "assistant":
            return _answer(data, at, blobs)
        case "bashExecution":
            text = f"Ran `{data.get('command', '')}`\n```\n{data.get('output', '')}\n```"
            return Message("user", (Text(text),), id=new_id(), kind="injected", created_at=at)
        case _:
            return None


def _answer(data: Mapping[str, Any], at: float, blobs: dict[str, bytes]) -> Message:
    stop = str(data.get("stopReason", ""))
    return Message(
        "assistant",
        tuple(_parts(data.get("content"), data, blobs)),
        id=new_id(),
        status=_STATUS.get(stop, "complete"),
        created_at=at,
        provider=str(data.get("provider", "")),
        model=str(data.get("model", "")),
        finish_reason=stop or None,
        usage=_usage(data.get("usage")),
        error=data.get("errorMessage"),
    )


def _parts(content: Any, data: Mapping[str, Any], blobs: dict[str, bytes]) -> list[Part]:
    if isinstance(content, str):
        return [Text(content)] if content else []
    found: list[Part] = []
    for block in content or []:
        match block.get("type"):
            case "text":
                found.append(Text(str(block["text"])))
            case "thinking":
                signature = block.get("thinkingSignature") or None
                provider, model = str(data.get("provider", "")), str(data.get("model", ""))
                found.append(Reasoning(str(block["thinking"]), provider, model, signature=signature))
            case "toolCall":
                arguments = json.dumps(block.get("arguments"), ensure_ascii=False)
                found.append(ToolCall(str(block["id"]), str(block["name"]), arguments))
            case "image":
                raw = base64.b64decode(block.get("data") or "")
                digest = hashlib.sha256(raw).hexdigest()
                blobs[digest] = raw
                found.append(Attachment("image", "image", str(block.get("mimeType", "image/png")), digest, len(raw)))
    return found


def _usage(data: Any) -> Usage | None:
    """Input, cache reads and cache writes are apart; all zero means that nothing was reported."""
    if not isinstance(data, dict):
        return None
    read, write = int(data.get("cacheRead") or 0), int(data.get("cacheWrite") or 0)
    total = int(data.get("input") or 0) + read + write
    return Usage(total, int(data.get("output") or 0), read, write) if total else None

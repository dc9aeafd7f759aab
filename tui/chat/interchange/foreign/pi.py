"""Session files of pi: a `session` line, then entries, one JSON object a line; since version 2 they form a tree."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tui.chat.conversation.history import RecordKind
from tui.chat.interchange.foreign.source import Line, SourceFile
from tui.chat.interchange.recording import Recording, compaction, first_words, picture, seconds
from tui.chat.store.ids import new_id
from tui.chat.store.store import Record
from tui.messages import Attachment, Message, MessageStatus, Part, Reasoning, Text, ToolCall, ToolResult, Usage

SOURCE, NAME = "pi", "pi"

_STATUS: Mapping[str, MessageStatus] = {"aborted": "cancelled", "error": "failed"}


def detect(file: SourceFile) -> bool:
    """Whether the first line is a session's header."""
    return any(line.get("type") == "session" for line in file.lines[:1])


def read(file: SourceFile) -> list[Recording]:
    """The conversation in `file`: every branch, of which only the last one is not set aside.

    A compaction keeps the entries from `firstKeptEntryIndex` (since version 2: `firstKeptEntryId`) on verbatim.
    """
    lines = file.lines
    path = _path(lines)
    aside: list[str] = []  # messages of branches that were left
    messages: list[Message] = []
    records: list[Record] = []
    blobs: dict[str, bytes] = {}
    first_from: dict[int | str, int] = {}  # number or id of an entry -> position of the first message from there on
    start = 0  # where the context begins
    for number, line in enumerate(lines):
        first_from[number] = len(messages)
        if "id" in line:
            first_from[str(line["id"])] = len(messages)
        active = path is None or number in path
        if line.get("type") == "compaction":
            if not active:
                continue
            at = seconds(line.get("timestamp"))
            text = Text(f"Summary of the conversation so far:\n\n{line.get('summary', '')}")
            summary = Message("user", (text,), id=new_id(), kind="summary", created_at=at)
            first_kept = line.get("firstKeptEntryIndex", line.get("firstKeptEntryId", number))
            begin = first_from.get(first_kept if isinstance(first_kept, int) else str(first_kept), len(messages))
            if len(messages) > start:
                verbatim = [message.id for message in messages[max(start, begin) :]]
                count = len(messages) - start
                records.append(compaction(at, messages[start].id, messages[-1].id, summary.id, verbatim, count))
            messages.append(summary)
            start = max(start, min(begin, len(messages) - 1))
        elif (message := _entry(line, blobs)) is not None:
            messages.append(message)
            if not active:
                aside.append(message.id)
    records = list(_chained(records))
    if aside:
        records.append(Record(new_id(), RecordKind.SET_ASIDE, messages[-1].created_at, {"ids": aside}))
    finished = _without_unfinished_calls(messages)
    return [Recording(SOURCE, first_words(messages, file.stem), finished, tuple(records), blobs)]


def _path(lines: Sequence[Line]) -> frozenset[int] | None:
    """The numbers of the lines from the last entry back to the root; None where entries name no parents."""
    numbers = {str(line["id"]): number for number, line in enumerate(lines) if "id" in line and "parentId" in line}
    if not numbers:
        return None
    path: set[int] = set()
    at: int | None = max(numbers.values())
    while at is not None and at not in path:
        path.add(at)
        at = numbers.get(str(lines[at].get("parentId")))
    return frozenset(path)


def _entry(line: Line, blobs: dict[str, bytes]) -> Message | None:
    """The message that an entry puts into the context; None for those that are only for the screen."""
    match line.get("type"):
        case "message":
            return _message(line, blobs)
        case "custom_message":
            parts = tuple(_parts(line.get("content"), line, blobs))
            at = seconds(line.get("timestamp"))
            return Message("user", parts, id=new_id(), kind="injected", created_at=at) if parts else None
        case "branch_summary":
            text = Text(f"Summary of a branch that was abandoned:\n\n{line.get('summary', '')}")
            at = seconds(line.get("timestamp"))
            return Message("user", (text,), id=new_id(), kind="injected", created_at=at)
        case _:
            return None


def _without_unfinished_calls(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Leave out calls of answers that were cut off: pi never ran them, and never sent them back."""
    answered = {part.call_id for message in messages for part in message.parts if isinstance(part, ToolResult)}
    complete = []
    for message in messages:
        if message.status in ("cancelled", "failed"):
            parts = [part for part in message.parts if not isinstance(part, ToolCall) or part.id in answered]
            message = replace(message, parts=tuple(parts))
        complete.append(message)
    return tuple(complete)


def _chained(records: Sequence[Record]) -> tuple[Record, ...]:
    """Make a later compaction begin at the summary of the one before, which then stands first."""
    chained: list[Record] = []
    before = ""
    for record in records:
        data = dict(record.data)
        if before:
            data["first"] = before
        before = str(data["summary"])
        chained.append(Record(record.id, record.kind, record.at, data))
    return tuple(chained)


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
            images = [part for part in parts if isinstance(part, Attachment)]
            return Message("tool", (result, *images), id=new_id(), created_at=at)
        case "assistant":
            return _answer(data, at, blobs)
        case "bashExecution" if not data.get("excludeFromContext"):
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
    parts: list[Part] = []
    for block in content or []:
        match block.get("type"):
            case "text":
                parts.append(Text(str(block["text"])))
            case "thinking":
                signature = block.get("thinkingSignature") or None
                provider, model = str(data.get("provider", "")), str(data.get("model", ""))
                parts.append(Reasoning(str(block["thinking"]), provider, model, signature=signature))
            case "toolCall":
                arguments = json.dumps(block.get("arguments"), ensure_ascii=False)
                parts.append(ToolCall(str(block["id"]), str(block["name"]), arguments))
            case "image":
                parts += picture(str(block.get("mimeType", "image/png")), str(block.get("data") or ""), blobs)
    return parts


def _usage(data: Any) -> Usage | None:
    """Input, cache reads and cache writes are apart; all zero means that nothing was reported."""
    if not isinstance(data, dict):
        return None
    read, write = int(data.get("cacheRead") or 0), int(data.get("cacheWrite") or 0)
    total = int(data.get("input") or 0) + read + write
    return Usage(total, int(data.get("output") or 0), read, write) if total else None

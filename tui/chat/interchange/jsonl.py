"""Our own format of a session: JSONL, without loss."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, TypeVar

from tui.chat.interchange.recording import Recording, RecordingError
from tui.chat.store.calls import CallRow
from tui.chat.store.codec import message_from_dict, message_to_dict
from tui.chat.store.store import Record, SessionInfo
from tui.messages import Message

FORMAT = "chatctx-session"
VERSION = 1

Row = TypeVar("Row", SessionInfo, CallRow)


def write_jsonl(
    info: SessionInfo,
    messages: Iterable[Message],
    records: Iterable[Record],
    calls: Iterable[CallRow],
    blobs: Iterable[tuple[str, bytes]],
) -> Iterator[str]:
    """One JSON object per line: the session, its messages, records, calls, and attachments in base64."""

    def line(kind: str, data: dict[str, Any]) -> str:
        return json.dumps({"type": kind, **data}, separators=(",", ":"))

    yield line("session", {"format": FORMAT, "version": VERSION, **asdict(info)})
    for message in messages:
        yield line("message", {"message": message_to_dict(message)})
    for record in records:
        yield line("record", asdict(record))
    for call in calls:
        yield line("call", asdict(call))
    for sha256, data in blobs:
        yield line("blob", {"sha256": sha256, "data": base64.b64encode(data).decode()})


def read_jsonl(lines: Sequence[Mapping[str, Any]], name: str) -> Recording:
    """The inverse of `write_jsonl`. Raises `RecordingError` for a file that was cut, `MALFORMED` for damaged lines."""

    def of_kind(kind: str) -> Iterator[Mapping[str, Any]]:
        return (line for line in lines if line.get("type") == kind)

    info = _row(SessionInfo, lines[0])
    messages = tuple(message_from_dict(line["message"]) for line in of_kind("message"))
    if info.messages > len(messages):
        raise RecordingError(f"{name}: cut off, only {len(messages):,} of {info.messages:,} messages are there")
    return Recording(
        "chatctx",
        info.title,
        messages,
        tuple(Record(str(r["id"]), str(r["kind"]), float(r["at"]), dict(r["data"])) for r in of_kind("record")),
        {str(blob["sha256"]): base64.b64decode(blob["data"]) for blob in of_kind("blob")},
        info,
        tuple(_row(CallRow, line) for line in of_kind("call")),
    )


def _row(kind: type[Row], line: Mapping[str, Any]) -> Row:
    """A row with the fields that this version has."""
    return kind(**{field.name: line[field.name] for field in fields(kind) if field.name in line})

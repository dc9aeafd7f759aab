"""Export of a session: JSONL without loss, Markdown and HTML for people."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tui.chat.store.calls import CallLog, CallRow
from tui.chat.store.codec import message_to_dict
from tui.chat.store.store import Record, SessionInfo, SessionStore
from tui.config.private import open_private
from tui.messages import Attachment, Message, ProviderItem, Reasoning, Refusal, Source, Text, ToolCall, ToolResult
from tui.text.clean import clean_text
from tui.text.endings import source_markdown
from tui.text.numbers import timestamp

FORMAT = "chatctx-session"
VERSION = 1
ENDINGS = (".jsonl", ".md", ".html")


def export_session(path: Path, store: SessionStore, session: str) -> None:
    """Write a session to `path`; its suffix names the format. Changes nothing in the store.

    Raises ValueError for another suffix, OSError if the file can't be written, `StoreError`.
    """
    if path.suffix not in ENDINGS:
        raise ValueError(f"{path.name}: the suffix names the format; use {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    info = store.session(session)
    if info is None:
        raise ValueError(f"there is no session {session}")
    messages = store.messages(session)
    parts = [part for message in messages for part in message.parts]
    hashes = {part.sha256 for part in parts if isinstance(part, Attachment)}
    if path.suffix == ".jsonl":  # whole texts of cut results are too long for a page
        hashes |= {part.full for part in parts if isinstance(part, ToolResult) and part.full}
    blobs = ((sha256, store.blob(sha256)) for sha256 in sorted(hashes))
    readable = ((sha256, data) for sha256, data in blobs if data is not None)
    if path.suffix == ".md":
        text = markdown(info, messages)
    elif path.suffix == ".html":
        from tui.chat.interchange.export_html import html_page

        text = html_page(info, messages, dict(readable))
    else:
        calls = CallLog(store).rows(session)
        text = "\n".join(jsonl(info, messages, store.records(session), calls, readable)) + "\n"
    with open_private(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)


def jsonl(
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


def markdown(info: SessionInfo, messages: Iterable[Message]) -> str:
    """The conversation as Markdown. Tool calls, results and reasoning are in quotes and fences."""
    pieces = [f"# {info.title or 'Conversation'}", f"{info.provider}/{info.model} · {timestamp(info.created_at)}"]
    for message in messages:
        if message.parts:
            pieces.append(f"## {_speaker(message)}")
            pieces += [text for part in message.parts if (text := _part(part))]
        if message.status != "complete":
            pieces.append(f"_{message.status}{f': {message.error}' if message.error else ''}_")
    return clean_text("\n\n".join(pieces)) + "\n"  # it may be printed with `cat`


def _speaker(message: Message) -> str:
    if message.kind == "summary":
        return "summary"
    return {"user": "you", "tool": "tool results"}.get(message.role, message.model or "assistant")


def _part(part: object) -> str:
    match part:
        case Text(text) | Refusal(text):
            return text.strip("\n")
        case Source():
            return f"Source: {source_markdown(part)}"
        case ProviderItem(kind=kind):
            return f"_{kind}: cannot be shown here_"
        case Reasoning(text=text):
            return "\n".join(f"> {line}" for line in text.splitlines())
        case ToolCall(name=name, arguments=arguments):
            return f"**{name}**\n\n{_fence(arguments, 'json')}"
        case ToolResult(text=text):
            return _fence(text)
        case Attachment(kind="text", name=name, text=text):
            return f"_{name}_\n\n{_fence(text)}"
        case Attachment(name=name, media_type=media_type, size=size):
            return f"_{name} ({media_type}, {size:,} bytes)_"
        case _:
            return ""


def _fence(text: str, language: str = "") -> str:
    """A code fence longer than any run of backticks in `text`."""
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"

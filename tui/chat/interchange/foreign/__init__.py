"""Recorded conversations of other programs, read as ours: messages, and compactions as records beside them.

What is found decides the reader, not the file's name. Every reader gives a `Recording`; import and replay take those.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from tui.chat.interchange.foreign import claude as foreign_claude
from tui.chat.interchange.foreign import gemini as foreign_gemini
from tui.chat.interchange.foreign import pi as foreign_pi
from tui.chat.interchange.recording import MALFORMED, Recording, RecordingError
from tui.chat.store.calls import CallRow
from tui.chat.store.codec import message_from_dict
from tui.chat.store.store import Record, SessionInfo
from tui.config.paths import TooLargeError, read_all
from tui.text.numbers import size_text

MAX_BYTES = 500_000_000  # of a file that is read at all


def read_recording(path: Path) -> Recording:
    """Read `path`. Raises `RecordingError`."""
    try:
        text = read_all(path, MAX_BYTES).decode("utf-8", "surrogateescape")
    except TooLargeError:
        raise RecordingError(f"{path.name}: larger than {size_text(MAX_BYTES)}, not read") from None
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror or error}") from None
    try:
        recording = _read(text, path)
    except MALFORMED as error:
        what = f"{type(error).__name__}: {error}"
        raise RecordingError(f"{path.name}: damaged, or of a version that is not known here ({what})") from None
    if not recording.messages:
        raise RecordingError(f"{path.name}: no messages in it")
    return recording


def _read(text: str, path: Path) -> Recording:
    whole = _object(text)
    if whole is not None and isinstance(whole.get("messages"), list) and "sessionId" in whole:
        return foreign_gemini.read(whole, path.stem)
    lines = list(json_lines(text, path.name))
    if any(line.get("format") == "chatctx-session" for line in lines[:1]):
        return _ours(lines, path.name)
    if any(line.get("type") == "session" for line in lines[:1]):
        return foreign_pi.read(lines, path.stem)
    if any("sessionId" in line or "leafUuid" in line or "snapshot" in line for line in lines):
        return foreign_claude.read(lines, path.stem)
    raise RecordingError(f"{path.name}: not a conversation of chatctx, Claude Code, pi or Gemini CLI")


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def json_lines(text: str, name: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of `text`, one a line. A last line that was cut off is left out. Raises `RecordingError`."""
    lines = [line for line in text.split("\n") if line.strip()]
    for number, line in enumerate(lines, 1):
        try:
            found = json.loads(line)
        except ValueError:
            if number == len(lines) > 1:
                return
            raise RecordingError(f"{name}: line {number} is not JSON") from None
        if isinstance(found, dict):
            yield found


def _ours(lines: Sequence[Mapping[str, Any]], name: str) -> Recording:
    import base64

    messages = [message_from_dict(line["message"]) for line in lines if line.get("type") == "message"]
    records = [
        Record(str(line["id"]), str(line["kind"]), float(line["at"]), dict(line["data"]))
        for line in lines
        if line.get("type") == "record"
    ]
    blobs = {str(line["sha256"]): base64.b64decode(line["data"]) for line in lines if line.get("type") == "blob"}
    names = {field.name for field in fields(SessionInfo)}
    info = SessionInfo(**{name: value for name, value in lines[0].items() if name in names})
    if info.messages > len(messages):
        raise RecordingError(f"{name}: cut off, only {len(messages):,} of {info.messages:,} messages are there")
    names = {field.name for field in fields(CallRow)}
    calls = [
        CallRow(**{name: value for name, value in line.items() if name in names})
        for line in lines
        if line.get("type") == "call"
    ]
    return Recording("chatctx", info.title, tuple(messages), tuple(records), blobs, info, tuple(calls))

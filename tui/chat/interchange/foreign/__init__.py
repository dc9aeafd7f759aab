"""Conversations of other programs: their messages, and records of what left the context.

The content decides on the reader, not the file's name. A format is one module with `SOURCE` (its name in data), `NAME`
(its name for a person), `detect(file)` and `read(file)`, and an entry in `FORMATS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from tui.chat.interchange import jsonl
from tui.chat.interchange.foreign import (
    aider,
    claude,
    cline,
    codex,
    crush,
    gemini,
    goose,
    kimi,
    llm,
    opencode,
    pi,
    qwen,
    web_chats,
)
from tui.chat.interchange.foreign.source import SourceFile
from tui.chat.interchange.recording import NoMessagesError, Recording, RecordingError, refuse_malformed

FORMATS = (codex, pi, kimi, qwen, gemini, claude, opencode, crush, goose, llm, web_chats, cline, aider)
"""In the order they are tried: stricter ones first."""

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def read_recordings(path: Path, start: int = 0) -> Iterator[Recording]:
    """Every conversation in `path`, at least one, one after the other; `start` as in `SourceFile`.

    Raises `RecordingError`.
    """
    is_empty = True
    with closing(SourceFile(path, start)) as file, refuse_malformed(path.name):
        for recording in _read(file):
            if recording.messages:
                is_empty = False
                yield replace(recording, skipped=file.skipped)
    if is_empty:
        raise NoMessagesError(f"{path.name}: no messages in it")


def _read(file: SourceFile) -> Iterable[Recording]:
    if file.lines and file.lines[0].get("format") == jsonl.FORMAT:
        return [jsonl.read_jsonl(file.lines, file.name)]
    for reader in FORMATS:
        if reader.detect(file):
            recordings: Iterator[Recording] = reader.read(file)
            return recordings
    if not file.lines and file.skipped:
        raise RecordingError(f"{file.name}: damaged: {file.skipped}")
    if file.data.startswith(ZSTD_MAGIC):
        raise RecordingError(f"{file.name}: compressed, as Codex does with old sessions: unpack it with zstd -d first")
    names = ", ".join(reader.NAME for reader in FORMATS)
    if file.is_database:
        raise RecordingError(f"{file.name}: a SQLite database of no program that is known here ({names})")
    json_but = "JSON, but " if file.document is not None or file.lines else ""
    raise RecordingError(f"{file.name}: {json_but}not a conversation of chatctx, {names}")

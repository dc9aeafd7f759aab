"""Conversations of other programs: where they are, their messages, and records of what left the context.

The content decides on the reader, not the file's name. A format is one module with `SOURCE` (its name in data), `NAME`
(its name for a person), `detect(file)` and `read(file)`, and an entry in `FORMATS`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from stat import S_ISREG

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
from tui.chat.interchange.foreign.reading import SourceFile
from tui.chat.interchange.recording import NoMessagesError, Recording, RecordingError, is_ours, read_jsonl

FORMATS = (codex, pi, kimi, qwen, gemini, claude, opencode, crush, goose, llm, web_chats, cline, aider)
"""In the order they are tried: stricter ones first."""

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def read_recordings(path: Path, start: int = 0) -> Iterator[Recording]:
    """Every conversation in `path`, at least one, one after the other; `start` as in `SourceFile`.

    Raises `RecordingError`.
    """
    is_empty = True
    with SourceFile(path, start) as file:
        for recording in _read(file):
            if recording.messages:
                is_empty = False
                yield replace(recording, skipped=file.skipped)
                file.damaged.clear()
    if file.damaged:  # of a conversation with nothing else in it
        raise RecordingError(f"{path.name}: damaged: {file.skipped}")
    if is_empty:
        raise NoMessagesError(f"{path.name}: no messages in it")


def _read(file: SourceFile) -> Iterable[Recording]:
    if (lines := file.lines) and is_ours(lines[0]):
        begins = [number for number, line in enumerate(lines) if not number or line.get("type") == "session"]
        return (read_jsonl(lines[begin:end], file.name) for begin, end in pairwise([*begins, len(lines)]))
    for reader in FORMATS:
        if reader.detect(file):
            recordings: Iterator[Recording] = reader.read(file)
            return recordings
    if not file.lines and file.skipped:
        raise RecordingError(f"{file.name}: damaged: {file.skipped}")
    if file.data.startswith(ZSTD_MAGIC):
        raise RecordingError(f"{file.name}: compressed, as Codex does with old sessions: unpack it with zstd -d first")
    if file.path.is_dir():
        raise RecordingError(f"{file.path}: a folder, but no task of Cline, Roo Code or Kilo Code: name its files")
    names = ", ".join(reader.NAME for reader in FORMATS)
    if file.is_database:
        raise RecordingError(f"{file.name}: a SQLite database of none of these programs: {names}")
    json_but = "JSON, but " if file.document is not None or file.lines else ""
    raise RecordingError(f"{file.name}: {json_but}not a conversation of chatctx, {names}")


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A file with conversations of a program. `changed` is in seconds since the epoch, `size` in bytes."""

    program: str
    path: Path
    changed: float
    size: int


def session_files(env: Mapping[str, str], home: Path) -> list[SessionFile]:
    """Existing files, newest first. Unreadable folders are skipped."""
    files: list[SessionFile] = []
    for program, folder, pattern in _places(env, home):
        try:
            paths = list(folder.glob(pattern))
        except OSError:
            continue
        for path in paths:
            try:
                status = path.stat()
            except OSError:
                continue
            if S_ISREG(status.st_mode):
                files.append(SessionFile(program, path, status.st_mtime, status.st_size))
    return sorted(files, key=lambda file: -file.changed)


def _places(env: Mapping[str, str], home: Path) -> Iterator[tuple[str, Path, str]]:
    """Program, folder and pattern. The environment variables are those of the programs."""

    def at(variable: str, default: Path) -> Path:
        return Path(env[variable]) if env.get(variable) else default

    data = at("XDG_DATA_HOME", home / ".local" / "share")
    config = at("XDG_CONFIG_HOME", home / ".config")
    mac, library = sys.platform == "darwin", home / "Library" / "Application Support"
    apps, app_data = (library, library) if mac else (config, data)
    claude, codex = at("CLAUDE_CONFIG_DIR", home / ".claude"), at("CODEX_HOME", home / ".codex")
    yield "Claude Code", claude / "projects", "*/*.jsonl"
    yield "Claude Code", config / "claude" / "projects", "*/*.jsonl"
    yield "Codex", codex / "sessions", "*/*/*/rollout-*.jsonl"
    yield "Codex", codex / "archived_sessions", "rollout-*.jsonl"
    yield "Gemini CLI", home / ".gemini" / "tmp", "*/chats/session-*.json*"
    yield "opencode", data / "opencode", "opencode*.db"
    yield "opencode", data / "opencode" / "storage" / "session", "*/ses_*.json"
    yield "pi", home / ".pi" / "agent" / "sessions", "*/*.jsonl"
    yield "qwen-code", home / ".qwen" / "projects", "*/chats/*.jsonl"
    yield "Kimi", at("KIMI_SHARE_DIR", home / ".kimi") / "sessions", "*/*/wire.jsonl"
    yield "goose", app_data / "goose" / "sessions", "sessions.db"
    yield "goose", app_data / "goose" / "sessions", "*.jsonl"
    yield "llm", at("LLM_USER_PATH", apps / "io.datasette.llm"), "logs.db"
    for editor in ("Code", "VSCodium", "Cursor"):
        for extension in ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline", "kilocode.kilo-code"):
            tasks = apps / editor / "User" / "globalStorage" / extension / "tasks"
            yield "Cline, Roo Code or Kilo Code", tasks, "*/api_conversation_history.json"

"""Where other programs store their sessions on this machine, and which one was held last in a folder."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from tui.chat.interchange.foreign import opencode
from tui.chat.interchange.foreign.source import SourceFile

FOLLOWED = ("Claude Code", "Codex", "Gemini CLI", "opencode", "pi")
HEAD_BYTES = 64_000  # at the beginning of a file: its folder, the first prompt, a rollout's metadata
SUBAGENT = '"source":{"subagent"'  # in the first line of a rollout


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A file with conversations of a program. `changed` is in seconds since the epoch, `size` in bytes.

    `session` is the id of one in a database.
    """

    program: str
    path: Path
    changed: float
    size: int
    session: str = ""


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
            files.append(SessionFile(program, path, status.st_mtime, status.st_size))
    return sorted(files, key=lambda file: -file.changed)


def newest_session(
    env: Mapping[str, str], home: Path, folder: Path, database: Path | None = None
) -> SessionFile | None:
    """The latest session of another program in `folder`, or the latest in that `database`, or None."""
    files = session_files(env, home) if database is None else [SessionFile(opencode.NAME, database, 0.0, 0)]
    files = [file for file in files if file.program in FOLLOWED]
    for file in sorted(files, key=lambda file: -last_change(file.path)):
        if file.program == opencode.NAME and file.path.suffix == ".db":
            with closing(SourceFile(file.path)) as source:
                ident = opencode.newest_session(source, str(folder))
            if ident is not None:
                return replace(file, session=ident)
        elif _is_in(file, folder):
            return file
    return None


def _is_in(file: SessionFile, folder: Path) -> bool:
    """Whether the session was held in `folder`, according to the beginning of the file or the name of its folder.

    Codex writes those of sub-agents beside the others: they are not meant.
    """
    try:
        with file.path.open("rb") as stream:
            head = stream.read(HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return False
    if SUBAGENT in head.replace(" ", ""):
        return False
    if json.dumps(str(folder)) in head or hashlib.sha256(str(folder).encode()).hexdigest() in head:  # Gemini's hash
        return True
    return str(folder).replace("/", "-") == file.path.parent.name.replace("--", "-")


def file_stamp(path: Path) -> tuple[float, ...]:
    """Size in bytes and time of the last change of a file, and of the write-ahead log of a database."""
    status = path.stat()
    try:
        log = path.with_name(path.name + "-wal").stat()
    except OSError:
        return status.st_size, status.st_mtime
    return status.st_size, status.st_mtime, log.st_size, log.st_mtime


def last_change(path: Path) -> float:
    """When a file was changed last, in seconds since the epoch; 0 if it is gone."""
    try:
        return max(file_stamp(path)[1::2])
    except OSError:
        return 0.0


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

"""Where other programs store their sessions on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


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

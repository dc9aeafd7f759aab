from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from tests.chat.interchange.foreign.files import claude_line, write
from tui.chat.interchange.locations import newest_session, session_files


def put(path: Path, age: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}", encoding="utf-8")
    os.utime(path, (1_000_000 - age, 1_000_000 - age))
    return path


def test_files_of_other_programs_are_found_newest_first(tmp_path: Path) -> None:
    home, codex = tmp_path / "home", tmp_path / "elsewhere"
    old = put(home / ".claude" / "projects" / "-work" / "a.jsonl", 90)
    new = put(codex / "sessions" / "2026" / "05" / "01" / "rollout-x.jsonl", 10)
    put(home / ".claude" / "projects" / "-work" / "a" / "subagents" / "agent-1.jsonl", 5)
    files = session_files({"CODEX_HOME": str(codex)}, home)
    assert [(file.program, file.path) for file in files] == [("Codex", new), ("Claude Code", old)]


def test_folders_of_the_system_are_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    log = put(tmp_path / "config" / "io.datasette.llm" / "logs.db", 1)
    put(tmp_path / ".config" / "io.datasette.llm" / "logs.db", 2)
    files = session_files({"XDG_CONFIG_HOME": str(tmp_path / "config")}, tmp_path)
    assert [(file.program, file.path) for file in files] == [("llm", log)]
    monkeypatch.setattr("sys.platform", "darwin")
    log = put(tmp_path / "Library" / "Application Support" / "io.datasette.llm" / "logs.db", 1)
    assert [file.path for file in session_files({}, tmp_path)] == [log]


def test_the_newest_session_of_the_folder_is_found(tmp_path: Path) -> None:
    work = tmp_path / "work"
    home = tmp_path / "home"
    for name, folder in (("a", work), ("b", tmp_path / "elsewhere")):
        path = home / ".claude" / "projects" / name / f"{name}.jsonl"
        path.parent.mkdir(parents=True)
        write(path, claude_line("user", "hi") | {"cwd": str(folder)})
    session = newest_session({}, home, work)
    assert session is not None
    assert session.path.name == "a.jsonl"
    chat = home / ".gemini" / "tmp" / "work" / "chats" / "session-1.json"
    chat.parent.mkdir(parents=True)
    chat.write_text(json.dumps({"projectHash": hashlib.sha256(str(work).encode()).hexdigest()}), "utf-8")
    session = newest_session({}, home, work)
    assert session is not None
    assert session.path == chat
    agent = home / ".codex" / "sessions" / "2026" / "05" / "01" / "rollout-1.jsonl"
    agent.parent.mkdir(parents=True)
    write(agent, {"type": "session_meta", "payload": {"cwd": str(work), "source": {"subagent": "review"}}})
    session = newest_session({}, home, work)
    assert session is not None
    assert session.path == chat
    assert newest_session({}, home, tmp_path / "nowhere") is None

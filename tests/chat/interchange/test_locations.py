from __future__ import annotations

import os
from pathlib import Path

import pytest

from tui.chat.interchange.locations import session_files


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

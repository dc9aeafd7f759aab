from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
import time
from pathlib import Path

import pytest

from tests.chat.interchange.test_following import append, lines, state
from tests.machine import Terminal
from tui.chat.interchange.following import Follower
from tui.chat.interchange.recording import RecordingError
from tui.cli.subcommands import watch
from tui.cli.subcommands.watch import status_text, watch_lines
from tui.config.settings import Settings
from tui.errors import UsageError
from tui.terminal.output import clean_streams


def test_the_panel_is_drawn_by_control_sequences_and_shows_none_of_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.jsonl"
    first, *rest = lines(3)
    first["message"]["content"] = "a question \x1b[31mabout red"
    append(path, first, *rest)
    terminal = Terminal()

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "__stdout__", terminal)
    monkeypatch.setattr(time, "sleep", stop)
    monkeypatch.setenv("TERM", "xterm-256color")
    with clean_streams(), pytest.raises(KeyboardInterrupt):
        watch.run(Settings(), file=path, line=False, as_json=False, window="20k")
    drawn = terminal.getvalue()
    assert drawn.startswith("\x1b[?1049h")  # the alternate screen
    assert "1,212 / 20,000 tokens" in drawn
    assert "\x1b[31m" not in drawn


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_none_is_cut_where_it_could_be_two(tmp_path: Path, width: int) -> None:
    path = tmp_path / "s.jsonl"
    append(path, *lines(8))
    texts = [line.plain for line in watch_lines(state(Follower(path), window=20_000), width)]
    assert max(map(len, texts)) <= width
    assert any(text.startswith("its compaction at ~16.0k") for text in texts)
    assert any("from the cache" in text for text in texts)


def test_the_tokens_of_a_group_are_marked_where_they_are_estimated(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    append(path, *lines(8))
    followed = state(Follower(path), window=20_000)
    [groups] = [
        line.plain for line in watch_lines(followed, 120) if line.plain.startswith("  ") and "messages" in line.plain
    ]
    rows = [row for row in followed.usage.rows if row.key in ("user", "assistant") and row.tokens]
    assert any(row.source == "estimated" for row in rows)
    assert f"messages ~{sum(row.tokens for row in rows):,}" in groups


def test_the_status_line_has_the_window_the_pace_and_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    append(path, *lines(8))
    text = status_text(state(Follower(path), window=20_000))
    assert text.lstrip("~").startswith("1.7k/20k 9 %")
    assert "calls left" in text
    assert "99 % cached" in text
    assert "/~1M " in status_text(state(Follower(path)))  # or 200k: the file does not say


def test_one_line_or_a_stream_of_json(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't go together"):
        watch.run(Settings(), file=tmp_path / "s.jsonl", line=True, as_json=True, window=None)


def test_json_names_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(_: float) -> None:
        raise KeyboardInterrupt

    append(tmp_path / "0a-1b.jsonl", *lines(3))
    monkeypatch.setattr(time, "sleep", stop)
    with pytest.raises(KeyboardInterrupt):
        watch.run(Settings(), file=tmp_path / "0a-1b.jsonl", line=False, as_json=True, window=None)
    assert json.loads(capsys.readouterr().out)["usage"]["session"] == "0a-1b"


def test_of_a_database_that_is_no_session_it_says_why(tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    file.write_text("not a database")
    with pytest.raises(RecordingError, match=r"notes\.db: the database can't be read \(file is not a database\)"):
        watch.run(Settings(), file=file, line=False, as_json=True, window=None)


def begun(path: Path, folder: Path | str, at: int, **more: object) -> Path:
    """A session file that was begun in `folder` and changed last at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"payload": {"cwd": str(folder), **more}}, ensure_ascii=False), "utf-8")
    os.utime(path, (at, at))
    return path


def test_the_newest_session_of_the_folder_whichever_program_wrote_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, work = tmp_path / "home", tmp_path / "my wörk"
    work.mkdir()
    monkeypatch.chdir(work)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))

    def newest() -> Path:
        return watch._follower(None).path

    with pytest.raises(UsageError, match="name its file"):
        newest()
    codex = home / ".codex"
    archived = begun(codex / "archived_sessions" / "rollout-1.jsonl", work, 1)
    assert newest() == archived
    day = codex / "sessions" / "2026" / "05" / "01"
    rollout = begun(day / "rollout-1.jsonl", work, 2)
    begun(day / "rollout-2.jsonl", tmp_path, 50)
    begun(day / "rollout-3.jsonl", work, 50, source={"subagent": "review"})
    begun(day / "rollout-4.jsonl", f"{work}/below", 50)
    begun(home / ".kimi" / "sessions" / "a" / "b" / "wire.jsonl", work, 50)  # can't be followed
    assert newest() == rollout
    for at, path in enumerate((".claude/projects/short-1a2b/s.jsonl", ".config/claude/projects/p/s.jsonl"), 3):
        begun(home / path, tmp_path, 50)
        assert newest() != home / path
        begun(home / path, work, at)
        assert newest() == home / path
    before = json.dumps({"type": "queue-operation", "content": "a long paste " * 10_000})
    later = home / ".claude" / "projects" / "p" / "s.jsonl"
    later.parent.mkdir()
    later.write_text(f"{before}\n{json.dumps({'cwd': str(work)}, ensure_ascii=False)}\n", "utf-8")
    os.utime(later, (5, 5))
    assert newest() == later
    pi = begun(home / ".pi" / "agent" / "sessions" / "--my-work--" / "s.jsonl", work, 6)
    assert newest() == pi
    chat = begun(home / ".gemini" / "tmp" / "my-work" / "chats" / "session-1.json", "", 7)
    chat.write_text(json.dumps({"projectHash": hashlib.sha256(str(work).encode()).hexdigest()}), "utf-8")
    os.utime(chat, (7, 7))
    assert newest() == chat
    stored = home / ".local" / "share" / "opencode" / "opencode.db"
    stored.parent.mkdir(parents=True)
    stored.write_text("no database")
    assert newest() == chat  # a damaged one is passed over
    stored.unlink()
    database = sqlite3.connect(stored)
    database.execute("CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, time_updated INTEGER)")
    database.commit()
    assert newest() == chat
    database.execute("INSERT INTO session VALUES ('s', NULL, ?, 1)", (str(work),))
    database.commit()
    database.close()
    os.utime(stored, (1, 1))
    assert newest() == chat
    log = stored.with_name("opencode.db-wal")
    log.touch()
    os.utime(log, (8, 8))
    follower = watch._follower(None)
    assert (follower.path, follower.session) == (stored, "s")


def test_its_line_is_that_of_the_panel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.jsonl"
    question, *rest = lines(8)
    append(path, question)
    assert watch.run(Settings(), file=path, line=True, as_json=False, window=None) == 0
    assert capsys.readouterr().out == "no call yet\n"
    append(path, *rest)
    watch.run(Settings(), file=path, line=True, as_json=False, window="20k")
    assert capsys.readouterr().out.startswith(status_text(state(Follower(path), window=20_000)).rpartition(" · ")[0])

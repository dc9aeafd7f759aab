"""What is damaged, cut, missing or no conversation; our own format; where files are."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from tests.chat.interchange.foreign.files import claude_line, write
from tests.recordings import read_recording
from tui.chat.interchange.foreign import session_files
from tui.chat.interchange.recording import RecordingError, write_jsonl
from tui.chat.store.store import Record, SessionInfo
from tui.messages import Message, Reasoning, Text, Usage


def test_our_own_export_loses_nothing(tmp_path: Path) -> None:
    messages = (
        Message("user", (Text("hello \ud800"),), id="1", created_at=1.0),
        Message(
            "assistant", (Reasoning("t", "p", "m", signature=""), Text("hi")), id="2", usage=Usage(5, 6), model="m"
        ),
    )
    records = (Record("3", "pin", 2.0, {"id": "1", "on": True}),)
    info = SessionInfo("s", "a title", "p", "m", 0.0, 0.0)
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(write_jsonl(info, messages, records, (), [("ff", b"data")])) + "\n", encoding="utf-8")
    recording = read_recording(path)
    assert (recording.source, recording.title) == ("chatctx", "a title")
    assert (recording.messages, recording.records, recording.blobs) == (messages, records, {"ff": b"data"})


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", claude_line("user", "one"), claude_line("user", "two"))
    path.write_text(path.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    assert [message.text for message in read_recording(path).messages] == ["one"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "not a conversation"),
        ("{}", "not a conversation"),
        ("[1, 2]", "not a conversation"),
        ("hello\nworld\n", "not a conversation"),
        ('{"type": "session"}\n', "no messages"),
        ('{"type": "session"}\n{"type": "message", "message": {"role": "toolResult"}}\n', "damaged"),
        ('{"sessionId": "x", "messages": [7]}', "damaged"),
        ('{"format": "chatctx-session"}\n{"type": "message", "message": {"role": "user"}}\n', "damaged"),
        ("\x00\x01\x02", "not a conversation"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(RecordingError, match=says) as error:
        read_recording(path)
    assert "\n" not in str(error.value)
    assert "odd.jsonl" in str(error.value)


def test_a_missing_file_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="No such file"):
        read_recording(tmp_path / "none.jsonl")
    with pytest.raises(RecordingError):
        read_recording(tmp_path)


def damaged(lines: list[str], how: str) -> str:
    match how:
        case "nuls":
            return "\n".join([lines[0], "\x00" * 40, *lines[1:]])
        case "glued":
            return lines[0] + lines[1] + "\n" + "\n".join(lines[2:])
        case "byte order mark":
            return "\ufeff" + "\n".join(lines)
        case "cut":
            return "\n".join([lines[0], lines[1][: len(lines[1]) // 2], *lines[1:]])
        case "deep":
            return "\n".join([lines[0], '{"message": ' + "[" * 100_000, *lines[1:]])
        case "no record":
            return "\n".join([lines[0], '{"type": "user", "sessionId": "x", "message": {"content": 7}}', *lines[1:]])
    raise AssertionError(how)


@pytest.mark.parametrize("how", ["nuls", "glued", "byte order mark", "cut", "deep", "no record"])
def test_damage_costs_only_itself(tmp_path: Path, how: str) -> None:
    lines = [json.dumps(claude_line("user", text)) for text in ("one", "two", "three")]
    path = tmp_path / "a.jsonl"
    path.write_text(damaged(lines, how), encoding="utf-8")
    recording = read_recording(path)
    assert [message.text for message in recording.messages] == ["one", "two", "three"]
    assert bool(recording.skipped) == (how in ("cut", "deep", "no record"))


def test_what_is_no_conversation_is_named_for_what_it_is(tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    with sqlite3.connect(database) as db:
        db.execute("CREATE TABLE t (a)")
    db.close()
    with pytest.raises(RecordingError, match="a SQLite database of no program"):
        read_recording(database)
    packed = tmp_path / "rollout.jsonl.zst"
    packed.write_bytes(b"\x28\xb5\x2f\xfd rest")
    with pytest.raises(RecordingError, match=r"compressed.*zstd -d"):
        read_recording(packed)
    pretty = tmp_path / "x.json"
    pretty.write_text(json.dumps({"a": 1}, indent=2), encoding="utf-8")
    with pytest.raises(RecordingError, match="JSON, but not a conversation"):
        read_recording(pretty)


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

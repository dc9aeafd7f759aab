"""What is damaged, cut, missing or no conversation; our own format; where files are."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.chat.interchange.foreign.files import claude_line, pi_answer, pi_line, pi_message, write
from tests.messages import assistant, user
from tests.recordings import read_recording
from tui.chat.interchange.foreign import session_files
from tui.chat.interchange.recording import RecordingError, checked, write_jsonl
from tui.chat.store.store import Record, SessionInfo
from tui.messages import Reasoning, Usage


def test_our_own_export_loses_nothing(tmp_path: Path) -> None:
    messages = (
        user("hello \ud800", id="1", created_at=1.0),
        assistant(Reasoning("t", "p", "m", signature=""), "hi", id="2", usage=Usage(5, 6), model="m"),
    )
    records = (Record("3", "pin", 2.0, {"id": "1", "on": True}),)
    info = SessionInfo("s", "a title", "p", "m", 0.0, 0.0)
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(write_jsonl(info, messages, records, (), [("ff", b"data")])) + "\n", encoding="utf-8")
    recording = read_recording(path)
    assert (recording.source, recording.title) == ("chatctx", "a title")
    assert (recording.messages, recording.records, recording.blobs) == (messages, records, {"ff": b"data"})


def test_what_a_person_wrote_twice_stays_twice(tmp_path: Path) -> None:
    """A context file of Kimi's may begin with a message, without a time; mostly it begins with a record."""
    lines: list[dict[str, Any]] = [
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": "done"},
        {"role": "_usage"},
    ]
    path = write(tmp_path / "context.jsonl", *lines, *lines)
    assert [message.text for message in read_recording(path).messages] == ["go on", "done"] * 2
    lines.insert(0, {"role": "_checkpoint", "id": 0})
    write(path, *lines, *lines)
    assert [message.text for message in read_recording(path).messages] == ["go on", "done"]


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


@pytest.mark.parametrize("odd", [5, True, ["x"], {"a": 1}])
@pytest.mark.parametrize("form", ["claude", "pi", "opencode", "qwen"])
def test_a_field_of_another_type_costs_that_field_only(tmp_path: Path, form: str, odd: object) -> None:
    thinking = [{"type": "thinking", "thinking": "hm", "signature": odd}, {"type": "text", "text": "two"}]
    tokens = {"input": 3, "output": 4}
    step = {"type": "step-finish", "reason": odd, "tokens": tokens}
    parts = [{"type": "reasoning", "text": "hm", "metadata": {"a": {"signature": odd}}}, *thinking[1:], step]
    line = {"uuid": "1", "parentUuid": None, "type": "user", "message": {"parts": [{"text": "one"}]}}
    files: dict[str, list[dict[str, Any]]] = {
        "claude": [claude_line("user", "one"), claude_line("assistant", thinking, message={"stop_reason": odd})],
        "pi": [{"type": "session"}, pi_message("user", "one"), pi_answer(thinking)],
        "opencode": [
            {
                "info": {"id": "ses_1"},
                "messages": [
                    {"info": {"role": "user", "id": "m1"}, "parts": [{"type": "text", "text": "one"}]},
                    {"info": {"role": "assistant", "id": "m2", "finish": odd}, "parts": parts},
                ],
            }
        ],
        "qwen": [line, line | {"uuid": "2", "type": "assistant", "contextWindowSize": odd}],
    }
    files["pi"][-1]["message"]["errorMessage"] = odd
    recording = checked(read_recording(write(tmp_path / "a.jsonl", *files[form])))
    assert [m.role for m in recording.messages] == ["user", "assistant"]
    assert not recording.skipped
    assert isinstance(recording.window, int | None)


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
        case "log line":
            return "npm warn old lockfile\n" + "\n".join(lines)
        case "cut at the beginning":
            return lines[0][len(lines[0]) // 2 :] + "\n" + "\n".join(lines)
        case "pretty":
            return "\n".join(json.dumps(json.loads(line), indent=2) for line in lines)
        case "twice":
            uuids = [line.replace("{", f'{{"uuid": "{number}", ', 1) for number, line in enumerate(lines)]
            return "\n".join(uuids + uuids)
        case "appended to itself":
            return "\n".join(lines * 3)
        case "appended to an earlier state":
            return "\n".join(lines[:2] + lines)
        case "before an earlier state":
            return "\n".join(lines + lines[:2])
        case "in an array":
            return f"[{','.join(lines)}]"
        case "utf-16-le" | "utf-16-be":
            return "\n".join(lines)
        case "no record":
            return "\n".join([lines[0], '{"type": "user", "sessionId": "x", "message": {"content": 7}}', *lines[1:]])
    raise AssertionError(how)


SKIPPED = ("cut", "deep", "no record", "log line", "cut at the beginning")


WHOLE = ("nuls", "glued", "byte order mark", "pretty", "twice", "in an array", "utf-16-le", "utf-16-be")
APPENDED = ("appended to itself", "appended to an earlier state", "before an earlier state")


@pytest.mark.parametrize("how", [*WHOLE, *APPENDED, *SKIPPED])
def test_damage_costs_only_itself(tmp_path: Path, how: str) -> None:
    lines = [json.dumps(claude_line("user", text)) for text in ("one", "two", "three")]
    path = tmp_path / "a.jsonl"
    path.write_text(damaged(lines, how), encoding=how if how.startswith("utf") else "utf-8")
    recording = read_recording(path)
    assert [message.text for message in recording.messages] == ["one", "two", "three"]
    assert bool(recording.skipped) == (how in SKIPPED)


KIMI_WORDS = {"role": "user", "content": [{"type": "text", "text": "one"}]}
WITHOUT_HEADER: dict[str, list[dict[str, Any]]] = {
    "gemini-cli": [{"id": "1", "type": "user", "content": "one", "timestamp": "2026-05-01T10:00:00Z"}],
    "kimi": [{"type": "config.update"}, {"type": "context.append_message", "message": KIMI_WORDS}],
    "pi": [pi_line("1", None, "user", "one")],
}


@pytest.mark.parametrize("source", WITHOUT_HEADER)
def test_a_session_is_recognised_without_its_first_line(tmp_path: Path, source: str) -> None:
    """As after a power cut, which leaves NULs in its place."""
    path = write(tmp_path / "a.jsonl", *WITHOUT_HEADER[source])
    path.write_text("\x00" * 80 + "\n" + path.read_text("utf-8"), "utf-8")
    recording = read_recording(path)
    assert (recording.source, [message.text for message in recording.messages]) == (source, ["one"])


GEMINI = {"sessionId": "x", "messages": [{"type": "user", "content": "one"}, {"type": "user", "content": "two"}]}
OPENCODE = {
    "info": {},
    "messages": [
        {"info": {"role": "user", "time": {"created": 5}}, "parts": [{"type": "text", "text": text}]}
        for text in ("one", "two")
    ],
}
CHATGPT = {
    "mapping": {
        text: {"parent": parent, "message": {"author": {"role": "user"}, "content": {"parts": [text]}}}
        for text, parent in (("one", None), ("two", "one"))
    }
}


@pytest.mark.parametrize("document", [GEMINI, OPENCODE, CHATGPT | {"current_node": ["two"]}])
@pytest.mark.parametrize("end", ["", "\x00\x00\n", "\nrest of a log"])
def test_an_odd_entry_and_odd_ends_of_a_document_cost_only_themselves(
    tmp_path: Path, document: dict[str, Any], end: str
) -> None:
    for entries in (document.get("messages"), document.get("mapping")):
        if isinstance(entries, list):
            entries = [entries[0], 7, {"type": "user", "content": 7, "info": 7}, *entries[1:]]
            document = document | {"messages": entries}
        elif isinstance(entries, dict):
            document = document | {"mapping": {"odd": 7, "odder": {"message": 7}, **entries}}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document, indent=2) + end, encoding="utf-8")
    recording = read_recording(path)
    assert [message.text for message in recording.messages] == ["one", "two"]
    assert recording.skipped


ODD = ["NaN", "-Infinity", "1e999", "-5", "1" + "0" * 40, '"soon"', "[1]", '{"a": 1}', "null", "true"]


@pytest.mark.parametrize("value", ODD)
def test_an_impossible_number_or_time_is_unknown(tmp_path: Path, value: str) -> None:
    """And costs no words."""
    odd = json.loads(value)
    claude = claude_line(
        "assistant", "hi", message={"model": "m", "usage": {"input_tokens": odd, "output_tokens": odd}}
    )
    gemini = {"type": "gemini", "content": "hi", "model": "m", "tokens": {"input": odd, "output": odd}}
    tokens = {"input": odd, "output": odd, "cache": {"read": odd}}
    opencode = {"info": {"time": {"created": odd}}, "parts": [{"type": "text", "text": "hi"}], "tokens": tokens}
    codex = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    counts = {"total_token_usage": {"input_tokens": 1}, "last_token_usage": {"input_tokens": odd, "output_tokens": odd}}
    for name, document in {
        "claude": [claude_line("user", "one"), claude | {"timestamp": odd}],
        "gemini": [GEMINI | {"messages": [gemini | {"timestamp": odd}]}],
        "opencode": [{"info": {}, "messages": [opencode]}],
        "codex": [
            {"type": "response_item", "timestamp": odd, "payload": codex},
            {"type": "event_msg", "timestamp": odd, "payload": {"type": "token_count", "info": counts}},
        ],
    }.items():
        recording = read_recording(write(tmp_path / f"{name}.jsonl", *document))
        answer = checked(recording).messages[-1]
        assert (answer.text, answer.created_at) in (("hi", 0.0), ("hi", 1.0)), name
        usage = answer.usage
        assert usage is None or usage.input_total in (None, 0), (name, usage)
        assert not recording.skipped, name


def test_a_damaged_row_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "crush.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE sessions (id, title, created_at, summary_message_id)")
        db.execute("CREATE TABLE messages (id, session_id, role, parts, model, provider, created_at)")
        db.execute("CREATE TABLE files (a)")
        db.execute("CREATE TABLE goose_db_version (a)")
        db.execute("INSERT INTO sessions VALUES ('s', 't', 1, NULL)")
        for number, parts in enumerate(('[{"type": "text", "data": {"text": "one"}}]', "not json", "7", b"\xff")):
            db.execute("INSERT INTO messages VALUES (?, 's', 'user', ?, '', '', ?)", (number, parts, number))
    db.close()
    recording = read_recording(path)
    assert [message.text for message in recording.messages] == ["one"]
    assert recording.skipped == "3 damaged entries skipped (entry 2, 3, 4)"


def test_what_is_no_conversation_is_named_for_what_it_is(tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    with sqlite3.connect(database) as db:
        db.execute("CREATE TABLE t (a)")
    db.close()
    with pytest.raises(RecordingError, match="a SQLite database of none of these programs"):
        read_recording(database)
    packed = tmp_path / "rollout.jsonl.zst"
    packed.write_bytes(b"\x28\xb5\x2f\xfd rest")
    with pytest.raises(RecordingError, match=r"compressed.*zstd -d"):
        read_recording(packed)
    with pytest.raises(RecordingError, match="a folder, but no task of Cline"):
        read_recording(tmp_path)
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
    os.mkfifo(old.with_name("pipe.jsonl"))
    old.with_name("folder.jsonl").mkdir()
    old.with_name("device.jsonl").symlink_to("/dev/zero")
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

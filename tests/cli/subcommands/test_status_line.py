from __future__ import annotations

import hashlib
import io
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tui.cli.subcommands import status_line

STATUS = {
    "model": {"id": "claude-opus-4-8"},
    "context_window": {
        "context_window_size": 1_000_000,
        "current_usage": {"input_tokens": 20, "cache_read_input_tokens": 160_000, "output_tokens": 200},
    },
    "cost": {"total_cost_usd": 14.2},
}


def transcript(folder: Path, *inputs: int) -> str:
    path = folder / "t.jsonl"
    usages = [{"input_tokens": 20, "cache_read_input_tokens": tokens - 20, "output_tokens": 200} for tokens in inputs]
    path.write_text("".join(json.dumps({"message": {"usage": usage}}) + "\n" for usage in usages), "utf-8")
    return str(path)


def test_window_pace_cache_and_cost_in_one_line(tmp_path: Path) -> None:
    path = transcript(tmp_path, 900_000, 156_020, 158_020, 160_020)  # it was compacted after the first
    line = status_line.status_line(STATUS | {"transcript_path": path})
    assert line == "160k/1M 16 % · 319 calls left · 99 % cached · $14.20 this session"


def test_without_a_call_or_a_window_it_says_what_it_knows(tmp_path: Path) -> None:
    assert status_line.status_line({}) == "no call yet"
    path = transcript(tmp_path, 1_020)
    assert status_line.status_line({"transcript_path": path}) == "1.0k/? · 98 % cached"
    with Path(path).open("a", encoding="utf-8") as file:
        file.write('{"usage": ' + "[" * 100_000 + "\n")  # too deep for Python's parser
    assert status_line.status_line({"transcript_path": path}) == "1.0k/? · 98 % cached"


@pytest.mark.parametrize("odd", ["NaN", "1e999", "-5", '"5"', "[]", "1" + "0" * 30, "true"])
def test_an_impossible_number_is_unknown(odd: str, tmp_path: Path) -> None:
    value = json.loads(odd)
    path = tmp_path / "t.jsonl"
    rows = [CLAUDE_USAGE, CLAUDE_USAGE | {"output_tokens": value}, dict.fromkeys(CLAUDE_USAGE, value)]
    path.write_text(of(*({"message": {"usage": usage, "model": "claude-opus-4-8"}} for usage in rows)), "utf-8")
    report = {"context_window_size": value, "current_usage": CLAUDE_USAGE}
    status = {"transcript_path": str(path), "context_window": report, "cost": {"total_cost_usd": value}}
    assert status_line.status_line(status) == "221k/1M 22 % · 99 % cached"


@pytest.mark.parametrize("text", ["[]", "nonsense", "[" * 100_000, '{"context_window": 3}'])
def test_other_input_is_refused_in_one_line(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert status_line.run() == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_in_a_folder_that_is_gone_it_is_left_to_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert status_line.run() is None


def of(*lines: dict[str, Any]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


CLAUDE_USAGE = {"input_tokens": 20, "cache_read_input_tokens": 220_000, "output_tokens": 1_000}
CODEX_INFO: dict[str, Any] = {
    "last_token_usage": {"input_tokens": 60_000, "cached_input_tokens": 30_000, "output_tokens": 4_000},
    "model_context_window": 258_400,
}
PI_USAGE = {"input": 10, "cacheRead": 40_000, "cacheWrite": 0, "output": 20}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (of({"message": {"usage": CLAUDE_USAGE, "model": "claude-opus-4-8"}}), "~221k/1M 22 % · 99 % cached"),
        (
            of({"payload": {"type": "token_count", "info": CODEX_INFO}}, {"payload": {"text": '"last_token_usage"'}}),
            "~64.0k/258k 25 % · 50 % cached",
        ),
        (of({"message": {"role": "assistant", "usage": PI_USAGE}}), "~40.0k/? · 99 % cached"),
        (
            of({"message": {"usage": PI_USAGE, "model": "claude-opus-4-5", "provider": "anthropic"}}),
            "~40.0k/200k 20 % · 99 % cached",
        ),
        (
            of({"message": {"usage": PI_USAGE, "model": "claude-opus-4.5", "provider": "github-copilot"}}),
            "~40.0k/? · 99 % cached",
        ),
        (of({"type": "gemini", "tokens": {"input": 9_000, "output": 500, "cached": 4_500}}), "~9.5k/? · 50 % cached"),
        (
            of({"type": "gemini", "model": "gemini-3-pro-preview", "tokens": {"input": 90_000, "output": 500}}),
            "~90.5k/1.05M 9 %",
        ),
        (of({"modelID": "claude-opus-4.5", "providerID": "a", "tokens": {"input": 9_000, "output": 500}}), "~9.5k/?"),
        (
            of({"modelID": "gpt-5.4", "providerID": "openai", "tokens": {"input": 9_000, "output": 500}}),
            "~9.5k/1.05M 1 %",
        ),
    ],
)
def test_a_session_file_of_each_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, line: str
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(text, "utf-8")
    assert status_line.run(str(path)) == 0
    assert capsys.readouterr().out == line + "\n"


@pytest.mark.parametrize(
    ("model", "tokens", "window"),
    [
        ("claude-3-5-sonnet-20241022", 1_000, "200k 0 %"),
        ("claude-opus-4-20250514", 1_000, "200k 0 %"),
        ("claude-opus-4-5-20251101", 190_000, "200k 95 %"),
        ("claude-sonnet-4-5", 210_000, "1M 21 %"),  # more than the small one holds
        ("claude-opus-4-8", 90_000, "~1M 9 %"),  # or 200k: the file does not say
        ("claude-opus-4-8[1m]", 90_000, "1M 9 %"),
        ("claude-opus-4-8", 250_000, "1M 25 %"),
        ("claude-sonnet-5", 90_000, "1M 9 %"),
        ("somebody-s-own", 90_000, "?"),
    ],
)
def test_the_window_by_the_model_and_by_what_was_sent(tmp_path: Path, model: str, tokens: int, window: str) -> None:
    path = transcript(tmp_path, tokens - 200)
    status = {"transcript_path": path, "model": {"id": model}}
    assert status_line.status_line(status).split(" · ")[0].split("/")[1] == window
    large = status | {"context_window": {"context_window_size": 500_000}}  # what the program says goes before it
    assert "/500k" in status_line.status_line(large)
    more = status | {"exceeds_200k_tokens": True, "model": {"id": "claude-opus-4-8"}}
    assert "/1M " in status_line.status_line(more)


def test_calls_left_by_where_each_program_compacts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.jsonl"
    infos = [
        {**CODEX_INFO, "last_token_usage": {**CODEX_INFO["last_token_usage"], "input_tokens": n}}
        for n in (50_000, 60_000)
    ]
    path.write_text(of(*({"payload": {"info": info}} for info in infos)), "utf-8")
    status_line.run(str(path))
    assert "16 calls left" in capsys.readouterr().out  # to nine tenths


def test_what_cannot_be_read_at_once_is_left_to_watch(tmp_path: Path) -> None:
    path = tmp_path / "ui_messages.json"
    path.write_text('[{"say": "text"}]', "utf-8")
    assert status_line.run(str(path)) is None
    assert status_line.run(str(tmp_path / "none")) is None


def test_the_newest_session_of_the_folder_without_a_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home, work = tmp_path / "home", tmp_path / "my wörk"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    assert status_line.run() is None
    day = home / ".codex" / "sessions" / "2026" / "05" / "01"
    claude = home / ".claude" / "projects" / "".join(c if c.isascii() and c.isalnum() else "-" for c in str(work))
    day.mkdir(parents=True)
    claude.mkdir(parents=True)
    count = {"payload": {"info": CODEX_INFO}}
    began = json.dumps({"payload": {"cwd": str(work)}}, ensure_ascii=False)
    (day / "rollout-1.jsonl").write_text(f"{began}\n{of(count)}", "utf-8")
    (day / "rollout-2.jsonl").write_text(of({"payload": {"cwd": str(tmp_path)}}, count), "utf-8")
    agent = {"payload": {"cwd": str(work), "source": {"subagent": "review"}}}
    (day / "rollout-3.jsonl").write_text(
        of(agent, {"payload": {"info": CODEX_INFO | {"model_context_window": 9}}}), "utf-8"
    )
    assert (status_line.run(), capsys.readouterr().out[:11]) == (0, "~64.0k/258k")
    for number in range(2, 5):
        (day.with_name(f"0{number}")).mkdir()
    assert status_line.newest(str(work)) == ""
    assert status_line.newest(str(work), thorough=True) == str(day / "rollout-1.jsonl")
    shortened = claude.with_name("shortened-1a2b") / "s.jsonl"
    shortened.parent.mkdir()
    shortened.write_text(json.dumps({"cwd": str(work)}, ensure_ascii=False), "utf-8")
    os.utime(day / "rollout-1.jsonl", (1, 1))
    assert status_line.newest(str(work), thorough=True) == str(shortened)
    (claude / "s.jsonl").write_text(of({"message": {"usage": CLAUDE_USAGE}}), "utf-8")
    assert (status_line.run(), capsys.readouterr().out[:6]) == (0, "~221k/")
    os.utime(claude / "s.jsonl", (2, 2))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    moved = tmp_path / "config" / "claude" / "projects" / claude.name / "s.jsonl"
    moved.parent.mkdir(parents=True)
    moved.touch()
    assert status_line.newest(str(work)) == str(moved)
    os.utime(moved, (2, 2))
    chat = home / ".gemini" / "tmp" / "my-work" / "chats" / "session-1.json"
    chat.parent.mkdir(parents=True)
    digest = hashlib.sha256(str(work).encode()).hexdigest()
    message = {"type": "gemini", "tokens": {"input": 7_000, "output": 100, "cached": 0}}
    chat.write_text(json.dumps({"projectHash": digest, "messages": [message]}), "utf-8")
    assert (status_line.run(), capsys.readouterr().out[:4]) == (0, "~7.1")
    os.utime(chat, (3, 3))
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, time_updated INTEGER)")
    database.execute("CREATE TABLE message (id TEXT, session_id TEXT, data TEXT)")
    database.execute("INSERT INTO session VALUES ('s', NULL, ?, 1)", (str(work),))
    tokens = {"input": 1_000, "output": 0, "cache": {"read": 4_000, "write": 0}}
    database.execute("INSERT INTO message VALUES ('m', 's', ?)", (json.dumps({"tokens": tokens}),))
    database.commit()
    database.close()
    assert (status_line.run(), capsys.readouterr().out) == (0, "~5.0k/? · 80 % cached\n")


def test_it_loads_neither_a_command_line_parser_nor_anything_of_the_chat() -> None:
    code = "import sys; from tui.cli.main import main; main(['watch', '--line']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(STATUS), capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())
    assert done.stdout.startswith("160k/1M")
    assert not loaded & {"click", "textual", "tiktoken", "sqlite3", "asyncio", "pathlib", "dataclasses", "tui.chat"}

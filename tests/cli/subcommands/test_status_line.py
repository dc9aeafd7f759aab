from __future__ import annotations

import io
import json
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


def test_without_input_it_is_left_to_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(" \n"))
    assert status_line.run() is None


def of(*lines: dict[str, Any]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


CLAUDE_USAGE = {"input_tokens": 20, "cache_read_input_tokens": 220_000, "output_tokens": 1_000}


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


def test_it_loads_neither_a_command_line_parser_nor_anything_of_the_chat() -> None:
    code = "import sys; from tui.cli.main import main; main(['watch', '--line']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(STATUS), capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())
    assert done.stdout.startswith("160k/1M")
    assert not loaded & {"click", "textual", "tiktoken", "sqlite3", "asyncio", "pathlib", "dataclasses", "tui.chat"}

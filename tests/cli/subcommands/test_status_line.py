from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

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
    assert line == "160k/1M 16 % · 319 calls left · 100 % cached · $14.20 this session"


def test_without_a_call_or_a_window_it_says_what_it_knows(tmp_path: Path) -> None:
    assert status_line.status_line({}) == "no call yet"
    assert status_line.status_line({"transcript_path": transcript(tmp_path, 1_020)}) == "1k/? · 98 % cached"


@pytest.mark.parametrize("text", ["", "[]", "nonsense", '{"context_window": 3}'])
def test_other_input_is_refused_in_one_line(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert status_line.run() == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_it_loads_neither_a_command_line_parser_nor_anything_of_the_chat() -> None:
    code = "import sys; from tui.cli.main import main; main(['watch', '--line']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(STATUS), capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())
    assert done.stdout.startswith("160k/1M")
    assert not loaded & {"click", "textual", "tiktoken", "sqlite3", "asyncio", "pathlib", "tui.chat"}

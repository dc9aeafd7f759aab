from __future__ import annotations

from datetime import datetime

import pytest

from tui.text.names import (
    arguments_summary,
    compact,
    plural,
    seconds_text,
    short_model,
    size_text,
    time_text,
    tokens_text,
)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1.0k"),
        (38_400, "38.4k"),
        (99_960, "100k"),
        (999_600, "1.0M"),
        (1_234_000, "1.2M"),
    ],
)
def test_compact(number: int, text: str) -> None:
    assert compact(number) == text


def test_tokens_say_when_they_were_not_measured() -> None:
    assert tokens_text((2_345, "measured")) == tokens_text((2_345, "counted")) == "2.3k tok"
    assert tokens_text((2_345, "estimated")) == "~2.3k tok"
    assert tokens_text((None, "estimated")) == tokens_text(None) == ""
    assert tokens_text((0, "measured")) == "0 tok"


@pytest.mark.parametrize(
    ("model", "short"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("openai/gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("gpt-5.1", "gpt-5.1"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("llama3.2:3b", "llama3.2"),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2"),
        ("qwen3-coder-30b-a3b", "qwen3-coder"),
        ("\x1b[31m", "assistant"),
    ],
)
def test_short_model(model: str, short: str) -> None:
    assert short_model(model) == short


@pytest.mark.parametrize(
    ("arguments", "summary"),
    [
        ('{"path": "src/x.py", "lines": 3}', "src/x.py"),
        ('{"limit": 3, "text": "hello"}', "hello"),
        ('{"limit": 3}', '{"limit": 3}'),
        ("{}", ""),
        ("", ""),
        ("[1, 2]", "[1, 2]"),
        ('{"path": "unfinished', '{"path": "unfinished'),
        ('{"command": "a\\nb \\u001b[31m"}', "a b"),
        ('{"pattern": "def parse", "path": "src"}', "def parse in src"),
        ('{"query": "loops"}', "loops"),
    ],
)
def test_arguments_summary(arguments: str, summary: str) -> None:
    assert arguments_summary(arguments) == summary


def test_a_summary_is_short() -> None:
    assert len(arguments_summary('{"path": "' + "x" * 10_000 + '"}')) == 60


def test_times_get_shorter_the_nearer_they_are() -> None:
    now = datetime(2026, 11, 27, 15, 0).timestamp()
    times = [datetime(2026, 11, 27, 9, 5), datetime(2026, 11, 3, 9, 5), datetime(2025, 11, 3, 9, 5)]
    assert [time_text(at.timestamp(), now) for at in times] == ["09:05", "3 Nov 09:05", "3 Nov 2025"]
    assert time_text(0.0, now) == ""


def test_units() -> None:
    assert [size_text(size) for size in (12, 4_213, 42_130, 1_200_000)] == ["12 B", "4.2 kB", "42 kB", "1.2 MB"]
    assert [seconds_text(seconds) for seconds in (0.2, 6.4, 125)] == ["1 s", "6 s", "2 min 5 s"]
    assert (plural(1, "line"), plural(2_100, "line")) == ("1 line", "2,100 lines")

from __future__ import annotations

import pytest

from tui.text.names import arguments_summary, short_model


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

"""Names of one model, and names of another."""

from __future__ import annotations

import pytest

from tui.context.counting.families import another_family, shared_name


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet"),
        ("claude-3-5-sonnet@20240620", "claude-3-5-sonnet"),
        ("openai/gpt-5-mini-2025-08-07", "openai/gpt-5-mini"),
        ("magistral-medium-2507", "magistral-medium"),
        ("grok-4-0709", "grok-4"),
        ("qwen3:latest", "qwen3"),
        ("mistral-large-2407", "mistral-large-2407"),  # its vocabulary is another than the newest one's
        ("llama3-70b-8192", "llama3-70b-8192"),  # its window
        ("gpt-4-32k", "gpt-4-32k"),
        ("qwen3:0.6b", "qwen3:0.6b"),
        ("gpt-5", "gpt-5"),
        ("latest", "latest"),
        ("", ""),
    ],
)
def test_releases_of_a_model_share_a_name(model: str, name: str) -> None:
    assert shared_name(model) == name
    assert shared_name(name) == name


@pytest.mark.parametrize(
    ("asked", "answered", "another"),
    [
        ("auto", "anthropic/claude-sonnet-4.5", True),
        ("prod-chat", "gpt-4o-2024-08-06", True),
        ("gpt-5", "claude-haiku-4-5", True),
        ("gpt-5", "gpt-5-2025-08-07", False),
        ("gpt-5", "gpt-5-mini", False),
        ("gpt-5", "o3", False),  # one vocabulary
        ("claude-sonnet-4.6", "anthropic/claude-4.6-sonnet-20260217", False),
        ("llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct", False),
        ("gpt-4", "gpt-4o", False),
        ("gpt-5", "model", False),  # what answers is not told
        ("gpt-5", "/srv/checkpoint.gguf", False),
        ("gpt-5", "", False),
    ],
)
def test_another_family_is_told_by_its_name(asked: str, answered: str, another: bool) -> None:
    assert another_family(asked, answered) is another

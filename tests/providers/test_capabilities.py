"""Which reasoning goes back, by the table of the providers' documentation; versions and efforts by a model's name."""

from __future__ import annotations

import pytest

from tui.providers.base import ReasoningReturn
from tui.providers.capabilities import (
    Family,
    anthropic_capabilities,
    chat_capabilities,
    claude,
    gpt_version,
    openai_efforts,
    responses_capabilities,
)


@pytest.mark.parametrize(
    ("model", "line", "version"),
    [
        ("claude-opus-4-5-20251101", "opus", (4, 5)),
        ("claude-sonnet-4-20250514", "sonnet", (4, 0)),
        ("claude-haiku-5-5", "haiku", (5, 5)),
        ("claude-fable-5-1", "fable", (5, 1)),
        ("claude-opus-5", "opus", (5, 0)),
        ("anthropic/claude-sonnet-4.5", "sonnet", (4, 5)),
        ("claude-3-7-sonnet-latest", "sonnet", (3, 7)),
        ("claude-3-opus-20240229", "opus", (3, 0)),
        ("anthropic/claude-4.6-sonnet-20260217", "sonnet", (4, 6)),
    ],
)
def test_claude_names(model: str, line: str, version: tuple[int, int]) -> None:
    parsed = claude(model)
    assert parsed is not None
    assert (parsed.line, parsed.version) == (line, version)


@pytest.mark.parametrize("model", ["gpt-5", "claude-v1", "claude", "llama3"])
def test_no_claude(model: str) -> None:
    assert claude(model) is None


@pytest.mark.parametrize(
    ("model", "back", "bound"),
    [
        ("claude-opus-4-1", "tool_loop", False),
        ("claude-opus-4-5", "always", False),
        ("claude-sonnet-4-5", "tool_loop", False),
        ("claude-sonnet-4-6", "always", False),
        ("claude-haiku-4-5", "tool_loop", False),
        ("claude-opus-5", "always", False),
        ("claude-sonnet-5", "always", False),
        ("claude-fable-5", "always", False),
        ("claude-fable-5-1", "always", True),
        ("claude-mythos-5-2", "always", True),
        ("claude-opus-5-5", "always", True),
        ("claude-haiku-5-5", "always", True),
        ("claude-brand-9", "always", True),
        ("somebody-else", "always", True),
    ],
)
def test_claude_reasoning(model: str, back: ReasoningReturn, bound: bool) -> None:
    able = anthropic_capabilities(model, official=True)
    assert (able.reasoning_return, able.prefix_bound, able.needs_signature) == (back, bound, True)


@pytest.mark.parametrize(
    ("model", "official", "back", "signed"),
    [
        ("gpt-5.6", True, "always", True),
        ("gpt-6.2-sol", True, "always", True),
        ("gpt-5.5", True, "tool_loop", True),
        ("gpt-4o", True, "tool_loop", True),
        ("smollm2-135m", False, "tool_loop", False),
    ],
)
def test_responses_reasoning(model: str, official: bool, back: ReasoningReturn, signed: bool) -> None:
    able = responses_capabilities(model, official=official)
    assert (able.reasoning_return, able.needs_signature) == (back, signed)


@pytest.mark.parametrize(
    ("model", "family", "back", "with_tools"),
    [
        ("deepseek-v4-pro", "deepseek", "always", True),
        ("anthropic/claude-opus-4.6", "openrouter", "always", False),
        ("anthropic/claude-sonnet-4.5", "openrouter", "tool_loop", False),
        ("openai/o3", "openrouter", "tool_loop", False),
        ("qwen3", "llamacpp", "tool_loop", False),
        ("kimi-k3.1-pro", "kimi", "always", False),
        ("kimi-k2.7-code", "kimi", "always", False),
        ("kimi-k2.6", "kimi", "tool_loop", False),
        ("glm-5.3", "loop", "tool_loop", False),
        ("anything", "plain", "never", False),
    ],
)
def test_chat_reasoning(model: str, family: Family, back: ReasoningReturn, with_tools: bool) -> None:
    able = chat_capabilities(model, family)
    assert (able.reasoning_return, able.reasoning_needs_tools) == (back, with_tools)


def test_which_deepseek_sees() -> None:
    assert [chat_capabilities(name, "deepseek").images for name in ("deepseek-flash", "deepseek-v4-pro")] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("model", "version", "efforts"),
    [
        ("gpt-3.5-turbo", (3, 5), ()),
        ("gpt-35-turbo-16k", (3, 5), ()),  # as Azure writes it
        ("gpt-4o-mini", (4, 0), ()),
        ("openai/gpt-5-mini", (5, 0), ("minimal", "low", "medium", "high")),
        ("gpt-5.6", (5, 6), ("off", "low", "medium", "high", "xhigh", "max")),
        ("gpt-oss-120b", None, ("low", "medium", "high")),
        ("o3", None, ("low", "medium", "high")),
        ("qwen3", None, None),
    ],
)
def test_versions_and_efforts_of_gpt(
    model: str, version: tuple[int, int] | None, efforts: tuple[str, ...] | None
) -> None:
    assert (gpt_version(model), openai_efforts(model)) == (version, efforts)

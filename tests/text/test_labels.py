"""Names of models, tool calls in a few words, and what is said under an answer that did not end as usual."""

from __future__ import annotations

import pytest

from tui.messages import Message, Part, ProviderItem, Reasoning, Refusal, Source, Text, ToolCall
from tui.text.labels import (
    FINISH_KINDS,
    arguments_summary,
    ending_line,
    finish_kind,
    short_model,
    source_markdown,
    sources_markdown,
)

YES = Text("Yes.")


def ended(reason: str | None, *parts: Part) -> Message:
    return Message("assistant", parts, status="complete", finish_reason=reason)


@pytest.mark.parametrize("reason", [None, "stop", "STOP", "end_turn", "completed", "eos", "stop_sequence"])
def test_a_usual_end_needs_no_word(reason: str | None) -> None:
    assert ending_line(ended(reason, YES)) is None


@pytest.mark.parametrize("reason", ["tool_calls", "tool_use", "function_call", "completed", "toolUse", "tool-calls"])
def test_neither_does_a_tool_call(reason: str) -> None:
    assert ending_line(ended(reason, ToolCall("c", "look", "{}"))) is None


@pytest.mark.parametrize("reason", ["tool_calls", "tool_use", "function_call"])
def test_a_tool_call_that_never_came_is_missed(reason: str) -> None:
    assert "none arrived" in (ending_line(ended(reason, YES)) or "")
    assert ending_line(ended(reason, ProviderItem("web_search_call"), YES)) is None


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("length", "at the output limit"),
        ("max_tokens", "at the output limit"),
        ("max_output_tokens", "at the output limit"),
        ("MAX_TOKENS", "at the output limit"),
        ("model_context_window_exceeded", "the window is full"),
        ("content_filter", "content filter"),
        ("SAFETY", "content filter (safety)"),
        ("recitation", "content filter (recitation)"),
        ("refusal", "refused by the provider"),
        ("pause_turn", "paused"),
        ("malformed_function_call", "a tool call that its server could not read"),
        ("max_messages", "no more messages"),
        ("steered", "newer input"),
        ("repetition", "repeat itself"),
        ("brand_new", "ended the answer with 'brand_new'"),
    ],
)
def test_every_other_end_is_said(reason: str, words: str) -> None:
    message = ended(reason, YES)
    assert words in (ending_line(message) or "")


def test_an_end_that_nobody_knows_has_no_power_over_the_screen() -> None:
    assert "\x1b" not in (ending_line(ended("\x1b[2J", YES)) or "")


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((), "complete but empty"),
        ((Text(" \n"),), "complete but empty"),
        ((Reasoning("hm"),), "the model reasoned and wrote nothing"),
        ((ProviderItem("image_generation_call"),), "holds only what cannot be shown here: image_generation_call"),
        ((ProviderItem("audio"), ProviderItem("audio"), ProviderItem("image")), "cannot be shown here: audio, image"),
    ],
)
def test_an_answer_without_a_word_is_said_to_be_one(parts: tuple[Part, ...], words: str) -> None:
    for reason in ("stop", "completed", "end_turn"):
        assert words in (ending_line(ended(reason, *parts)) or "")


def test_a_refusal_names_its_category() -> None:
    assert "(cyber)" in (ending_line(ended("refusal", Refusal("", "cyber", from_server=True))) or "")
    assert ending_line(ended("stop", Refusal("I can't."))) is None


def test_the_table_is_in_lower_case() -> None:
    assert all(reason == reason.lower() for reason in FINISH_KINDS)
    assert finish_kind("Tool_Use") == "tool_calls"


@pytest.mark.parametrize(
    ("source", "markdown"),
    [
        (Source("https://example.com/a_b", "A [b] *c*"), "[A &#91;b&#93; &#42;c&#42;](<https://example.com/a_b>)"),
        (Source("https://example.com/"), "[https://example.com/](<https://example.com/>)"),
        (Source("notes.pdf", "Notes"), "Notes"),
        (Source("javascript:alert(1)", "click"), "click"),
        (Source("https://example.com/> [x](y", "a"), "a"),
    ],
)
def test_a_source_is_a_link_only_to_the_web(source: Source, markdown: str) -> None:
    assert source_markdown(source) == markdown
    assert sources_markdown([source, source]) == f"1. {markdown}\n2. {markdown}"


@pytest.mark.parametrize(
    ("model", "short"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("openai/gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("gpt-5.1", "gpt-5.1"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("llama3.2:3b", "llama3.2"),
        ("global.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("openai.gpt-oss-120b-1:0", "gpt-oss"),
        ("databricks-claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("claude-opus-4-8@20260101", "claude-opus-4-8"),  # Vertex
        ("tiny.en.gguf", "tiny.en"),
        ("ft:gpt-4o-mini-2024-07-18:acme::x1", "gpt-4o-mini"),
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
        ('{"year": 3, "città": ["東京"]}', '{"year": 3, "città": ["東京"]}'),
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

"""What is said under an answer that did not end as usual."""

from __future__ import annotations

import pytest

from tui.messages import Message, Part, ProviderItem, Reasoning, Refusal, Source, Text, ToolCall
from tui.text.endings import FINISH_KINDS, ending_line, finish_kind, source_markdown, sources_markdown

YES = Text("Yes.")


def ended(reason: str | None, *parts: Part) -> Message:
    return Message("assistant", parts, status="complete", finish_reason=reason)


@pytest.mark.parametrize("reason", [None, "stop", "STOP", "end_turn", "completed", "eos", "stop_sequence"])
def test_a_usual_end_needs_no_word(reason: str | None) -> None:
    assert ending_line(ended(reason, YES)) is None


@pytest.mark.parametrize("reason", ["tool_calls", "tool_use", "function_call", "completed"])
def test_neither_does_a_tool_call(reason: str) -> None:
    assert ending_line(ended(reason, ToolCall("c", "look", "{}"))) is None


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

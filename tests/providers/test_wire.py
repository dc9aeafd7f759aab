"""What holds for any history in every dialect."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.wire_values import GONE, IMAGE, NOTE, PDF, request
from tui.messages import Message, Reasoning, Refusal, Request, Text, ToolCall, ToolResult, ToolSchema
from tui.providers.anthropic import provider as anthropic_provider
from tui.providers.openai_chat import provider as chat_provider
from tui.providers.openai_responses import provider as responses_provider

texts = st.text(max_size=20)
ids = st.sampled_from(["", "c", "call_0", "x" * 50, "ä", "a b"])
assistant_parts = st.one_of(
    texts.map(Text),
    texts.map(Refusal),
    st.builds(
        Reasoning,
        texts,
        st.sampled_from(["p", "q"]),
        st.just("m"),
        signature=st.none() | texts,
        redacted=st.none() | texts,
        encrypted=st.none() | texts,
        details=st.none() | texts,
    ),
    st.builds(ToolCall, ids, st.just("look"), texts),
)
user_parts = st.one_of(texts.map(Text), st.sampled_from([IMAGE, PDF, NOTE, GONE]))
messages = st.lists(
    st.one_of(
        st.builds(Message, st.just("user"), st.lists(user_parts, max_size=3).map(tuple)),
        st.builds(Message, st.just("assistant"), st.lists(assistant_parts, max_size=4).map(tuple)),
        st.builds(
            Message,
            st.just("tool"),
            st.lists(st.builds(ToolResult, ids, st.just("look"), texts), max_size=2).map(tuple),
        ),
    ),
    max_size=6,
)


@given(messages)
def test_any_history_becomes_json_without_empty_content(
    history: list[Message],
) -> None:
    req = request(*history)
    before = repr(req)
    chat = chat_provider.to_wire(req, chat_provider.ChatStyle())
    anthropic = anthropic_provider.to_wire(req, anthropic_provider.AnthropicStyle())
    responses = responses_provider.to_wire(req, responses_provider.ResponsesStyle())
    for body in (chat, anthropic, responses):
        json.dumps(body)
    assert repr(req) == before
    for message in chat["messages"]:
        assert message["content"] or message.get("tool_calls")
    previous = None
    for message in anthropic["messages"]:
        assert message["role"] != previous
        previous = message["role"]
        assert message["content"]
        for block in message["content"]:
            assert block["type"] != "text" or block["text"].strip()
    calls = [
        block["id"] for message in anthropic["messages"] for block in message["content"] if block["type"] == "tool_use"
    ]
    originals = {part.id for message in history for part in message.parts if isinstance(part, ToolCall)}
    assert len(set(calls)) == len(originals)


@pytest.mark.parametrize("text", ["words", " ", ""])
@pytest.mark.parametrize("needs_reasoning", [True, False])
def test_a_message_of_one_text_is_written_as_any_other(text: str, needs_reasoning: bool) -> None:
    style = replace(chat_provider.ChatStyle(), needs_reasoning=needs_reasoning)
    for tools in ((), (ToolSchema("f", "does", "{}"),)):
        alone, beside = (
            Request("p", "m", (Message("user", parts), Message("assistant", parts)), tools=tools)
            for parts in ((Text(text),), (Text(text), Text("")))
        )
        assert chat_provider.to_wire(alone, style) == chat_provider.to_wire(beside, style)

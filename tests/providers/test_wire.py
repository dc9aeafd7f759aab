"""What holds for any history in every dialect, and images that tools gave back."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.messages import assistant, tool, user
from tests.providers.wire_values import GONE, IMAGE, NOTE, PDF, request
from tui.messages import Message, Reasoning, Refusal, Request, Text, ToolCall, ToolResult, ToolSchema
from tui.providers.config import PRESETS, ProviderConfig
from tui.providers.dialects import anthropic as anthropic_provider
from tui.providers.dialects import openai_chat as chat_provider
from tui.providers.dialects import openai_responses as responses_provider

texts = st.text(max_size=20)
ids = st.sampled_from(["", "c", "call_0", "x" * 50, "ä", "a b"])
names = st.sampled_from(["look", "multi_tool_use.parallel", "n" * 300, "见", "a b", "\ud800", ""])
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
    st.builds(ToolCall, ids, names, texts | st.sampled_from(['{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}'])),
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
        json.dumps(body, allow_nan=False)
    assert repr(req) == before
    for message in chat["messages"]:
        assert message["content"] or message.get("tool_calls")
        for call in message.get("tool_calls", []):
            json.dumps(json.loads(call["function"]["arguments"]), allow_nan=False)
    previous = None
    for message in anthropic["messages"]:
        assert message["role"] != previous
        previous = message["role"]
        assert message["content"]
        for block in message["content"]:
            assert block["type"] != "text" or block["text"].strip()
    named = [call["function"]["name"] for message in chat["messages"] for call in message.get("tool_calls", [])]
    named += [block["name"] for message in anthropic["messages"] for block in message["content"] if "name" in block]
    named += [item["name"] for item in responses["input"] if "name" in item]
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in named)
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


DATA = base64.b64encode(b"img").decode()
TURN = (
    user("Look at both"),
    assistant(ToolCall("c1", "look", "{}"), ToolCall("c2", "read", "{}")),
    tool(ToolResult("c1", "look", "a plot:"), IMAGE, ToolResult("c2", "read", "text"), Text("[no image]")),
)
# As the projection writes it for dialects whose results are text alone.
NAMED = (
    *TURN[:2],
    tool(ToolResult("c1", "look", "a plot:"), Text("[of look]"), IMAGE, *TURN[2].parts[2:]),
)


def test_anthropic_takes_them_inside_the_result() -> None:
    blocks = anthropic_provider.to_wire(request(*TURN), anthropic_provider.AnthropicStyle())["messages"][-1]["content"]
    source = {"type": "base64", "media_type": "image/png", "data": DATA}
    assert blocks == [
        {
            "type": "tool_result",
            "tool_use_id": "c1",
            "content": [{"type": "text", "text": "a plot:"}, {"type": "image", "source": source}],
        },
        {"type": "tool_result", "tool_use_id": "c2", "content": "text\n[no image]"},
    ]


def test_chat_takes_them_from_the_person_s_side_after_all_results() -> None:
    more = tool(ToolResult("c3", "look", "late"))
    messages = chat_provider.to_wire(request(*NAMED, more, user("And?")), chat_provider.ChatStyle())["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "tool", "user"]
    assert messages[3]["content"] == "text\n[no image]"
    assert messages[-1]["content"] == [
        {"type": "text", "text": "[of look]"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}},
        {"type": "text", "text": "And?"},
    ]
    assert chat_provider.to_wire(request(*NAMED), chat_provider.ChatStyle())["messages"][-1]["role"] == "user"
    assert chat_provider.OpenAIChat(PRESETS["groq"]).capabilities("m").files_after_results


def test_responses_takes_them_inside_the_output_at_openai_only() -> None:
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}", "detail": "auto"}
    [official, _] = responses_provider.to_wire(request(*TURN), responses_provider.ResponsesStyle())["input"][-2:]
    assert official["output"] == [{"type": "input_text", "text": "a plot:"}, image]
    items = responses_provider.to_wire(request(*NAMED), responses_provider.ResponsesStyle(official=False))["input"]
    assert [item["type"] for item in items[-3:]] == ["function_call_output", "function_call_output", "message"]
    assert items[-3]["output"] == "a plot:"
    assert items[-1]["content"] == [{"type": "input_text", "text": "[of look]"}, image]
    for ours in (True, False):
        provider = responses_provider.OpenAIResponses(replace(PRESETS["openai"], official=ours))
        assert provider.capabilities("gpt-5.6").files_after_results is not ours


def test_what_is_gone_is_named() -> None:
    turn = (*TURN[:2], tool(ToolResult("c1", "look", ""), GONE))
    message = anthropic_provider.to_wire(request(*turn), anthropic_provider.AnthropicStyle())["messages"][-1]
    content = message["content"][0]["content"]
    assert content[1] == {"type": "text", "text": "[attachment gone.png is not available any more]"}


SIGNED = f"call_1__thought__{'A+/=' * 200}"


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
def test_the_id_of_a_call_goes_back_to_the_model_that_gave_it_as_it_came(dialect: str, kept: bool) -> None:
    """LiteLLM puts Gemini's thought signature there; other models get ids that all accept."""
    call = replace(assistant(ToolCall(SIGNED, "look", "{}")), provider="p", model="m" if kept else "other")
    outgoing = request(user("Look"), call, tool(ToolResult(SIGNED, "look", "A")), max_output=9)
    body = json.dumps(
        {
            "chat": lambda: chat_provider.to_wire(outgoing, chat_provider.ChatStyle()),
            "messages": lambda: anthropic_provider.to_wire(outgoing, anthropic_provider.AnthropicStyle()),
            "responses": lambda: responses_provider.to_wire(
                outgoing, responses_provider.ResponsesStyle(official=False)
            ),
        }[dialect]()
    )
    assert body.count(SIGNED) == (2 if kept else 0)


def test_ids_that_openai_and_anthropic_would_refuse_are_never_sent_to_them() -> None:
    """Whoever gave them: a session of Claude Code behind LiteLLM may have been imported."""
    call = replace(assistant(ToolCall(SIGNED, "look", "{}")), provider="p", model="m")
    outgoing = request(user("Look"), call, tool(ToolResult(SIGNED, "look", "A")), max_output=9)
    openai = ProviderConfig("openai", official=True)
    for body in (
        chat_provider.to_wire(outgoing, chat_provider.ChatStyle(config=openai)),
        anthropic_provider.to_wire(outgoing, anthropic_provider.AnthropicStyle(official=True)),
        responses_provider.to_wire(outgoing, responses_provider.ResponsesStyle(official=True)),
    ):
        assert SIGNED not in json.dumps(body)
    for model in ("claude-opus-4-5", "claude-x", "x"):
        config = ProviderConfig("anthropic", "anthropic", official=True)
        assert anthropic_provider.AnthropicMessages(config).style(model).official

"""Images that tools gave back, in the words of every dialect."""

from __future__ import annotations

import base64

from tests.providers.wire_values import GONE, IMAGE, assistant, request, results, user
from tui.messages import Message, Text, ToolCall, ToolResult
from tui.providers.anthropic import provider as anthropic_provider
from tui.providers.openai_chat import provider as chat_provider
from tui.providers.openai_responses import provider as responses_provider

DATA = base64.b64encode(b"img").decode()
TURN = (
    user("Look at both"),
    assistant(ToolCall("c1", "look", "{}"), ToolCall("c2", "read", "{}")),
    Message("tool", (ToolResult("c1", "look", "a plot:"), IMAGE, ToolResult("c2", "read", "text"), Text("[no image]"))),
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
    more = results(ToolResult("c3", "look", "late"))
    messages = chat_provider.to_wire(request(*TURN, more, user("And?")), chat_provider.ChatStyle())["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "tool", "user"]
    assert messages[3]["content"] == "text\n[no image]"
    assert messages[-1]["content"] == [
        {"type": "text", "text": "[from the result of look]"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}},
        {"type": "text", "text": "And?"},
    ]
    assert chat_provider.to_wire(request(*TURN), chat_provider.ChatStyle())["messages"][-1]["role"] == "user"


def test_responses_takes_them_inside_the_output_at_openai_only() -> None:
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}", "detail": "auto"}
    [official, _] = responses_provider.to_wire(request(*TURN), responses_provider.ResponsesStyle())["input"][-2:]
    assert official["output"] == [{"type": "input_text", "text": "a plot:"}, image]
    items = responses_provider.to_wire(request(*TURN), responses_provider.ResponsesStyle(official=False))["input"]
    assert [item["type"] for item in items[-3:]] == ["function_call_output", "function_call_output", "message"]
    assert items[-3]["output"] == "a plot:"
    assert items[-1]["content"] == [{"type": "input_text", "text": "[from the result of look]"}, image]


def test_what_is_gone_is_named() -> None:
    turn = (*TURN[:2], Message("tool", (ToolResult("c1", "look", ""), GONE)))
    message = anthropic_provider.to_wire(request(*turn), anthropic_provider.AnthropicStyle())["messages"][-1]
    content = message["content"][0]["content"]
    assert content[1] == {"type": "text", "text": "[attachment gone.png is not available any more]"}

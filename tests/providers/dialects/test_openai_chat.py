"""Requests in the words of Chat Completions, on plain values."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.messages import assistant, tool, user
from tests.providers.wire_values import GONE, IMAGE, NOTE, PDF, TOOL, TOOL_TURN, request, thought
from tui.config.settings import ProviderSettings
from tui.messages import Request, SystemSection, ToolCall, ToolResult
from tui.providers.config import PRESETS, EffortStyle, ProviderConfig
from tui.providers.dialects.openai_chat import ChatStyle, OpenAIChat, to_wire
from tui.providers.discovery import gemini_body
from tui.providers.registry import provider_config


class TestChat:
    def body(self, req: Request, **style: Any) -> dict[str, Any]:
        return to_wire(req, ChatStyle(**style))

    def test_system_text_and_usage_are_asked_for(self) -> None:
        system = (SystemSection("system", "prompt", "Be brief."), SystemSection("memory", "CHAT.md", "I am Ada."))
        body = self.body(request(user("Hi"), system=system, max_output=100, session="s1"))
        assert body == {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief.\n\nI am Ada."},
                {"role": "user", "content": "Hi"},
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": 100,
        }

    def test_a_tool_turn(self) -> None:
        body = self.body(request(*TOOL_TURN, tools=(TOOL,)))
        assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "tool", "user"]
        calls = body["messages"][1]["tool_calls"]
        assert [call["id"] for call in calls] == ["c1", "c2"]
        assert calls[0]["function"] == {"name": "look", "arguments": '{"path": "a"}'}
        assert body["messages"][2] == {"role": "tool", "tool_call_id": "c1", "content": "A"}
        assert body["messages"][3]["content"] == "[no output]"
        assert body["tools"][0]["function"]["parameters"]["properties"] == {"path": {"type": "string"}}

    def test_a_message_of_the_model_stands_between_a_result_and_the_next_question_where_needed(self) -> None:
        roles = [message["role"] for message in self.body(request(*TOOL_TURN), bridges=True)["messages"]]
        assert roles == ["user", "assistant", "tool", "tool", "assistant", "user"]
        mistral = OpenAIChat(PRESETS["mistral"])
        assert mistral.style("m").bridges and mistral.capabilities("m").bridges

    def test_a_system_prompt_begins_the_first_message_of_a_model_without_that_role(self) -> None:
        system = (SystemSection("system", "prompt", "Be brief."),)
        assert self.body(request(user("Hi"), system=system), takes_system=False)["messages"] == [
            {"role": "user", "content": "Be brief.\n\nHi"}
        ]

    def test_a_call_without_text_has_null_content(self) -> None:
        body = self.body(request(user("x"), assistant(ToolCall("c", "look", "{}")), tool(ToolResult("c", "look", "A"))))
        assert body["messages"][1]["content"] is None

    @pytest.mark.parametrize(
        ("written", "sent"),
        [
            ("", "{}"),
            ('{"a":1}', '{"a":1}'),
            ('{"a": ', '{"invalid_json": "{\\"a\\": "}'),
            ("[1]", '{"value": [1]}'),
        ],
    )
    def test_arguments_are_always_an_object(self, written: str, sent: str) -> None:
        call = assistant(ToolCall("c", "look", written))
        body = self.body(request(user("x"), call, tool(ToolResult("c", "look", "A"))))
        assert body["messages"][1]["tool_calls"][0]["function"]["arguments"] == sent

    def test_reasoning_goes_back_only_to_who_made_it(self) -> None:
        mine, other = thought("mine"), thought("theirs", model="else")
        body = self.body(
            request(user("x"), assistant(mine, other, "y"), user("z")),
            config=ProviderConfig("p", reasoning_field="reasoning"),
        )
        assert body["messages"][1] == {"role": "assistant", "content": "y", "reasoning": "mine"}

    def test_openrouter_details_go_back_whole_and_in_order(self) -> None:
        details = [
            {"type": "reasoning.text", "text": "hm", "signature": "sig"},
            {"type": "reasoning.encrypted", "data": "x"},
        ]
        message = assistant(thought("hm", details=json.dumps(details)), "y")
        body = self.body(request(user("x"), message, user("z")))
        assert body["messages"][1]["reasoning_details"] == details
        assert "reasoning_content" not in body["messages"][1]

    def test_thought_signatures_are_echoed(self) -> None:
        extra = '{"google": {"thought_signature": "abc"}}'
        call = replace(assistant(ToolCall("c", "look", "{}", extra=extra)), provider="p")
        talk = request(user("x"), call, tool(ToolResult("c", "look", "A")))
        sent = self.body(talk)["messages"][1]["tool_calls"][0]
        assert sent["extra_content"] == {"google": {"thought_signature": "abc"}}
        elsewhere = self.body(replace(talk, provider="other"))["messages"][1]["tool_calls"][0]
        assert "extra_content" not in elsewhere  # a field that a strict server refuses

    def test_deepseek_with_tools_gets_a_thought_with_every_answer(self) -> None:
        """Also with those of another model, whose thoughts do not go there: it refuses a history that lacks one."""
        talk = (user("x"), assistant(thought("mine"), "y"), user("z"), assistant(thought("theirs", model="else"), "w"))
        sent = self.body(request(*talk, user("v"), tools=(TOOL,)), needs_reasoning=True)["messages"]
        assert [m["reasoning_content"] for m in sent if m["role"] == "assistant"] == ["mine", " "]
        plain = self.body(request(*talk, user("v")), needs_reasoning=True)["messages"]
        assert "reasoning_content" not in plain[3]
        assert [name for name, config in PRESETS.items() if OpenAIChat(config).style("m").needs_reasoning] == [
            "deepseek",
            "moonshot",
        ]

    def test_an_answer_of_nothing_but_reasoning_is_not_sent(self) -> None:
        body = self.body(request(user("x"), assistant(thought()), user("z")))
        assert body["messages"] == [{"role": "user", "content": "x\n\nz"}]

    def test_attachments(self) -> None:
        content = self.body(request(user("See", IMAGE, PDF, NOTE, GONE)))["messages"][0]["content"]
        assert content == [
            {"type": "text", "text": "See"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}},
            {"type": "file", "file": {"filename": "paper.pdf", "file_data": "data:application/pdf;base64,cGRm"}},
            {"type": "text", "text": '<file name="note.txt">\na note\n</file>'},
            {"type": "text", "text": "[attachment gone.png is not available any more]"},
        ]

    def test_two_of_one_side_become_one(self) -> None:
        body = self.body(request(user("a"), user("b", IMAGE), assistant("c"), assistant("d"), user("e")))
        assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
        assert [piece["type"] for piece in body["messages"][0]["content"]] == ["text", "text", "image_url"]
        assert body["messages"][1]["content"] == "c\n\nd"

    def test_an_answer_with_calls_is_never_merged(self) -> None:
        body = self.body(request(user("x"), assistant("a"), *TOOL_TURN[1:]))
        assert [message["role"] for message in body["messages"]] == [
            "user",
            "assistant",
            "assistant",
            "tool",
            "tool",
            "user",
        ]

    @pytest.mark.parametrize(
        "ids", [["call_0", "call_0-1"], ["", "-1"], ["x" * 64, "y y"], ["functions.look:0", "functions.look:1"]]
    )
    @pytest.mark.parametrize("short", [True, False])
    def test_ids_are_valid_and_results_have_those_of_their_calls(self, ids: list[str], short: bool) -> None:
        turns = []
        for number, call_id in enumerate(ids):
            turns += [
                user("go"),
                assistant(ToolCall(call_id, "look", "{}")),
                tool(ToolResult(call_id, "look", f"result {number}")),
            ]
        messages = self.body(request(*turns), config=ProviderConfig("p", short_tool_ids=short))["messages"]
        sent = [message["tool_calls"][0]["id"] for message in messages if "tool_calls" in message]
        answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        assert sent == answered
        assert len(set(sent)) == 2
        assert all(0 < len(one) <= 40 and " " not in one for one in sent)
        if short:
            assert all(len(one) == 9 and one.isalnum() for one in sent)
        elif ids[0].startswith("functions"):
            assert sent == ids

    @pytest.mark.parametrize(
        ("effort", "wish", "sent"),
        [
            ("effort", "high", {"reasoning_effort": "high"}),
            ("effort", "off", {"reasoning_effort": "none"}),
            ("openrouter", "low", {"reasoning": {"effort": "low"}}),
            ("openrouter", "off", {"reasoning": {"enabled": False}}),
            ("thinking", "high", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
            ("thinking", "medium", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
            ("thinking", "low", {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
            ("thinking", "off", {"thinking": {"type": "disabled"}}),
        ],
    )
    def test_effort(self, effort: EffortStyle, wish: str, sent: dict[str, Any]) -> None:
        style = OpenAIChat(ProviderConfig("p", effort_style=effort)).style("m")
        body = to_wire(request(user("x"), reasoning=wish), style)
        assert {key: body[key] for key in sent} == sent


def test_openai_itself_is_asked_in_its_own_words() -> None:
    table = ProviderSettings(base_url="https://api.openai.com/v1/chat/completions")
    provider = OpenAIChat(provider_config("mine", table))
    body = to_wire(request(user("x"), max_output=9, session="s1"), provider.style("gpt-5.6"))
    assert (body["max_completion_tokens"], body["prompt_cache_key"]) == (9, "s1") and "max_tokens" not in body
    assert provider.capabilities("gpt-5.6").pdfs


def test_a_request_as_gemini_counts_it() -> None:
    system = (SystemSection("system", "prompt", "Be brief."),)
    question = request(*TOOL_TURN[:3], user("And this?", IMAGE), model="models/g", system=system, tools=(TOOL,))
    body = gemini_body(to_wire(question, ChatStyle()))["generateContentRequest"]
    assert body["model"] == "models/g"
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    [declaration] = body["tools"][0]["functionDeclarations"]
    assert (declaration["name"], declaration["parametersJsonSchema"]["type"]) == ("look", "object")
    assert [content["role"] for content in body["contents"]] == ["user", "model", "user"]
    question, calls, answers = (content["parts"] for content in body["contents"])
    assert question == [{"text": "Read both"}]
    assert calls == [
        {"text": "Looking."},
        {"functionCall": {"name": "look", "args": {"path": "a"}}},
        {"functionCall": {"name": "look", "args": {"path": "b"}}},
    ]
    assert answers[0] == {"functionResponse": {"name": "look", "response": {"output": "A"}}}
    assert answers[-2:] == [
        {"text": "And this?"},
        {"inlineData": {"mimeType": "image/png", "data": "aW1n"}},
    ]

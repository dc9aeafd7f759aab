"""Requests in the words of OpenAI Responses, on plain values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.messages import assistant, tool, user
from tests.providers.wire_values import TOOL, request, thought
from tui.messages import Request, SystemSection, ToolCall, ToolResult
from tui.providers.config import ProviderConfig
from tui.providers.dialects.openai_responses import OpenAIResponses, to_wire


class TestResponses:
    def body(self, req: Request, official: bool = True) -> dict[str, Any]:
        config = ProviderConfig("p", "openai-responses", official=official)
        return to_wire(req, OpenAIResponses(config).style(req.model))

    def test_it_is_stateless(self) -> None:
        system = (SystemSection("system", "prompt", "Be brief."),)
        body = self.body(request(user("Hi"), model="gpt-5.6", system=system, max_output=50, session="s1"))
        assert body == {
            "model": "gpt-5.6",
            "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
            "store": False,
            "stream": True,
            "instructions": "Be brief.",
            "max_output_tokens": 50,
            "prompt_cache_key": "s1",
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"summary": "auto"},
        }

    def test_items_are_replayed_in_order(self) -> None:
        origin = {"model": "gpt-5.6"}
        message = assistant(
            thought("summary", encrypted="enc1", item_id="rs_1", **origin),
            "On it.",
            ToolCall("c1", "look", '{"path": "a"}'),
        )
        answer = assistant(thought("", encrypted="enc2", item_id="rs_2", **origin), "Done.")
        body = self.body(
            request(
                user("x"),
                message,
                tool(ToolResult("c1", "look", "A")),
                answer,
                user("z"),
                tools=(TOOL,),
                model="gpt-5.6",
            )
        )
        kinds = [item["type"] for item in body["input"]]
        assert kinds == [
            "message", "reasoning", "message", "function_call", "function_call_output",
            "reasoning", "message", "message",
        ]  # fmt: skip
        assert body["input"][1] == {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "summary"}],
            "encrypted_content": "enc1",
        }
        assert body["input"][2]["phase"] == "commentary"
        assert body["input"][6]["phase"] == "final_answer"
        assert body["input"][3] == {
            "type": "function_call",
            "call_id": "c1",
            "name": "look",
            "arguments": '{"path": "a"}',
        }
        assert body["input"][4] == {"type": "function_call_output", "call_id": "c1", "output": "A"}

    def test_reasoning_is_never_the_last_of_an_answer(self) -> None:
        message = assistant("Hm.", thought("cut off", encrypted="e", item_id="rs_1"))
        body = self.body(request(user("x"), message, user("z")))
        assert [item["type"] for item in body["input"]] == ["message", "message", "message"]

    def test_several_summaries_go_back_as_several(self) -> None:
        parts = [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]
        message = assistant(thought("a\n\nb", encrypted="e", item_id="rs_1", details=json.dumps(parts)), "y")
        assert self.body(request(user("x"), message, user("z")))["input"][1]["summary"] == parts

    @pytest.mark.parametrize(
        ("model", "wish", "fields"),
        [
            ("gpt-4o", "high", None),
            ("gpt-5-chat-latest", None, None),
            ("gpt-5", "off", {"summary": "auto", "effort": "minimal"}),
            ("gpt-5.2", "off", {"summary": "auto", "effort": "none"}),
            ("gpt-5.2", "minimal", {"summary": "auto", "effort": "low"}),
            ("gpt-5.2", "max", {"summary": "auto", "effort": "xhigh"}),
            ("gpt-5.6", "max", {"summary": "auto", "effort": "max"}),
            ("gpt-6-astra", "off", {"summary": "auto", "effort": "low"}),
            ("gpt-6.2-sol", "minimal", {"summary": "auto", "effort": "low"}),
            ("gpt-4o", "low", None),
            ("somebody-new", "low", None),
            ("gpt-5-pro", "low", {"summary": "auto", "effort": "high"}),
            ("o4-mini", "low", {"summary": "auto", "effort": "low"}),
            ("o4-mini", "off", {"summary": "auto", "effort": "low"}),
            ("gpt-6-sol", None, {"summary": "auto"}),
        ],
    )
    def test_reasoning_fields_only_for_reasoning_models(self, model: str, wish: str | None, fields: Any) -> None:
        body = self.body(request(user("x"), model=model, reasoning=wish))
        assert body.get("reasoning") == fields
        assert ("include" in body) == (fields is not None)

    def test_other_servers_get_the_plain_fields(self) -> None:
        message = assistant(thought("hm", item_id="rs_1"), "y")
        body = self.body(request(user("x"), message, user("z"), session="s"), official=False)
        assert "include" not in body and "prompt_cache_key" not in body and "reasoning" not in body
        assert body["input"][1]["content"] == [{"type": "reasoning_text", "text": "hm"}]

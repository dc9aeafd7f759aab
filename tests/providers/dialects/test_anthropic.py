"""Requests in the words of Anthropic Messages, on plain values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.messages import assistant, tool, user
from tests.providers.wire_values import GONE, IMAGE, NOTE, PDF, TOOL, TOOL_TURN, request, thought
from tui.messages import Reasoning, Refusal, Request, SystemSection, ToolCall, ToolResult
from tui.providers.base import ModelInfo
from tui.providers.config import ProviderConfig
from tui.providers.dialects.anthropic import AnthropicMessages, to_wire, with_cache_breakpoints


class TestAnthropic:
    def body(self, req: Request, types: frozenset[str] | None = None) -> dict[str, Any]:
        provider = AnthropicMessages(ProviderConfig("p", "anthropic"))
        if types is not None:
            provider._listed[req.model] = ModelInfo(req.model, thinking=tuple(types))
        return to_wire(req, provider.style(req.model))

    def test_a_tool_turn(self) -> None:
        body = self.body(request(*TOOL_TURN, tools=(TOOL,)))
        assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
        assert [block["type"] for block in body["messages"][1]["content"]] == ["text", "tool_use", "tool_use"]
        last = body["messages"][2]["content"]
        assert last == [
            {"type": "tool_result", "tool_use_id": "c1", "content": "A"},
            {"type": "tool_result", "tool_use_id": "c2", "content": "[no output]", "is_error": True},
            {"type": "text", "text": "Thanks"},
        ]
        assert body["tools"][0]["input_schema"]["type"] == "object"

    def test_results_come_first_in_their_message(self) -> None:
        history = (
            user("Read"),
            assistant(ToolCall("c1", "look", "{}")),
            user("Wait"),
            tool(ToolResult("c1", "look", "A")),
        )
        content = self.body(request(*history))["messages"][2]["content"]
        assert [block["type"] for block in content] == ["tool_result", "text"]

    def test_thinking_goes_back_verbatim_and_in_order(self) -> None:
        message = assistant(
            thought("first", signature="s1"),
            thought("", redacted="blob"),
            "Looking.",
            thought("second", signature="s2"),
            ToolCall("c1", "look", "{}"),
        )
        blocks = self.body(request(user("x"), message, tool(ToolResult("c1", "look", "A"))))["messages"][1]["content"]
        assert blocks == [
            {"type": "thinking", "thinking": "first", "signature": "s1"},
            {"type": "redacted_thinking", "data": "blob"},
            {"type": "text", "text": "Looking."},
            {"type": "thinking", "thinking": "second", "signature": "s2"},
            {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
        ]

    @pytest.mark.parametrize(
        "part",
        [
            thought("cancelled"),
            thought("of another model", model="n", signature="s"),
            thought("of another provider", provider="q", signature="s"),
        ],
    )
    def test_a_thought_that_would_be_refused_is_not_sent(self, part: Reasoning) -> None:
        blocks = self.body(request(user("x"), assistant(part, "y"), user("z")))["messages"][1]["content"]
        assert blocks == [{"type": "text", "text": "y"}]

    def test_an_empty_signature_is_a_signature(self) -> None:
        blocks = self.body(request(user("x"), assistant(thought("t", signature=""), "y"), user("z")))["messages"][1][
            "content"
        ]
        assert blocks[0] == {"type": "thinking", "thinking": "t", "signature": ""}

    def test_nothing_empty_is_sent(self) -> None:
        body = self.body(
            request(
                user("x"),
                assistant("  \n", thought("t", signature="s")),
                user(" ", "y"),
                assistant(Refusal("no")),
                user("z"),
            ),
        )
        assert body["messages"] == [
            {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "no"}]},
            {"role": "user", "content": [{"type": "text", "text": "z"}]},
        ]

    def test_only_an_answer_to_be_continued_loses_its_last_blanks(self) -> None:
        body = self.body(request(user("x"), assistant("a \n"), user("z"), assistant("b \n")))
        assert body["messages"][1]["content"][0]["text"] == "a \n"
        assert body["messages"][3]["content"][0]["text"] == "b"

    def test_two_cache_marks(self) -> None:
        system = (SystemSection("system", "prompt", "Be brief."), SystemSection("memory", "CHAT.md", "I am Ada."))
        body = with_cache_breakpoints(self.body(request(*TOOL_TURN, system=system, tools=(TOOL,))))
        marked = [block for block in body["system"] if "cache_control" in block]
        assert [block["text"] for block in marked] == ["I am Ada."]
        assert "cache_control" in body["messages"][-1]["content"][-1]
        assert json.dumps(body).count("cache_control") == 2

    def test_attachments(self) -> None:
        content = self.body(request(user("See", IMAGE, PDF, NOTE, GONE)))["messages"][0]["content"]
        assert [block["type"] for block in content] == ["text", "image", "document", "text", "text"]
        assert content[1]["source"] == {"type": "base64", "media_type": "image/png", "data": "aW1n"}

    @pytest.mark.parametrize(
        ("model", "wish", "kind"),
        [
            ("claude-sonnet-4-5", None, None),
            ("claude-sonnet-4-5", "high", "enabled"),
            ("claude-sonnet-4-5", "off", "disabled"),
            ("claude-3-5-haiku-latest", "high", None),
            ("claude-opus-4-6", None, None),
            ("claude-opus-4-6", "low", "adaptive"),
            ("claude-opus-4-8", "off", "disabled"),
            ("claude-opus-4-8", None, None),
            ("claude-opus-5", None, "adaptive"),
            ("claude-opus-5", "off", "disabled"),
            ("claude-haiku-5-5", "off", "disabled"),
            ("claude-sonnet-5-5", "off", "between_tools"),
            ("claude-opus-5-5", None, "adaptive"),
            ("claude-opus-5-5", "off", "adaptive"),
            ("claude-fable-5", "off", "adaptive"),
        ],
    )
    def test_thinking_mode_by_model(self, model: str, wish: str | None, kind: str | None) -> None:
        body = self.body(request(user("x"), model=model, reasoning=wish, max_output=16_000))
        assert body.get("thinking", {}).get("type") == kind
        if kind == "enabled":
            assert 1024 <= body["thinking"]["budget_tokens"] < body["max_tokens"]
        if kind == "adaptive":
            assert body["thinking"]["display"] == "summarized"  # what is billed is seen
            efforts = {None: None, "off": {"effort": "low"}}
            assert body.get("output_config") == efforts.get(wish, {"effort": wish})

    @pytest.mark.parametrize(
        ("model", "thoughts", "kind"),
        [
            ("claude-sonnet-4-5", (), "disabled"),
            ("claude-sonnet-4-5", (thought(model="claude-sonnet-4-5", signature="s"),), "enabled"),
            ("claude-opus-4-6", (), "adaptive"),
            ("glm-5", (), "enabled"),
        ],
    )
    def test_a_budget_is_refused_after_a_call_without_thinking(
        self, model: str, thoughts: tuple[Reasoning, ...], kind: str
    ) -> None:
        """Of another model, or of a turn that was stopped while its tool ran."""
        talk = (user("Look"), assistant(*thoughts, ToolCall("c", "look", "{}")), tool(ToolResult("c", "look", "A")))
        for messages in (talk, (*talk, user("go on"))):
            body = self.body(request(*messages, model=model, reasoning="high", max_output=16_000))
            assert body["thinking"]["type"] == kind
        assert self.body(
            request(*talk, assistant("Done."), user("x"), model=model, reasoning="high", max_output=9_000)
        )["thinking"]["type"] == kind.replace("disabled", "enabled")

    @pytest.mark.parametrize(
        ("model", "wish", "sent"),
        [
            ("claude-opus-4-6", "xhigh", "max"),
            ("claude-opus-4-7", "xhigh", "xhigh"),
            ("claude-opus-5-5", "minimal", "low"),
            ("claude-fable-5-2", "max", "max"),
        ],
    )
    def test_a_level_the_model_does_not_take_becomes_the_next_one(self, model: str, wish: str, sent: str) -> None:
        body = self.body(request(user("x"), model=model, reasoning=wish, max_output=16_000))
        assert body["output_config"] == {"effort": sent}

    @pytest.mark.parametrize(
        ("types", "wish", "kind"),
        [
            ({"adaptive", "disabled"}, "high", "adaptive"),
            ({"adaptive", "disabled"}, "off", "disabled"),
            ({"adaptive"}, "off", "adaptive"),
            ({"enabled", "disabled"}, "high", "enabled"),
            ({"enabled", "disabled"}, None, None),
            ({"disabled"}, "high", None),
        ],
    )
    def test_the_server_knows_better_than_the_name(self, types: set[str], wish: str | None, kind: str | None) -> None:
        for model in ("claude-sonnet-4-5", "claude-opus-5-5", "one-of-tomorrow"):
            body = self.body(request(user("x"), model=model, reasoning=wish, max_output=16_000), types=frozenset(types))
            assert body.get("thinking", {}).get("type") == kind

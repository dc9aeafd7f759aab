"""What servers that speak a dialect do differently, each seen somewhere."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.messages import assistant
from tests.providers.collect import collect
from tests.providers.replay import Answer
from tests.providers.serving import ANTHROPIC, CHAT, DIALECTS, REQUEST, USAGE, chunk, pieces, serving
from tests.providers.wire_values import TOOL
from tui.messages import Usage
from tui.providers.base import StreamEnd, TextDelta
from tui.providers.config import Dialect


class TestChatQuirks:
    async def test_usage_after_the_finish_reason_and_in_a_chunk_without_choices(self) -> None:
        async with serving("openai-chat") as (server, provider):
            server.stream(*CHAT)
            got = await collect(provider, REQUEST)
        assert got.usage == Usage(9, 2)

    async def test_cumulative_usage_in_every_chunk(self) -> None:
        def usage(output: int) -> dict[str, int]:
            return {"prompt_tokens": 9, "completion_tokens": output}

        async with serving("openai-chat") as (server, provider):
            server.stream(
                *(chunk("x", usage=usage(count)) for count in range(1, 101)), chunk(finish="stop", usage=usage(100))
            )
            got = await collect(provider, REQUEST)
        assert got.usage == Usage(9, 100)

    @pytest.mark.parametrize(
        ("reason", "kind"),
        [("error", "server"), ("insufficient_system_resource", "overloaded"), ("network_error", "server")],
    )
    async def test_an_end_that_is_none(self, reason: str, kind: str) -> None:
        """OpenRouter, DeepSeek, Z.ai: it looked like a whole answer."""
        async with serving("openai-chat") as (server, provider):
            server.stream(chunk("Hel"), chunk(finish=reason), USAGE)
            got = await collect(provider, REQUEST)
        assert (got.text, got.end, got.usage) == ("Hel", None, Usage(9, 2))
        assert got.error is not None and got.error.kind == kind and reason in str(got.error)

    async def test_an_error_inside_a_choice(self) -> None:
        async with serving("openai-chat") as (server, provider):
            failed = chunk("", finish="error")
            failed["choices"][0]["error"] = {"code": 429, "message": "Provider is rate limited"}
            server.stream(chunk("Hel"), failed)
            got = await collect(provider, REQUEST)
        assert (got.text, got.end) == ("Hel", None)
        assert got.error is not None and got.error.kind == "rate_limit"

    async def test_no_usage_is_none(self) -> None:
        async with serving("openai-chat") as (server, provider):
            server.stream(
                chunk("x", usage=None), chunk(finish="stop", usage={"prompt_tokens": 0, "completion_tokens": 0})
            )
            got = await collect(provider, REQUEST)
        assert got.usage is None

    @pytest.mark.parametrize("status", [400, 422])
    async def test_a_server_that_refuses_include_usage_is_asked_without_it_from_then_on(self, status: int) -> None:
        refusal = {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}
        async with serving("openai-chat") as (server, provider):
            server.json(refusal, status)
            server.stream(*CHAT[:3])
            first = await collect(provider, REQUEST)
            second = await collect(provider, REQUEST)
            sent = ["stream_options" in item.body for item in server.requests]
        assert first.text == second.text == "Hello"
        assert sent == [True, False, False]

    async def test_another_400_is_not_repeated(self) -> None:
        async with serving("openai-chat") as (server, provider):
            server.json({"error": {"message": "roles must alternate"}}, 400)
            got = await collect(provider, REQUEST)
            assert len(server.requests) == 1
        assert got.error is not None and got.error.kind == "bad_request"

    async def test_a_refusal_that_stays_is_not_repeated_for_ever(self) -> None:
        async with serving("openai-chat") as (server, provider):
            server.json({"error": {"message": "unknown field"}}, 400)
            got = await collect(provider, REQUEST)
            assert len(server.requests) == 2
        assert got.error is not None

    async def test_the_other_name_of_max_tokens(self) -> None:
        words = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        async with serving("openai-chat") as (server, provider):
            server.json({"error": {"message": words}}, 400)
            server.stream(*CHAT)
            got = await collect(provider, REQUEST)
            assert server.requests[1].body["max_completion_tokens"] == 100
            assert "max_tokens" not in server.requests[1].body
        assert got.text == "Hello"

    async def test_odd_chunks_do_no_harm(self) -> None:
        odd: list[Any] = [
            {"choices": None},
            {"choices": [{"index": 0, "delta": None}]},
            {"choices": [{}]},
            {"choices": [{"delta": {"content": None, "tool_calls": None, "reasoning_details": None}}]},
            {"choices": [{"delta": {"tool_calls": [None, {"index": 0, "function": None}]}}]},
            {"x": 1},
            [1, 2],
            "text",
            None,
            7,
        ]
        async with serving("openai-chat") as (server, provider):
            server.stream(*odd, *CHAT)
            got = await collect(provider, REQUEST)
        assert got.error is None
        assert got.text == "Hello"

    @pytest.mark.parametrize(
        ("calls", "expected"),
        [
            pytest.param(
                [
                    {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x"'}},
                    {"index": 0, "function": {"arguments": ":1}"}},
                    {"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}},
                ],
                [("a", "f", '{"x":1}'), ("b", "g", "{}")],
                id="as promised",
            ),
            pytest.param(
                [
                    {"id": "a", "function": {"name": "f", "arguments": "{"}},
                    {"id": "a", "function": {"name": "f", "arguments": "}"}},
                    {"id": "b", "function": {"name": "g", "arguments": "{}"}},
                ],
                [("a", "f", "{}"), ("b", "g", "{}")],
                id="no index, repeated id and name",
            ),
            pytest.param(
                [
                    {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}},
                    {"index": 0, "id": "b", "function": {"name": "f", "arguments": '{"y":2}'}},
                ],
                [("a", "f", "{}"), ("b", "f", '{"y":2}')],
                id="every call is number 0",
            ),
            pytest.param(
                [{"function": {"name": "f", "arguments": "{"}}, {"function": {"arguments": "}"}}],
                [("", "f", "{}")],
                id="neither index nor id",
            ),
            pytest.param(
                [{"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": 1}}}],
                [("a", "f", '{"x": 1}')],
                id="arguments as an object",
            ),
        ],
    )
    async def test_tool_calls(self, calls: list[dict[str, Any]], expected: list[tuple[str, str, str]]) -> None:
        chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in calls]
        async with serving("openai-chat") as (server, provider):
            server.stream(*chunks, chunk(finish="tool_calls"))
            got = await collect(provider, REQUEST)
        assert [(call.id, call.name, call.arguments) for call in got.calls.values()] == expected
        assert got.end == StreamEnd("tool_calls", "tool_calls")

    @pytest.mark.parametrize(
        "delta",
        [
            {"reasoning_content": "hm"},
            {"reasoning": "hm"},
            {"reasoning_text": "hm"},
            {"reasoning_content": "hm", "reasoning": "hm"},
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
            {"reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0}]},
            {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0}]},
        ],
    )
    async def test_reasoning_under_every_name(self, delta: dict[str, Any]) -> None:
        async with serving("openai-chat") as (server, provider):
            server.stream({"choices": [{"delta": delta}]}, *CHAT)
            got = await collect(provider, REQUEST)
        assert (got.thoughts, got.text) == ("hm", "Hello")

    async def test_openrouters_details_are_kept_whole(self) -> None:
        pieces: list[dict[str, Any]] = [
            {"type": "reasoning.text", "index": 0, "text": "a", "format": "anthropic-claude-v1"},
            {"type": "reasoning.text", "index": 0, "text": "b"},
            {"type": "reasoning.text", "index": 0, "signature": "sig"},
            {"type": "reasoning.encrypted", "index": 1, "data": "x", "id": "r1"},
            {"type": "reasoning.encrypted", "index": 1, "data": "y", "id": "r2"},
        ]
        chunks = [{"choices": [{"delta": {"reasoning_details": [piece]}}]} for piece in pieces]
        async with serving("openai-chat") as (server, provider):
            server.stream(*chunks, *CHAT)
            got = await collect(provider, REQUEST)
        assert got.thoughts == "ab"
        details = json.loads(got.meta[0][-1].details or "")
        assert details == [
            {"type": "reasoning.text", "index": 0, "text": "ab", "format": "anthropic-claude-v1", "signature": "sig"},
            {"type": "reasoning.encrypted", "index": 1, "data": "x", "id": "r1"},
            {"type": "reasoning.encrypted", "index": 1, "data": "y", "id": "r2"},
        ]

    @pytest.mark.parametrize(
        ("reason", "kind"),
        [
            ("length", "length"),
            ("max_tokens", "length"),
            ("content_filter", "content_filter"),
            ("function_call", "tool_calls"),
            ("eos", "stop"),
            ("sensitive", "content_filter"),
            ("something_new", "other"),
            ("model_context_window_exceeded", "window_full"),
        ],
    )
    async def test_finish_reasons(self, reason: str, kind: str) -> None:
        async with serving("openai-chat") as (server, provider):
            server.stream(chunk("x"), chunk(finish=reason))
            got = await collect(provider, REQUEST)
        assert got.end is not None
        assert (got.end.kind, got.end.raw) == (kind, reason)

    async def test_organisation_headers_go_to_nobody_else(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-secret")
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
        async with serving("openai-chat") as (server, provider):
            server.stream(*CHAT)
            assert (await collect(provider, REQUEST)).text == "Hello"
            assert "secret" not in str(server.requests[0].headers)

    async def test_proxies_of_the_environment_are_not_asked_for_this_machine(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        for dialect in DIALECTS:
            async with serving(dialect) as (server, provider):
                server.answers.append(Answer(pieces(dialect)))
                assert (await collect(provider, REQUEST)).text == "Hello"


class TestAnthropicQuirks:
    async def test_blocks_that_are_open_together(self) -> None:
        """As llama.cpp sends them: deltas for an earlier block after a later one began, all stops at the end."""

        def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
            return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}

        def start(index: int, **block: Any) -> dict[str, Any]:
            return {"type": "content_block_start", "index": index, "content_block": block}

        events = [
            ANTHROPIC[0],
            start(0, type="thinking", thinking=""),
            delta(0, "thinking_delta", thinking="hm"),
            start(1, type="text", text=""),
            delta(1, "text_delta", text="Hel"),
            start(2, type="tool_use", id="c1", name="look", input={}),
            delta(2, "input_json_delta", partial_json='{"a":'),
            delta(1, "text_delta", text="lo"),
            delta(2, "input_json_delta", partial_json="1}"),
            delta(0, "signature_delta", signature=""),
            *({"type": "content_block_stop", "index": index} for index in range(3)),
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
            {"type": "message_stop"},
        ]
        async with serving("anthropic") as (server, provider):
            server.stream(*events, named=True, done=False)
            got = await collect(provider, REQUEST)
        assert (got.thoughts, got.text) == ("hm", "Hello")
        assert [(call.id, call.name, call.arguments) for call in got.calls.values()] == [("c1", "look", '{"a":1}')]
        assert [meta.signature for meta in got.meta[0]] == [""]
        assert {event.block for event in got.events if isinstance(event, TextDelta)} == {1}

    @pytest.mark.parametrize(("counts", "usage"), [(True, Usage(9, 2)), (False, Usage(None, 2))])
    async def test_a_stream_without_its_beginning(self, counts: bool, usage: Usage) -> None:
        """llama.cpp, now and then: the input is asked for, where there is a route for it."""
        async with serving("anthropic") as (server, provider):
            server.stream(*ANTHROPIC[1:], named=True, done=False)
            server.json(
                {"input_tokens": 9} if counts else {"error": "no"},
                200 if counts else 404,
                path="/v1/messages/count_tokens",
            )
            got = await collect(provider, REQUEST)
        assert (got.text, got.usage) == ("Hello", usage)
        assert isinstance(got.events[-1], StreamEnd)

    async def test_usage_is_replaced_not_added(self) -> None:
        events = [dict(event) for event in ANTHROPIC]
        events[0] = {"type": "message_start", "message": {"usage": {"input_tokens": 500, "output_tokens": 1}}}
        events[6] = {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"input_tokens": 500, "output_tokens": 40},
        }
        async with serving("anthropic") as (server, provider):
            server.stream(*events, named=True, done=False)
            got = await collect(provider, REQUEST)
        assert got.usage == Usage(500, 40)

    @pytest.mark.parametrize(
        ("reason", "kind"),
        [
            ("max_tokens", "length"),
            ("tool_use", "tool_calls"),
            ("model_context_window_exceeded", "window_full"),
            ("refusal", "refusal"),
            ("pause_turn", "paused"),
            ("brand_new", "other"),
        ],
    )
    async def test_stop_reasons(self, reason: str, kind: str) -> None:
        events = [*ANTHROPIC[:6], {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {}}]
        async with serving("anthropic") as (server, provider):
            server.stream(*events, named=True, done=False)
            got = await collect(provider, REQUEST)
        assert got.end is not None
        assert (got.end.kind, got.end.raw) == (kind, reason)

    async def test_the_key_and_both_headers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MY_KEY", "key-123456")
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "other-secret")
        async with serving("anthropic", key_env=("MY_KEY",)) as (server, provider):
            server.stream(*ANTHROPIC, named=True, done=False)
            await collect(provider, REQUEST)
            headers = server.requests[0].headers
        assert (headers["authorization"], headers["x-api-key"]) == ("Bearer key-123456", "key-123456")
        assert "other-secret" not in str(headers)


async def test_an_organisation_that_is_not_verified_gets_what_it_may() -> None:
    """Without the thoughts in short, and whole instead of in pieces; asked for once."""
    what = "Your organization must be verified to {}. Please go to: https://platform.openai.com/settings"
    whole = {
        "object": "response",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "Hello"}]}],
    }
    wish = replace(REQUEST, model="gpt-5.6", reasoning="low")
    async with serving("openai-responses", official=True) as (server, provider):
        for doing in ("generate reasoning summaries", "stream this model"):
            server.json({"error": {"message": what.format(doing), "code": "unsupported_value"}}, 400)
        server.json(whole)
        first, second = await collect(provider, wish), await collect(provider, wish)
        sent = [(item.body["stream"], item.body["reasoning"]) for item in server.requests]
    assert (first.text, second.text, first.error) == ("Hello", "Hello", None)
    plain = {"effort": "low"}
    assert sent == [(True, {"summary": "auto", **plain}), (True, plain), (False, plain), (False, plain)]


@pytest.mark.parametrize(
    "refusal",
    [
        "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
        "adaptive thinking is not supported on this model",
        "Extra inputs are not permitted",
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_effort_that_is_refused_is_left_out_from_then_on(dialect: Dialect, refusal: str) -> None:
    """Summaries ask for none ("off"), which many models do not take."""
    wish = replace(REQUEST, reasoning="off")
    async with serving(dialect) as (server, provider):
        refusals = 1 + (dialect == "openai-chat" and refusal.startswith("Extra"))  # that may mean `stream_options` too
        for _ in range(refusals):
            server.json({"error": {"message": refusal, "type": "invalid_request_error"}}, 400)
        server.answers.append(Answer(pieces(dialect)))
        first, second = await collect(provider, wish), await collect(provider, wish)
        sent = [bool({"reasoning", "reasoning_effort", "thinking"} & item.body.keys()) for item in server.requests]
        assert "stream_options" in server.requests[-1].body or dialect != "openai-chat"
        assert provider.learned("m") == ("It takes no reasoning effort",)
        assert provider.effort_sent("m", "off") is None
        provider.forget("m")
        assert (provider.learned("m"), provider.effort_sent("m", "off")) == ((), "off")
    assert (first.text, second.text, first.error) == ("Hello", "Hello", None)
    assert sent == [True] * refusals + [False, False]


@pytest.mark.parametrize(
    ("wish", "refusal", "sent"),
    [
        (
            "off",
            "Unsupported value: 'none' is not supported with this model. Supported values are: 'low' and 'high'.",
            "low",
        ),
        ("minimal", "`reasoning_effort` must be one of `low`, `medium`, or `high`", "low"),
        ("off", "Reasoning is mandatory for this endpoint and cannot be disabled.", "low"),
        (
            "max",
            "Unsupported value: 'reasoning_effort' does not support 'max' with this model. Supported values are: "
            "'none', 'low', 'medium', 'high', and 'xhigh'.",
            "xhigh",
        ),
    ],
)
async def test_a_refused_level_becomes_the_nearest_one_that_is_taken(wish: str, refusal: str, sent: str) -> None:
    """Never the default of the provider, which may think much longer than what was wished."""
    async with serving("openai-chat") as (server, provider):
        server.json({"error": {"message": refusal, "type": "invalid_request_error"}}, 400)
        server.answers.append(Answer(pieces("openai-chat")))
        for _ in range(2):
            got = await collect(provider, replace(REQUEST, reasoning=wish))
            assert got.text == "Hello"
        assert [item.body["reasoning_effort"] for item in server.requests] == [
            "none" if wish == "off" else wish,
            sent,
            sent,
        ]
        assert provider.effort_sent("m", wish) == sent
        [line] = provider.learned("m")
        assert line.startswith("It takes the reasoning efforts")


async def test_tools_and_reasoning_that_exclude_each_other_cost_the_reasoning_and_nothing_else() -> None:
    """OpenAI's gpt-5.4 to 5.6 over Chat Completions refuse tools even where no effort was sent."""
    refusal = "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use "
    refusal += "function tools, use /v1/responses or set reasoning_effort to 'none'."
    offered = replace(REQUEST, tools=(TOOL,))
    async with serving("openai-chat") as (server, provider):
        server.json({"error": {"message": refusal, "type": "invalid_request_error"}}, 400)
        server.answers.append(Answer(pieces("openai-chat")))
        for wish in (None, "high"):
            got = await collect(provider, replace(offered, reasoning=wish))
            assert got.text == "Hello"
        await collect(provider, replace(REQUEST, reasoning="high"))
        sent = [(len(item.body.get("tools", ())), item.body.get("reasoning_effort")) for item in server.requests]
        assert sent == [(1, None), (1, "none"), (1, "none"), (0, "high")]
        [line] = provider.learned("m")
        assert 'kind = "openai"' in line


@pytest.mark.parametrize(
    "refusal",
    ["roles must alternate", "The content[].thinking in the thinking mode must be passed back to the API."],
)
async def test_another_refusal_is_not_taken_for_one_of_the_effort(refusal: str) -> None:
    async with serving("openai-chat") as (server, provider):
        server.json({"error": {"message": refusal, "type": "invalid_request_error"}}, 400)
        got = await collect(provider, replace(REQUEST, reasoning="low"))
        assert len(server.requests) == 1
    assert got.error is not None and got.error.kind == "bad_request"


@pytest.mark.parametrize(
    "refusal",
    [
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
    ],
)
async def test_a_server_that_wants_a_thought_with_every_answer_gets_one(refusal: str) -> None:
    """DeepSeek and Kimi behind an address of one's own."""
    talk = replace(
        REQUEST, messages=(*REQUEST.messages, assistant("y"), *REQUEST.messages), tools=(TOOL,), reasoning="low"
    )
    async with serving("openai-chat") as (server, provider):
        server.json({"error": {"message": refusal, "type": "invalid_request_error"}}, 400)
        server.answers.append(Answer(pieces("openai-chat")))
        first, second = await collect(provider, talk), await collect(provider, talk)
        sent = [
            (item.body["messages"][1].get("reasoning_content"), "reasoning_effort" in item.body)
            for item in server.requests
        ]
    assert (first.text, second.text) == ("Hello", "Hello")
    assert sent == [(None, True), (" ", True), (" ", True)]


async def test_once_an_answer_has_begun_it_is_not_asked_for_again() -> None:
    async with serving("openai-chat") as (server, provider):
        server.stream(chunk("Hel"), {"error": {"message": "reasoning effort", "type": "invalid_request_error"}})
        got = await collect(provider, replace(REQUEST, reasoning="low"))
        assert len(server.requests) == 1
    assert got.text == "Hel" and got.error is not None and got.error.kind == "bad_request"


@pytest.mark.parametrize(
    "refusal",
    ["thinking.adaptive.display: Extra inputs are not permitted", "thinking: adaptive thinking is not supported here"],
)
async def test_a_gateway_that_does_not_know_adaptive_thinking_is_asked_without_it(refusal: str) -> None:
    """Claude from 5.0 on is asked to show its thinking, also where nobody wished for an effort."""
    request = replace(REQUEST, model="claude-opus-5")
    async with serving("anthropic") as (server, provider):
        server.json({"type": "error", "error": {"type": "invalid_request_error", "message": refusal}}, 400)
        server.answers.append(Answer(pieces("anthropic")))
        first, second = await collect(provider, request), await collect(provider, request)
        assert ["thinking" in item.body for item in server.requests] == [True, False, False]
        assert provider.learned("claude-opus-5") == ("It takes no reasoning effort",)
    assert (first.text, second.text) == ("Hello", "Hello")

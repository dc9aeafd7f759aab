"""Answers, model lists and errors with one value replaced by another kind: never more than a classified error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import pytest

from tests.messages import user
from tests.providers.collect import collect
from tests.providers.replay import Answer
from tests.providers.serving import ANTHROPIC, DIALECTS, REQUEST, chunk, pieces, serving
from tui.messages import Usage
from tui.providers import discovery
from tui.providers.base import (
    ModelNamed,
    ProviderError,
    ReasoningDelta,
    SourceCited,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)
from tui.providers.config import Dialect
from tui.providers.dialects.anthropic import AnthropicReader
from tui.providers.dialects.openai_chat import ChatReader
from tui.providers.dialects.openai_responses import ResponsesReader
from tui.providers.http.errors import classify_error
from tui.providers.text_repairs import SurrogateJoiner

ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    3.5,
    float("inf"),
    float("nan"),
    10**30,
    "",
    "²",
    "9" * 5000,
    [[]],
    {"text": {}},
)

CHAT: Any = {
    "choices": [
        {
            "delta": {
                "content": [{"type": "thinking", "thinking": [{"text": "a"}]}, {"type": "text", "text": "b"}],
                "reasoning_details": [{"type": "reasoning.text", "text": "a", "index": 0, "id": "x"}],
                "tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}],
                "annotations": [{"type": "url_citation", "url_citation": {"url": "u", "title": "t", "content": "c"}}],
                "audio": {"transcript": "a"},
                "images": [{"type": "image_url"}],
            },
            "finish_reason": "stop",
        }
    ],
    "citations": ["u", {"url": "u", "title": "t"}],
    "search_results": [{"url": "u", "title": "t"}],
    "service_tier": "flex",
    "usage": {
        "prompt_tokens": 1,
        "total_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 3},
        "cost": 0.1,
        "is_byok": True,
        "cost_details": {"upstream_inference_cost": 0.1},
    },
}
MESSAGES: Any = [
    {"type": "message_start", "message": {"usage": {"input_tokens": 9, "cache_read_input_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "input": {"a": 1}}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "server_tool_use", "id": "s", "input": {}}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "citations": [{"url": "u"}]}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "citations_delta", "citation": {"url": "u"}}},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "refusal", "stop_details": {"explanation": "e", "category": "c"}},
        "context_management": {"applied_edits": [{"cleared_input_tokens": 4, "cleared_tool_uses": 1}]},
        "usage": {
            "input_tokens": 1,
            "cache_creation_input_tokens": 1,
            "cache_creation": {"ephemeral_1h_input_tokens": 1},
            "server_tool_use": {"web_search_requests": 1},
            "speed": "fast",
            "iterations": [{"type": "message"}],
        },
    },
]
RESPONSES: Any = [
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "function_call", "call_id": "c"}},
    {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "i", "delta": "{}"},
    {
        "type": "response.output_item.done",
        "output_index": 1,
        "item": {"type": "reasoning", "id": "r", "summary": [{"text": "x"}], "encrypted_content": "e"},
    },
    {"type": "response.output_text.annotation.added", "annotation": {"type": "url_citation", "url": "u", "title": "t"}},
    {
        "type": "response.output_item.done",
        "output_index": 2,
        "item": {
            "type": "message",
            "phase": "final_answer",
            "content": [{"text": "x", "annotations": [{"url": "u"}]}, {"type": "refusal", "refusal": "n"}],
        },
    },
    {
        "type": "response.incomplete",
        "response": {"incomplete_details": {"reason": "x"}, "usage": {"input_tokens": 3, "input_tokens_details": {}}},
    },
]
LIST: Any = {
    "data": [
        {
            "id": "m",
            "aliases": ["a"],
            "context_length": "4096",
            "limits": {"max_prompt_tokens": 4},
            "pricing": {"prompt": "0.1", "completion": "0.2"},
            "architecture": {"input_modalities": ["image"]},
            "capabilities": {
                "vision": True,
                "effort": {"low": {"supported": True}},
                "thinking": {"types": {"a": True}},
            },
            "supported_efforts": ["low", {"effort": "high"}],
            "reasoning": {"supported_efforts": ["none"]},
        }
    ]
}
ERROR: Any = {"error": {"message": "too long", "code": "500", "n_ctx": 4, "details": [{"retryDelay": "3s"}]}}


def variants(value: Any) -> Iterator[Any]:
    """`value` with each of its inner values replaced by each odd one."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, old in list(inner):
        for new in (*ODD, *variants(old)):
            changed = value.copy()
            changed[key] = new
            yield changed


@pytest.mark.parametrize(
    ("reader", "events"),
    [(ChatReader, [CHAT]), (AnthropicReader, MESSAGES), (ResponsesReader, RESPONSES)],
    ids=["chat", "messages", "responses"],
)
def test_answers(reader: Callable[[], Any], events: list[Any]) -> None:
    for changed in variants(events):
        reading = reader()
        try:
            for event in changed:
                if isinstance(event, dict):
                    list(reading.feed(event))
            list(reading.finish())
        except ProviderError:
            pass  # a classified error is an answer too


def test_model_lists() -> None:
    for changed in variants(LIST):
        entries = discovery.model_entries(changed)
        discovery.find_entry(entries, "another")
        for entry in entries:
            info = discovery.entry_info(entry)
            limits = info.limits
            json.dumps(asdict(info))
            assert limits is None or limits.context is None or 0 < limits.context < 10**13


@pytest.mark.slow
def test_errors() -> None:
    for changed in variants(ERROR):
        assert str(classify_error(400, changed))
    for digits in ("9" * 5000, ",", "_"):
        error = classify_error(400, {"error": {"message": f"maximum context length is {digits} tokens"}})
        assert (error.kind, error.limit) == ("overflow_input", None)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("body", [b"9" * 5000, b"[" * 100_000], ids=["a huge number", "deep lists"])
async def test_json_that_python_does_not_take(dialect: Dialect, body: bytes) -> None:
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer([b"event: message_start\ndata: " + body + b"\n\n"]))
        got = await collect(provider, REQUEST)
    assert got.error is not None and got.error.kind == "protocol" and "broken JSON" in str(got.error)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_half_a_character_is_no_reason_not_to_send(dialect: Dialect) -> None:
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer(pieces(dialect)))
        got = await collect(provider, replace(REQUEST, messages=(user("a\ud83d\ude00b\udc00c"),)))
        sent = json.dumps(server.requests[0].body, ensure_ascii=False)
    assert (got.text, got.error) == ("Hello", None)
    assert "a\U0001f600b\ufffdc" in sent


HALVES = [["a \ud83d", "\ude00 b"], ["a ", "\ud83d", "\ude00", " b"], ["a \ud83d\ude00 b"]]


@pytest.mark.parametrize("pieces_", HALVES)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_character_that_comes_in_two_halves_is_one(dialect: Dialect, pieces_: list[str]) -> None:
    payloads: dict[str, list[Any]] = {
        "openai-chat": [chunk(text) for text in pieces_],
        "anthropic": [
            ANTHROPIC[1],
            *(
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
                for text in pieces_
            ),
        ],
        "openai-responses": [
            {"type": "response.output_text.delta", "output_index": 0, "delta": text} for text in pieces_
        ],
    }
    async with serving(dialect) as (server, provider):
        server.stream(*payloads[dialect], named=True)
        got = await collect(provider, REQUEST)
    assert got.text == "a \U0001f600 b"


def test_half_a_character_waits_only_for_its_own_part() -> None:
    joiner = SurrogateJoiner()

    def read(*events: StreamEvent) -> list[StreamEvent]:
        return [one for event in events for one in joiner.read(event)]

    call = ToolCallDelta(0, "id", "f", '{"a": "\ud83d')
    assert read(call, ToolCallDelta(0, arguments='\ude00"}')) == [
        ToolCallDelta(0, "id", "f", '{"a": "'),
        ToolCallDelta(0, arguments='\U0001f600"}'),
    ]
    assert read(ReasoningDelta("x\ud83d"), TextDelta("\ude00y")) == [
        ReasoningDelta("x"),
        ReasoningDelta("\ufffd"),
        TextDelta("\ufffdy"),
    ]
    beside = UsageUpdate(Usage(1, 1)), SourceCited("https://example.com"), ModelNamed("m")
    assert read(TextDelta("\ud83d"), *beside, TextDelta("\ude00")) == [*beside, TextDelta("\U0001f600")]
    assert read(TextDelta("\ud83d"), TextDelta("z")) == [TextDelta("\ufffdz")]
    assert [*read(TextDelta("end\ud83d")), *joiner.rest(), *joiner.rest()] == [TextDelta("end"), TextDelta("\ufffd")]

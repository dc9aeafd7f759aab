"""Answers under HTTP 200 that are no stream although one was asked for."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest

from tests.providers.collect import Answer as Got
from tests.providers.collect import collect
from tests.providers.replay import Answer
from tests.providers.serving import DIALECTS, REQUEST, pieces, serving
from tui.messages import Usage
from tui.providers.base import ErrorKind, ProviderError, TextDelta
from tui.providers.config import Dialect

CALL = {"name": "look", "arguments": '{"path": "a"}'}
WHOLE: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "choices": [
            {
                "message": {"content": "Hello", "tool_calls": [{"id": "c1", "type": "function", "function": CALL}]},
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2},
    },
    "anthropic": {
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "Hello"},
            {"type": "tool_use", "id": "c1", "name": "look", "input": {"path": "a"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 9, "output_tokens": 2},
    },
    "openai-responses": {
        "object": "response",
        "status": "completed",
        "output": [
            {"type": "message", "id": "m1", "content": [{"type": "output_text", "text": "Hello"}]},
            {"type": "function_call", "call_id": "c1", **CALL},
        ],
        "usage": {"input_tokens": 9, "output_tokens": 2},
    },
}


async def answered(dialect: Dialect, text: str, content_type: str = "application/json") -> Got:
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer([text.encode()], content_type=content_type))
        return await collect(provider, REQUEST)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_answer_that_comes_whole(dialect: Dialect) -> None:
    got = await answered(dialect, json.dumps(WHOLE[dialect]))
    assert (got.text, got.error, got.usage) == ("Hello", None, Usage(9, 2))
    assert got.end is not None and got.end.kind == "tool_calls"
    (call,) = got.calls.values()
    assert (call.id, call.name, json.loads(call.arguments)) == ("c1", "look", {"path": "a"})


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ('{"error": {"message": "model is loading", "type": "server_error"}}', "server", "model is loading"),
        ('{"code": 500, "msg": "404 NOT_FOUND", "success": false}', "server", "404 NOT_FOUND"),  # Z.ai
        ('{"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}', "overflow_input", "too long"),
        ('{"base_resp": {"status_code": 1004, "status_msg": "login fail"}}', "protocol", "not an answer (login fail)"),
        ('{"error": {"message": "The moon is full"}}', "unknown", "The moon is full"),
        ('{"status": "ok"}', "protocol", "Check base_url"),
        ("[1, 2", "protocol", "broken JSON"),
        ("<html><head><title>Sign \x1b[31min</title></head></html>", "protocol", "a web page (Sign in)"),
        ("<!doctype html><body>Hello</body>", "protocol", "a web page: it is not an API"),
        (" \n{}", "protocol", "Check base_url"),
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_is_no_answer_says_what_it_is(dialect: Dialect, text: str, kind: ErrorKind, words: str) -> None:
    got = await answered(dialect, text, "text/html; charset=x-none" if text.startswith("<") else "application/json")
    assert (got.text, got.end) == ("", None)
    assert got.error is not None and got.error.kind == kind and words in str(got.error)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_stream_under_another_name_is_one(dialect: Dialect) -> None:
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer(pieces(dialect), content_type="application/json"))
        got = await collect(provider, REQUEST)
    assert (got.text, got.error) == ("Hello", None)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_it_arrives_piece_by_piece_all_the_same(dialect: Dialect) -> None:
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer(pieces(dialect)[:-2], content_type="application/json", end="hang"))
        async with asyncio.timeout(20), aclosing(provider.stream(REQUEST)) as answer:
            while not isinstance(await anext(answer), TextDelta):
                pass


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_page_is_no_list_of_models(dialect: Dialect) -> None:
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer([b"<html><title>Welcome</title></html>"], content_type="text/html"))
        with pytest.raises(ProviderError, match=r"a web page \(Welcome\)"):
            await provider.models()

"""Answers under HTTP 200 that are no stream although one was asked for, and requests that get none."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from contextlib import aclosing
from typing import Any

import httpx2
import pytest

from tests.providers.collect import Answer as Got
from tests.providers.collect import collect
from tests.providers.replay import Answer
from tests.providers.serving import DIALECTS, REQUEST, pieces, serving
from tui.messages import Usage
from tui.providers.base import ErrorKind, ProviderError, TextDelta
from tui.providers.config import Dialect, ProviderConfig
from tui.providers.http.client import Client, connect
from tui.providers.http.transport import ask_json, events

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


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", "text/plain"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_answer_that_comes_whole(dialect: Dialect, content_type: str) -> None:
    got = await answered(dialect, json.dumps(WHOLE[dialect]), content_type)
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
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_is_no_answer_says_what_it_is(
    dialect: Dialect, stream: bool, text: str, kind: ErrorKind, words: str
) -> None:
    own_type = "text/html; charset=x-none" if text.startswith("<") else "application/json"
    got = await answered(dialect, text, "text/event-stream" if stream else own_type)
    assert (got.text, got.end) == ("", None)
    assert got.error is not None and got.error.kind == kind and words in str(got.error)


@pytest.mark.parametrize("missing", [b"\n", b"\n\n", b"}\n\n"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_last_event_may_lack_its_blank_line_but_not_its_end(dialect: Dialect, missing: bytes) -> None:
    last = {"openai-chat": -1, "anthropic": -2, "openai-responses": -1}[dialect]
    *first, end = pieces(dialect)[: None if last == -1 else last + 1]
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer([*first, end.removesuffix(missing)]))
        got = await collect(provider, REQUEST)
    whole = not missing.startswith(b"}")
    assert (got.text, got.error) == ("Hello", None)
    assert (got.usage == Usage(9, 2)) is whole


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


FAILURES = [
    kind
    for kind in vars(httpx2).values()
    if isinstance(kind, type) and issubclass(kind, httpx2.RequestError) and kind is not httpx2.ProxyError
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("said", ["", "All connection attempts failed"])
@pytest.mark.parametrize("kind", FAILURES)
async def test_no_words_of_the_http_library_are_shown(kind: type[httpx2.RequestError], said: str, stream: bool) -> None:
    def fail(_: httpx2.Request) -> httpx2.Response:
        raise kind(said)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(fail)) as http:
        client = Client(ProviderConfig("p", "openai-chat", "http://own.example/v1"), http, None)
        with pytest.raises(ProviderError) as caught:
            _ = [event async for event in events(client, "/x", {})] if stream else await ask_json(client, "/x")
    text = str(caught.value)
    assert kind.__name__ not in text and (not said or said not in text) and "()" not in text
    assert text.startswith("p: ") and any(step in text for step in ("Check ", "/retry"))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "place", ["javascript:alert(1)", "mailto:me@example.com", "data:,x", "file:///x", "http://[x/"]
)
async def test_a_redirect_to_no_web_address_is_not_asked_again(dialect: Dialect, place: str) -> None:
    async with serving(dialect) as (server, provider):
        server.answers += [Answer(status=307, headers={"location": place})] * 3
        error = (await collect(provider, REQUEST)).error
    assert error is not None and error.kind == "bad_request" and "base_url" in str(error)
    assert len(server.requests) == 1


async def test_a_connection_that_failed_is_explained_in_the_words_of_the_system() -> None:
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
    client = await connect(ProviderConfig("p", "openai-chat", f"http://127.0.0.1:{port}/v1"), None)
    with pytest.raises(ProviderError, match=os.strerror(errno.ECONNREFUSED)):
        await ask_json(client, "/models")
    await client.close()

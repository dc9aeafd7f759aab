"""The adapters against a server that misbehaves in every known way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from tests.providers.collect import collect
from tests.providers.http.refusal_sentences import SENTENCES
from tests.providers.replay import Answer, End, replay_server, sse
from tests.providers.serving import ANTHROPIC, DIALECTS, REQUEST, chunk, pieces, serving
from tui.messages import Request, ToolSchema, Usage
from tui.providers.base import ProviderError, StreamEnd, StreamEvent, TextDelta
from tui.providers.config import Dialect, ProviderConfig
from tui.providers.dialects.dialect import DialectProvider, Style
from tui.providers.registry import make_provider


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_whole_answer(dialect: Dialect) -> None:
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer(pieces(dialect)))
        got = await collect(provider, REQUEST)
    assert (got.text, got.usage) == ("Hello", Usage(9, 2))
    assert got.end is not None and got.end.kind == "stop"
    assert isinstance(got.events[-1], StreamEnd)
    path = {"openai-chat": "/v1/chat/completions", "anthropic": "/v1/messages", "openai-responses": "/v1/responses"}
    assert server.requests[0].path == path[dialect]
    assert server.requests[0].body["stream"] is True


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("end", ["clean", "short", "cut"])
async def test_a_stream_without_its_end_mark_has_no_end(dialect: Dialect, end: End) -> None:
    async with serving(dialect) as (server, provider):
        server.answers.append(
            Answer(pieces(dialect, {"openai-chat": 2, "anthropic": 5, "openai-responses": 4}[dialect]), end=end)
        )
        got = await collect(provider, REQUEST)
    assert got.text == "Hello"
    assert got.end is None
    assert (got.error.kind if got.error else None) == ("network" if end == "cut" else None)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_connection_lost_after_the_end_mark_is_a_whole_answer(dialect: Dialect) -> None:
    count = {"openai-chat": 3, "anthropic": 7, "openai-responses": 5}[dialect]
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer(pieces(dialect, count), end="cut"))
        got = await collect(provider, REQUEST)
    assert got.error is None
    assert got.text == "Hello"
    assert got.end is not None and got.end.kind == "stop"


@pytest.mark.slow
@pytest.mark.parametrize("end", ["short", "cut"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_stream_cut_at_any_byte(dialect: Dialect, end: End) -> None:
    """What arrived is kept, nothing is invented, and an end is an end only if the server said so."""
    whole = b"".join(pieces(dialect))
    mark = {"openai-chat": b'"stop"', "anthropic": b'"end_turn"', "openai-responses": b'"response.completed"'}[dialect]
    async with serving(dialect) as (server, provider):
        answers = set()
        for cut in [*range(0, len(whole), 5), len(whole)]:
            server.answers[:] = [Answer([whole[:cut]] if cut else [], end=end)]
            got = await collect(provider, REQUEST)
            assert "Hello".startswith(got.text)
            assert got.error is None or got.error.kind in ("network", "protocol")
            if got.end is not None:
                assert mark in whole[:cut]
                assert got.text == "Hello"
            answers.add((got.text, got.end is not None))
    assert {("", False), ("Hel", False), ("Hello", False), ("Hello", True)} <= answers


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_broken_json_keeps_what_came_before(dialect: Dialect) -> None:
    name = b"event: content_block_delta\n" if dialect == "anthropic" else b""
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer([*pieces(dialect, 4), name + b'data: {"a": \n\n']))
        got = await collect(provider, REQUEST)
    assert got.text.startswith("Hel")
    if dialect != "openai-chat":  # its third chunk ended the answer
        assert got.error is not None and got.error.kind == "protocol"
        assert got.end is None


# What real servers send in mid-stream under HTTP 200. A name stands for the `event:` line.
FULL = "Your input exceeds the context window of this model."
MID_STREAM: list[tuple[Dialect, str, Any, str]] = [
    # Servers with formats of their own: FastAPI, DashScope, MiniMax, Qianfan, Gemini's REST API.
    *((dialect, "", {"detail": "Out of memory"}, "server") for dialect in DIALECTS),
    ("openai-chat", "", {"code": "InvalidParameter", "message": FULL, "request_id": "r"}, "overflow_input"),
    ("openai-chat", "", {"base_resp": {"status_code": 1002, "status_msg": "rate limit reached"}}, "rate_limit"),
    ("openai-chat", "", {"choices": None, "base_resp": {"status_code": 1027, "status_msg": "sensitive"}}, "unknown"),
    ("openai-chat", "", {"error_code": 336, "error_msg": FULL}, "overflow_input"),
    ("openai-chat", "", {"errors": [{"message": FULL}]}, "overflow_input"),
    ("openai-chat", "", [{"error": {"code": 503, "message": "Busy"}}], "overloaded"),
    ("openai-chat", "", "The engine stopped", "unknown"),
    ("openai-chat", "", {"error": {"code": 500, "message": "Failed to parse input", "type": "server_error"}}, "server"),
    (
        "openai-chat",
        "",
        {"error": {"code": 429, "message": "Slow"}, "choices": [{"finish_reason": "error"}]},
        "rate_limit",
    ),
    ("openai-chat", "", {"error": {"message": "Context size has been exceeded.", "code": 400}}, "overflow_input"),
    ("openai-chat", "", {"object": "error", "message": "CUDA went away", "code": 500}, "server"),
    ("anthropic", "error", {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}, "overloaded"),
    ("anthropic", "error", {"code": 500, "message": "Failed to parse input", "type": "server_error"}, "server"),
    ("openai-responses", "", {"type": "error", "code": "context_length_exceeded", "message": FULL}, "overflow_input"),
    ("openai-responses", "", {"type": "error", "error": {"code": "context_length_exceeded"}}, "overflow_input"),
    ("openai-responses", "", {"type": "response.failed", "response": {"error": {"message": FULL}}}, "overflow_input"),
    (
        "openai-responses",
        "",
        {"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded"}}},
        "rate_limit",
    ),
    ("openai-responses", "", {"type": "response.failed", "response": {"error": {"code": "server_error"}}}, "server"),
]


@pytest.mark.parametrize(("dialect", "name", "payload", "kind"), MID_STREAM)
async def test_an_error_in_mid_stream(dialect: Dialect, name: str, payload: Any, kind: str) -> None:
    wire = (f"event: {name}\n".encode() if name else b"") + sse(payload)
    count = {"openai-chat": 1, "anthropic": 4, "openai-responses": 3}[dialect]
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer([*pieces(dialect, count), wire]))
        got = await collect(provider, REQUEST)
    assert got.text == "Hel"
    assert got.end is None
    assert got.error is not None and got.error.kind == kind
    assert "no reason" not in str(got.error) or "message" not in str(payload)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_a_server_says_after_the_end_or_before_more_is_no_error(dialect: Dialect) -> None:
    remark = sse({"message": "waiting for a free slot"})
    async with serving(dialect) as (server, provider):
        for answer in ([remark, *pieces(dialect)], [*pieces(dialect, 4), remark, *pieces(dialect)[4:], remark]):
            server.answers.append(Answer(answer))
            got = await collect(provider, REQUEST)
            assert (got.text, got.error) == ("Hello", None)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_http_errors_are_classified_and_never_retried_here(dialect: Dialect) -> None:
    body = {"error": {"type": "rate_limit_error", "message": "Slow down"}}
    async with serving(dialect) as (server, provider):
        server.json(body, 429, {"retry-after": "7"})
        got = await collect(provider, REQUEST)
        assert len(server.requests) == 1
    assert got.error is not None
    assert (got.error.kind, got.error.status, got.error.retry_after) == ("rate_limit", 429, 7.0)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><title>400 Bad Request</title></html>",
        b'[{"error":{"message":"input token count (9) exceeds the maximum"}}]',
    ],
)
async def test_odd_error_bodies(dialect: Dialect, body: bytes) -> None:
    async with serving(dialect) as (server, provider):
        server.answers.append(
            Answer([body] if body else [], 400, content_type="text/html" if b"<" in body else "application/json")
        )
        error = (await collect(provider, REQUEST)).error
    assert error is not None
    assert error.kind == ("overflow_input" if b"token" in body else "bad_request")
    assert str(error).startswith("p: HTTP 400: ")
    assert "<" not in str(error)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_nobody_listens(dialect: Dialect) -> None:
    async with replay_server() as server:
        url = server.url
    provider = make_provider("p", ProviderConfig("p", dialect, f"{url}/v1"))
    try:
        error = (await collect(provider, REQUEST)).error
    finally:
        await provider.close()
    assert error is not None and error.kind == "network"
    assert url in str(error)


@pytest.mark.parametrize(
    "url", ["http://", "nonsense", "http://[::1", "ftp://127.0.0.1/v1", "http://127.0.0.1:99999/v1"]
)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_address_that_is_none(dialect: Dialect, url: str) -> None:
    provider = make_provider("p", ProviderConfig("p", dialect, url))
    try:
        error = (await collect(provider, REQUEST)).error
    finally:
        await provider.close()
    assert error is not None and error.kind in ("network", "bad_request")
    assert "base_url" in str(error)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_closing_the_stream_hangs_up(dialect: Dialect) -> None:
    count = {"openai-chat": 1, "anthropic": 4, "openai-responses": 3}[dialect]
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer(pieces(dialect, count), end="hang"))
        async with aclosing(provider.stream(REQUEST)) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
        async with asyncio.timeout(60):
            await server.hung_up.wait()


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_server_that_falls_silent_has_stalled_and_what_came_is_kept(dialect: Dialect) -> None:
    count = {"openai-chat": 1, "anthropic": 4, "openai-responses": 3}[dialect]
    async with serving(dialect, idle_timeout=0.2) as (server, provider):
        server.answers.append(Answer(pieces(dialect, count), end="hang"))
        got = await collect(provider, REQUEST)
        assert got.text == "Hel" and got.end is None
        assert got.error is not None and got.error.kind == "stalled"
        assert "sent nothing or next to nothing for 0.2 seconds" in str(got.error) and "/retry" in str(got.error)
        async with asyncio.timeout(60):
            await server.hung_up.wait()


async def test_context_management_is_asked_for_where_it_is_switched_on_and_read() -> None:
    start = {
        "type": "message_start",
        "message": {"usage": {"input_tokens": 40_000, "cache_read_input_tokens": 0, "output_tokens": 1}},
    }
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 2},
        "context_management": {
            "applied_edits": [
                {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8, "cleared_input_tokens": 50_000},
                {"type": "clear_thinking_20251015", "cleared_thinking_turns": 1, "cleared_input_tokens": 1_000},
            ]
        },
    }
    events = [start, *ANTHROPIC[1:-2], end, ANTHROPIC[-1]]
    for on in (True, False):
        async with serving("anthropic", context_management=on) as (server, provider):
            server.answers.append(Answer([sse(event, named=True) for event in (events if on else ANTHROPIC)]))
            able = provider.capabilities("claude-sonnet-5-5")
            got = await collect(provider, replace(REQUEST, server_edits=able.edits_context))
            server.json({"input_tokens": 9}, path="/v1/messages/count_tokens")
            await provider.count_tokens(replace(REQUEST, server_edits=able.edits_context))
        sent, counted = server.requests[0], server.requests[1]
        assert able.edits_context is on
        assert ("context-management" in sent.headers.get("anthropic-beta", "")) is on
        edits = [edit["type"] for edit in sent.body.get("context_management", {}).get("edits", [])]
        assert edits == (["clear_tool_uses_20250919"] if on else [])
        assert "context_management" not in counted.body  # that route does not take it: it counts the whole prompt
        usage = Usage(40_000, 2, 0, cleared=51_000, cleared_uses=8) if on else Usage(9, 2)
        assert got.usage == usage


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("always", [False, True])
async def test_a_kept_connection_that_is_closed_just_then_is_no_error(dialect: Dialect, always: bool) -> None:
    """llama.cpp closes it after a stream; the next request may be on its way already."""
    opened = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        with contextlib.closing(writer):
            for _ in range(0 if always and opened > 1 else 1):
                await reader.readuntil(b"\r\n\r\n")
                body = b'{"data": [{"id": "m"}]}'
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
                writer.write(b"content-length: %d\r\n\r\n%s" % (len(body), body))
                await writer.drain()
            await reader.read(1)  # the next request: nobody answers it

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        provider = make_provider("p", ProviderConfig("p", dialect, f"http://127.0.0.1:{port}/v1"))
        assert [model.id for model in await provider.models()] == ["m"]
        if always:
            with pytest.raises(ProviderError, match="broke"):
                await provider.models()
        else:
            assert [model.id for model in await provider.models()] == ["m"]
        await provider.close()
    assert opened == 2


async def test_usage_in_every_chunk_takes_nothing_from_the_longest_answer() -> None:
    """vLLM, xAI and Perplexity report it so; an answer of 250,000 tokens ended as too large."""
    chunks = [chunk("a", usage={"prompt_tokens": 9, "completion_tokens": number}) for number in range(1, 101)]
    async with serving("openai-chat", max_response=10_000) as (server, provider):
        server.answers.append(Answer([*map(sse, chunks), sse(chunk(finish="stop"))]))
        got = await collect(provider, REQUEST)
    assert (got.error, len(got.text), got.usage) == (None, 100, Usage(9, 100))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("effort", [None, "high"])
async def test_what_is_always_refused_is_asked_in_each_style_once(
    dialect: Dialect, effort: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers that refuse `max_tokens` and `max_completion_tokens` were asked with one and the other for ever."""
    provider = make_provider("p", ProviderConfig("p", dialect, "http://127.0.0.1:1/v1"))
    assert isinstance(provider, DialectProvider)
    tool = ToolSchema("look", "Looks.", '{"type": "object"}')
    request = replace(REQUEST, max_output=100, reasoning=effort, tools=(tool,))
    for sentence, _ in SENTENCES:
        tried: list[Style] = []

        async def refuse(
            _request: Request, style: Style, tried: list[Style] = tried, sentence: str = sentence
        ) -> AsyncGenerator[StreamEvent]:
            assert style not in tried, (sentence, style)
            tried.append(style)
            if sentence:
                raise ProviderError("bad_request", sentence)
            yield TextDelta("")

        monkeypatch.setattr(provider, "_attempt", refuse)
        assert (await collect(provider, request)).error is not None
        assert 1 <= len(tried) <= 6, sentence

"""Event streams as the standard reads them, however they are cut and whatever else is in them."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.collect import collect
from tests.providers.replay import Answer
from tests.providers.serving import DIALECTS, REQUEST, WHOLE, serving
from tui.messages import Usage
from tui.providers.base import ErrorKind
from tui.providers.config import Dialect
from tui.providers.http.sse import ServerSentEvent, SSEDecoder


def decode(*pieces: bytes) -> list[ServerSentEvent]:
    decoder = SSEDecoder(1_000_000)
    return [event for piece in pieces for event in decoder.feed(piece)]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\n", [("", "a")]),
        (b"data:a\n\ndata:  a\n\n", [("", "a"), ("", " a")]),  # one blank belongs to the field
        (b"event: x\ndata: a\ndata: b\n\n", [("x", "a\nb")]),
        (b"\xef\xbb\xbfdata: a\n\n", [("", "a")]),  # a byte order mark
        (b"data: a\r\rdata: b\r\n\r\n", [("", "a"), ("", "b")]),
        (b": a comment\n\nretry: 3000\n\nid: 7\n\nevent: ping\n\n", []),  # no data, no event
        (b"event: old\n\ndata: a\n\n", [("", "a")]),  # the name does not outlive its event
        (b"data\n\n", [("", "")]),
        (b"nonsense: x\ndata: a\n\n", [("", "a")]),
        (b"data: \xff\xfe\n\n", [("", "\ufffd\ufffd")]),
        (b"data: a", []),  # not ended
        (b"data: a\n", []),
    ],
)
def test_what_the_standard_says(stream: bytes, events: list[tuple[str, str]]) -> None:
    assert [(event.name, event.data) for event in decode(stream)] == events


LINES = st.lists(st.sampled_from(["data: é🙂", "data:", "event: x", ": c", "id: 1", "retry: 2", "", ""]), max_size=12)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@given(LINES, ENDS, st.lists(st.integers(1, 9), max_size=40))
def test_where_it_is_cut_does_not_matter(lines: list[str], end: str, sizes: list[int]) -> None:
    stream = "".join(line + end for line in lines).encode()
    pieces, rest = [], stream
    for size in sizes:
        pieces.append(rest[:size])
        rest = rest[size:]
    assert decode(*pieces, rest) == decode(stream)


def wire(dialect: Dialect, end: str = "\n") -> list[bytes]:
    """A whole answer's events."""
    named = [(f"event: {body['type']}{end}" if "type" in body else "", json.dumps(body)) for body in WHOLE[dialect]]
    return [f"{name}data: {data}{end}{end}".encode() for name, data in named]


ODD = [
    b"retry: 3000\n\n",
    b"id: 7\n: a comment\n\n",
    b"id: 7\n\n",
    b": ping\n\n",
    b"event: ping\ndata: {}\n\n",
    b"event: ping\n\n",
    b"event: ping\ndata: pong\n\n",
    b"event: heartbeat\ndata: 2026-11-28T10:00:00Z\n\n",
    b"event: x-metadata\ndata: <not json>\n\n",
    b"data:\n\n",
    b"event: content_block_delta\n\n",
    b"data: null\n\n",
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("odd", ODD)
async def test_an_odd_event_is_never_the_end_of_an_answer(dialect: Dialect, odd: bytes) -> None:
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer([odd, *(piece for event in wire(dialect) for piece in (event, odd))]))
        got = await collect(provider, REQUEST)
    assert (got.text, got.usage, got.error) == ("Hello", Usage(9, 2), None)
    assert got.end is not None and got.end.kind == "stop"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("end", ["\r", "\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
async def test_line_ends_and_byte_order_marks(dialect: Dialect, end: str, bom: bytes) -> None:
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer([bom, *wire(dialect, end)] if bom else wire(dialect, end)))
        got = await collect(provider, REQUEST)
    assert (got.text, got.usage, got.error) == ("Hello", Usage(9, 2), None)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_names_are_not_needed(dialect: Dialect) -> None:
    """Servers that speak Anthropic's dialect leave them out, or leave the type out of the data."""
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer([f"data: {json.dumps(body)}\n\n".encode() for body in WHOLE[dialect]]))
        assert (await collect(provider, REQUEST)).text == "Hello"
    if dialect == "openai-chat":
        return
    async with serving(dialect) as (server, provider):
        named = [(body["type"], {key: body[key] for key in body if key != "type"}) for body in WHOLE[dialect]]
        server.answers.append(Answer([f"event: {name}\ndata: {json.dumps(body)}\n\n".encode() for name, body in named]))
        assert (await collect(provider, REQUEST)).text == "Hello"


ERRORS: list[tuple[bytes, str, ErrorKind]] = [
    (b'event: error\ndata: {"error": {"message": "The lamp is out"}}\n\n', "The lamp is out", "unknown"),
    (b'event: error\ndata: {"error": "The lamp is out"}\n\n', "The lamp is out", "unknown"),
    (b'event: error\ndata: {"message": "The lamp is out"}\n\n', "The lamp is out", "unknown"),
    (b'event: error\ndata: {"detail": "The lamp is out"}\n\n', "The lamp is out", "unknown"),
    (b'event: error\ndata: ["The lamp is out"]\n\n', "The lamp is out", "unknown"),
    (b'event: error\ndata: "The lamp is out"\n\n', "The lamp is out", "unknown"),
    (b"event: error\ndata: The lamp is out\n\n", "The lamp is out", "unknown"),
    (b'data: {"error": "The lamp is out"}\n\n', "The lamp is out", "unknown"),
    (b'data: {"error": {"code": 429, "message": "The lamp is out"}}\n\n', "The lamp is out", "rate_limit"),
    (b'data: {"type": "error", "error": {"message": "The lamp is out"}}\n\n', "The lamp is out", "unknown"),
    (b'data: {"type": "error", "message": "The lamp is out"}\n\n', "The lamp is out", "unknown"),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("event", "words", "kind"), ERRORS)
async def test_an_error_is_what_the_server_said(dialect: Dialect, event: bytes, words: str, kind: ErrorKind) -> None:
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer([*wire(dialect)[:2], event]))
        got = await collect(provider, REQUEST)
    assert got.end is None
    assert got.error is not None and words in str(got.error) and got.error.kind == kind


@pytest.mark.parametrize(
    ("dialect", "done"),
    [*((dialect, b"data: [DONE]\n\n") for dialect in DIALECTS), ("anthropic", b""), ("openai-responses", b"")],
)
async def test_a_server_that_keeps_the_connection_open_holds_nothing_up(
    dialect: Dialect, done: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.providers.http.transport.DRAIN_TIMEOUT", 0.01)
    async with serving(dialect) as (server, provider):
        server.answers.append(Answer([*wire(dialect), *([done] if done else [])], end="hang"))
        got = await asyncio.wait_for(collect(provider, REQUEST), 30)
    assert got.text == "Hello" and got.end is not None

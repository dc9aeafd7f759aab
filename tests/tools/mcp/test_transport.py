"""Lines of a server's standard output: whole, bounded each by itself, in time that grows with their length."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from anyio.abc import ByteReceiveStream
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("mcp")

import mcp.types as types
from mcp.shared.message import SessionMessage
from mcp_types.methods import validate_server_result

from tui.providers.http.sse import TooLargeError
from tui.tools.mcp.status import TransportStatus
from tui.tools.mcp.transport import Normalizer, bounded_lines, line_limit

LIMIT = 1_000


class Pieces(ByteReceiveStream):
    """A byte stream that gives these."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = list(pieces)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        if not self._pieces:
            raise anyio.EndOfStream
        return self._pieces.pop(0)

    async def aclose(self) -> None:
        """Nothing to close."""


async def read(pieces: Sequence[bytes], limit: int = LIMIT) -> list[str]:
    status = TransportStatus()
    line_limit.set((limit, status))
    try:
        return [text async for text in bounded_lines(Pieces(pieces), "utf-8", "replace")]
    except TooLargeError:
        assert status.exceeded == limit
        raise


@pytest.mark.parametrize(
    ("pieces", "texts"),
    [
        ([b"one\ntw", b"o\n"], ["one\n", "two\n"]),
        ([b"a", b"b", b"c\nd\n"], ["abc\nd\n"]),
        (["ü\n".encode()[:1], "ü\n".encode()[1:]], ["ü\n"]),
        ([b"\xef\xbb", b"\xbfone\n"], ["one\n"]),
        ([b"one\nno end"], ["one\n"]),
        ([b"\n\n"], ["\n\n"]),
        ([b"x" * LIMIT + b"\n"] * 3, ["x" * LIMIT + "\n"] * 3),
        ([(b"x" * 900 + b"\n") * 50], [("x" * 900 + "\n") * 50]),  # many at once are no line over the limit
    ],
)
async def test_text_ends_with_a_whole_line(pieces: Sequence[bytes], texts: list[str]) -> None:
    assert await read(pieces) == texts


@pytest.mark.parametrize(
    "pieces",
    [[b"x" * (LIMIT + 1)], [b"x" * 600, b"x" * 600], [b"x" * (LIMIT + 1) + b"\n"], [b"[" + b"[]," * 300 + b"[]]\n"]],
)
async def test_a_line_over_the_limit_or_one_that_costs_as_much_is_an_error(pieces: Sequence[bytes]) -> None:
    with pytest.raises(TooLargeError):
        await read(pieces)


async def test_a_long_line_costs_what_its_length_costs() -> None:
    piece = b"x" * 10_000
    began = time.process_time()
    await read([piece] * 200 + [b"\n"], 10**9)
    short = time.process_time() - began
    began = time.process_time()
    await read([piece] * 2_000 + [b"\n"], 10**9)
    assert time.process_time() - began < 40 * max(short, 0.01)  # joined anew with each piece: 20 GB are copied


# -- whatever JSON a server answers with, the SDK takes what is left of it --------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "text", "object", "a b", "\x1b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "name", "x", "properties"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def shaped(*names: str, **more: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects with some of these members, each anything."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, JSON) | more)


TOOL = shaped(
    "title", "description", "outputSchema", "annotations", "icons", "execution", "_meta",
    name=st.just("a") | JSON, inputSchema=shaped("type", "properties", "required", "$schema", "anyOf") | JSON,
)  # fmt: skip
BLOCK = shaped(
    "text", "data", "mimeType", "resource", "uri", "name", "annotations", "_meta",
    type=st.sampled_from(["text", "image", "audio", "resource", "resource_link", "video", None, 7]),
)  # fmt: skip
ANSWERS: dict[str, tuple[type[Any], st.SearchStrategy[Any]]] = {
    "tools/list": (
        types.ListToolsResult,
        shaped("nextCursor", "_meta", "ttlMs", "cacheScope", tools=st.lists(TOOL | JSON, max_size=3) | JSON),
    ),
    "resources/list": (
        types.ListResourcesResult,
        shaped("nextCursor", "_meta", resources=st.lists(shaped("uri", "name", "size", "mimeType") | JSON, max_size=3)),
    ),
    "resources/templates/list": (
        types.ListResourceTemplatesResult,
        shaped("nextCursor", resourceTemplates=st.lists(shaped("uriTemplate", "name") | JSON, max_size=3)),
    ),
    "prompts/list": (
        types.ListPromptsResult,
        shaped("nextCursor", prompts=st.lists(shaped("name", "arguments") | JSON, max_size=3)),
    ),
    "tools/call": (
        types.CallToolResult,
        shaped("structuredContent", "isError", "_meta", content=st.lists(BLOCK | JSON, max_size=3) | JSON),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("method", ANSWERS)
@given(data=st.data())
def test_the_sdk_takes_every_answer(method: str, version: str, data: st.DataObject) -> None:
    model, strategy = ANSWERS[method]
    normalizer = Normalizer()
    normalizer._version = version
    normalizer.sent(SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=1, method=method)))
    answer = types.JSONRPCResponse(jsonrpc="2.0", id=1, result=data.draw(strategy))
    result = normalizer.received(SessionMessage(answer)).message.result
    validate_server_result(method, version, result)
    model.model_validate(result, by_name=False)

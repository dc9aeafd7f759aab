"""Whatever JSON a server answers with, the SDK takes what is left of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("mcp")

import mcp.types as types
from mcp.shared.message import SessionMessage
from mcp_types.methods import validate_server_result

from tui.tools.mcp.normalize import Normalizer

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
    "name", "title", "description", "inputSchema", "outputSchema", "annotations", "icons", "execution", "_meta",
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
    normalizer.sent(SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=1, method=method)))
    answer = types.JSONRPCResponse(jsonrpc="2.0", id=1, result=data.draw(strategy))
    result = normalizer.received(SessionMessage(answer)).message.result
    validate_server_result(method, version, result)
    model.model_validate(result, by_name=False)

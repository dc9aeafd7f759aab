"""Schemas as MCP servers write them, for servers that know few words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.collect import collect
from tests.providers.replay import Answer
from tests.providers.serving import REQUEST, pieces, serving
from tui.messages import ToolSchema
from tui.providers.plain_schema import plain_schema

ZOD: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "additionalProperties": False,
    "required": ["path"],
    "properties": {
        "path": {"type": "string", "minLength": 1, "examples": ["a"]},
        "const": {"type": "string", "description": "a field of that name"},
        "mode": {"oneOf": [{"const": "r"}, {"type": "string", "enum": ["w", "a"]}]},
        "size": {"type": ["integer", "null"], "exclusiveMinimum": 0, "enum": [1, 2]},
        "tree": {"$ref": "#/$defs/node", "description": "the root"},
        "list": {"type": "array"},
        "out": {"$ref": "https://example.com/other.json"},
    },
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "name": {"type": "string"}}}},
}


def test_what_is_left_of_a_schema() -> None:
    plain = plain_schema(ZOD)
    fields = plain["properties"]
    assert plain.keys() == {"type", "required", "properties"}
    assert fields["path"] == {"type": "string", "minLength": 1}
    assert fields["const"] == {"type": "string", "description": "a field of that name"}
    assert fields["mode"] == {"anyOf": [{"enum": ["r"]}, {"type": "string", "enum": ["w", "a"]}]}
    assert fields["size"] == {"type": "integer", "nullable": True}
    assert fields["tree"]["description"] == "the root" and fields["tree"]["properties"]["name"] == {"type": "string"}
    assert fields["list"] == {"type": "array", "items": {"type": "string"}}
    assert fields["out"] == {}
    assert "$" not in json.dumps(plain)


def test_references_do_not_multiply() -> None:
    """What goes out has to stay near what was counted: the schema as the server wrote it."""
    node = {"type": "object", "properties": {f"child{number}": {"$ref": "#/$defs/node"} for number in range(9)}}
    itself = plain_schema({"$ref": "#/$defs/node", "$defs": {"node": node}})
    assert itself == {"type": "object", "properties": {f"child{number}": {"type": "object"} for number in range(9)}}
    twice = {
        f"n{number}": {"properties": {name: {"$ref": f"#/$defs/n{number + 1}"} for name in "abcd"}}
        for number in range(12)
    }
    assert len(json.dumps(plain_schema({"$ref": "#/$defs/n0", "$defs": twice}))) < 100_000


KEYS = st.sampled_from(["type", "properties", "items", "anyOf", "oneOf", "$ref", "enum", "const", "x"])
VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=15,
)


@given(VALUES)
def test_no_schema_is_too_odd(value: object) -> None:
    plain_schema({"type": "object", "properties": {"a": value}, "$ref": value})


@pytest.mark.parametrize(
    "refusal",
    [
        "Invalid JSON payload received. Unknown name \"$schema\" at 'tools[0].function_declarations[0].parameters'",
        "Invalid request: tools.function.parameters is not a valid moonshot flavored json schema, details: <x>",
    ],
)
async def test_a_server_that_refuses_a_schema_gets_plain_ones_from_then_on(refusal: str) -> None:
    request = replace(REQUEST, tools=(ToolSchema("look", "Look", json.dumps(ZOD)),))
    async with serving("openai-chat") as (server, provider):
        server.json({"error": {"message": refusal}}, 400)
        server.answers.append(Answer(pieces("openai-chat")))
        first, second = await collect(provider, request), await collect(provider, request)
        asked = ["$schema" in item.body["tools"][0]["function"]["parameters"] for item in server.asked]
    assert (first.text, second.text) == ("Hello", "Hello")
    assert asked == [True, False, False]
    assert [item.body.get("stream_options") is not None for item in server.asked] == [True] * 3


async def test_a_schema_that_stays_refused_is_said() -> None:
    async with serving("openai-chat") as (server, provider):
        server.json({"error": {"message": "Invalid schema for function 'look': type is missing"}}, 400)
        got = await collect(provider, replace(REQUEST, tools=(ToolSchema("look", "Look", json.dumps(ZOD)),)))
        assert len(server.asked) == 2
    assert got.error is not None and "Invalid schema" in str(got.error)

"""Schemas as MCP servers write them, for servers that know few words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.collect import collect
from tests.providers.replay import Answer, ReplayServer
from tests.providers.serving import DIALECTS, REQUEST, pieces, serving
from tui.messages import ToolSchema
from tui.providers.config import Dialect
from tui.providers.dialects.openai_chat import ChatStyle, to_wire
from tui.providers.tool_schemas import object_schema, plain_schema, tool_sent

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


@pytest.mark.parametrize("combiner", ["anyOf", "oneOf", "allOf"])
def test_the_root_is_an_object_without_combiners(combiner: str) -> None:
    """OpenAI and Anthropic refuse the whole request otherwise."""
    by_id = {"type": "object", "properties": {"id": {"type": "integer"}, "why": {"type": "string"}}, "required": ["id"]}
    by_name = {"$ref": "#/$defs/named"}
    named = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    schema = {combiner: [by_id, by_name], "$defs": {"named": named}, "description": "Finds one."}
    sent = object_schema(schema)
    assert sent["type"] == "object" and not {"anyOf", "oneOf", "allOf"} & sent.keys()
    assert sent["properties"].keys() == {"id", "why", "name"}
    assert sent.get("required", []) == (["id", "name"] if combiner == "allOf" else [])
    assert sent["description"] == "Finds one."


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "string"},
        {"type": ["object", "null"]},
        {"properties": None},
        {"$ref": "#"},
        {"$ref": "#/$defs/gone"},
    ],
)
def test_a_schema_of_no_arguments_takes_none(schema: dict[str, Any]) -> None:
    sent = object_schema(schema)
    assert (sent["type"], sent["properties"]) == ("object", {})


def test_a_reference_that_leads_nowhere_may_be_anything() -> None:
    sent = object_schema(
        {
            "type": "object",
            "properties": {
                "a": {"$ref": "#/definitions/gone", "description": "lost"},
                "b": {"$ref": "https://example.com/other.json"},
                "c": {"$ref": "#/properties/d~1e/anyOf/0"},
                "d/e": {"anyOf": [{"type": "string"}]},
            },
        }
    )
    assert sent["properties"]["a"] == {"description": "lost"}
    assert sent["properties"]["b"] == {}
    assert sent["properties"]["c"] == {"$ref": "#/properties/d~1e/anyOf/0"}


def test_a_schema_that_is_fine_goes_out_as_it_is() -> None:
    fine = {key: value for key, value in ZOD.items() if key != "properties"}
    fine["properties"] = {key: value for key, value in ZOD["properties"].items() if key != "out"}
    assert object_schema(fine) == fine


@given(VALUES)
def test_whatever_a_server_wrote_becomes_an_object(value: object) -> None:
    sent = object_schema({"type": "object", "properties": {"a": value}, "anyOf": [value], "$ref": value})
    assert sent["type"] == "object" and isinstance(sent["properties"], dict)


@given(VALUES, st.booleans())
def test_what_is_counted_is_what_is_sent(value: object, plain: bool) -> None:
    tool = ToolSchema("look", "Look", json.dumps({"type": "object", "properties": {"a": value}, "anyOf": [value]}))
    style = ChatStyle(plain_schemas=plain, short_descriptions=True)
    counted = style.tool(tool)
    [sent] = to_wire(replace(REQUEST, tools=(tool,)), style)["tools"]
    assert json.loads(counted.parameters) == sent["function"]["parameters"]
    assert style.tool(counted) == counted


def test_a_tool_that_is_sent_as_it_is_stays_the_same() -> None:
    tool = ToolSchema("look", "Look", '{"properties":{"path":{"type":"string"}},"type":"object"}')
    assert tool_sent(tool, plain=False, short=False) == tool


def sent_tools(server: ReplayServer) -> list[tuple[Any, Any]]:
    """Schema and description of the tool in each request."""
    tools = []
    for request in server.requests:
        tool = request.body["tools"][0]
        tool = tool.get("function", tool)
        tools.append((tool.get("parameters", tool.get("input_schema")), tool["description"]))
    return tools


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "refusal",
    [
        "Invalid JSON payload received. Unknown name \"$schema\" at 'tools[0].function_declarations[0].parameters'",
        "Invalid request: tools.function.parameters is not a valid moonshot flavored json schema, details: <x>",
        "tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12",
        "Invalid schema for function 'look': In context=(), 'examples' is not permitted.",
    ],
)
async def test_a_server_that_refuses_a_schema_gets_plain_ones_from_then_on(refusal: str, dialect: Dialect) -> None:
    request = replace(REQUEST, tools=(ToolSchema("look", "Look", json.dumps(ZOD)),))
    async with serving(dialect) as (server, provider):
        server.json({"error": {"message": refusal, "type": "invalid_request_error"}}, 400)
        server.answers.append(Answer(pieces(dialect)))
        first, second = await collect(provider, request), await collect(provider, request)
        assert ["$schema" in schema for schema, _ in sent_tools(server)] == [True, False, False]
        assert provider.learned("m") == ("It refused the schema of a tool: all are sent in fewer words",)
        (counted,) = provider.tools_sent("m", request.tools)
        assert sent_tools(server)[-1] == (json.loads(counted.parameters), counted.description)
    assert (first.text, second.text) == ("Hello", "Hello")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_description_that_is_too_long_is_cut_on_that_refusal(dialect: Dialect) -> None:
    refusal = (
        "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024, but "
    )
    request = replace(REQUEST, tools=(ToolSchema("look", "Look. " * 400, "{}"),))
    async with serving(dialect) as (server, provider):
        server.json({"error": {"message": f"{refusal}but got a string with length 2400 instead."}}, 400)
        server.answers.append(Answer(pieces(dialect)))
        got = await collect(provider, request)
        lengths = [len(description) for _, description in sent_tools(server)]
    assert got.text == "Hello"
    assert lengths[0] == 2_400 and lengths[1] <= 1_024


async def test_a_schema_that_stays_refused_is_said() -> None:
    async with serving("openai-chat") as (server, provider):
        server.json({"error": {"message": "Invalid schema for function 'look': type is missing"}}, 400)
        got = await collect(provider, replace(REQUEST, tools=(ToolSchema("look", "Look", json.dumps(ZOD)),)))
        assert len(server.requests) == 2
        assert provider.learned("m") == ()  # what did not help is not kept
    assert got.error is not None and "Invalid schema" in str(got.error)

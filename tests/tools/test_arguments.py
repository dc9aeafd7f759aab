from __future__ import annotations

import json
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from tui.messages import ToolSchema
from tui.tools.arguments import read_arguments
from tui.tools.base import ToolError

PARAMETERS = {
    "type": "object",
    "additionalProperties": False,
    "required": ["path"],
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": ["integer", "null"]},
        "ratio": {"type": "number"},
        "mode": {"enum": ["a", "b"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "where": {"$ref": "#/$defs/where"},
        "either": {"anyOf": [{"type": "integer"}, {"type": "object", "required": ["x"]}]},
    },
    "$defs": {"where": {"type": "object", "required": ["line"], "properties": {"line": {"type": "integer"}}}},
}


def read(arguments: Any, parameters: object = PARAMETERS) -> Any:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return read_arguments(text, ToolSchema("look", "", json.dumps(parameters)))


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a"},
        {"path": "a", "limit": 3, "ratio": 2, "mode": "b", "tags": ["x"], "where": {"line": 1}, "either": 4},
        {"path": "a", "either": {"x": 1}, "limit": 2.0},
    ],
)
def test_what_fits_is_taken_as_it_is(arguments: dict[str, Any]) -> None:
    assert read(arguments) == arguments


def test_nothing_is_left_out_for_an_optional_argument() -> None:
    assert read({"path": "a", "ratio": None}) == {"path": "a"}
    assert read("", {}) == {}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "path is missing"),
        ({"path": None}, "path has to be string, not null"),
        ({"path": 3}, "path has to be string, not integer"),
        ({"path": "a", "limit": True}, "limit has to be integer or null, not boolean"),
        ({"path": "a", "mode": "c"}, 'mode has to be one of ["a", "b"]'),
        ({"path": "a", "tags": ["x", 1]}, "tags[1] has to be string"),
        ({"path": "a", "where": {}}, "where.line is missing"),
        ({"path": "a", "either": "x"}, "either has to be integer"),
        ({"path": "a", "pth": "b"}, "there is no argument pth (did you mean path?)"),
        ("{", "not valid JSON"),
        ('"text"', "have to be a JSON object, not string"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_what_does_not_fit_is_said_so_that_it_can_be_corrected(arguments: object, words: str) -> None:
    with pytest.raises(ToolError) as error:
        read(arguments)
    assert words in str(error.value)
    assert "look" in str(error.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(
    ["type", "properties", "required", "items", "anyOf", "$ref", "enum", "additionalProperties", "$defs"]
)


@pytest.mark.slow
@given(arguments=JSON, parameters=st.dictionaries(WORDS, JSON | st.dictionaries(WORDS, JSON, max_size=3), max_size=4))
def test_no_schema_and_no_arguments_break_the_check(arguments: Any, parameters: Any) -> None:
    try:
        read(arguments, parameters)
    except ToolError as error:
        assert str(error)


# Well-formed schemas with every keyword of the checker, and some it leaves to the tool ("minLength", "allOf").
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])
            | st.lists(st.sampled_from(["string", "integer", "null", "object"]), min_size=1, max_size=3, unique=True),
            "enum": st.lists(st.sampled_from(["a", "", 1, 2.0, True, None, [], {}]), min_size=1, max_size=3),
            "const": st.sampled_from(["a", 1, 1.0, True, None]),
            "$ref": st.sampled_from(["#", "#/$defs/d"]),
            "minLength": st.just(1),
        },
    )
    | st.booleans(),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
            "required": st.lists(st.sampled_from("abcd"), max_size=2, unique=True),
            "additionalProperties": st.just(False) | inner,
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
        },
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    st.sampled_from(["a", "", 1, 2.0, 1.5, True, None]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abcde"), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=300)
@given(
    root=st.fixed_dictionaries({"type": st.just("object")}, optional={
        "properties": st.dictionaries(st.sampled_from("abcd"), SCHEMAS, max_size=3),
        "required": st.lists(st.sampled_from("abcd"), max_size=2, unique=True),
        "additionalProperties": st.just(False),
        "$defs": st.fixed_dictionaries({"d": SCHEMAS}),
    }),
    value=st.dictionaries(st.sampled_from("abcde"), VALUES, max_size=3),
)  # fmt: skip
def test_only_what_json_schema_refuses_is_refused(root: dict[str, Any], value: dict[str, Any]) -> None:
    value = {name: entry for name, entry in value.items() if entry is not None}
    try:
        valid = Draft202012Validator(root, registry=Registry()).is_valid(value)
    except (RecursionError, Unresolvable):
        return  # a reference to itself or to nothing: no answer to compare with
    try:
        read(value, root)
    except ToolError:
        assert not valid


def test_a_schema_that_points_at_itself_ends() -> None:
    loop = {"properties": {"a": {"$ref": "#"}}, "required": ["b"], "type": "object"}
    deep: dict[str, Any] = {"b": 1}
    for _ in range(50):
        deep = {"a": deep, "b": 1}
    assert read(deep, loop) == deep


def test_a_schema_that_branches_without_end_ends_the_check() -> None:
    item = {"anyOf": [*[{"$ref": "#/properties/a"}] * 30, {"type": "string"}]}
    assert read({"a": 5}, {"properties": {"a": item}}) == {"a": 5}


def test_a_message_names_few_of_many_arguments() -> None:
    parameters = {"properties": {f"name_{n}": {} for n in range(5_000)}, "additionalProperties": False}
    with pytest.raises(ToolError) as error:
        read({"other": 5}, parameters)
    assert len(str(error.value)) < 1_000


def test_names_that_are_not_there_are_compared_only_so_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """In alternatives every problem is looked for: the one with the fewest is told."""
    compared = Mock(return_value="hint")
    monkeypatch.setattr("tui.tools.arguments._hint", compared)
    option = {"properties": {f"name_{n}": {} for n in range(500)}, "additionalProperties": False}
    read({f"eman_{n}": 5 for n in range(1_000)}, {"anyOf": [option, option]})
    assert 0 < compared.call_count <= 40

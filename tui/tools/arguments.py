"""Parses a call's arguments and checks them against the tool's schema. Errors are written for the model.

A small part of JSON Schema: types, required and unknown names, enums, arrays, nested objects, alternatives and
references. Further constraints are left to the tool.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from tui.messages import ToolSchema
from tui.providers.tool_schemas import resolve
from tui.text.json_text import NotAnObjectError, parse_json, parse_object
from tui.text.labels import did_you_mean
from tui.tools.base import ToolError

MAX_DEPTH = 12  # levels; recursive schemas are cut off here
MAX_PROBLEMS = 5  # named for one call
MAX_STEPS = 20_000  # values and schemas checked
MAX_COMPARED = 500  # names of a schema compared with an unknown one
MAX_NAMED = 40  # names or values that a message lists

_KINDS = ("string", "integer", "number", "boolean", "array", "object", "null")  # others are not checked


def read_arguments(arguments: str, schema: ToolSchema) -> Mapping[str, Any]:
    """The arguments as the tool takes them; None for an optional argument is dropped.

    Raises `ToolError` that tells the model what to change.
    """
    try:
        value = parse_object(arguments)
    except NotAnObjectError as error:
        raise ToolError(f"The arguments of {schema.name} have to be a JSON object, not {error.kind}.") from None
    except ValueError as error:
        raise ToolError(f"The arguments of {schema.name} are not valid JSON ({error}): send one JSON object.") from None
    root = parse_json(schema.parameters or "{}")
    required = _required(root)
    value = {name: entry for name, entry in value.items() if entry is not None or name in required}
    if problems := list(itertools.islice(_Check(root).problems(value, root, ""), MAX_PROBLEMS)):
        raise ToolError(f"{schema.name} was not run: {'; '.join(problems)}. Correct the arguments and call it again.")
    return value


def _required(schema: Mapping[str, Any]) -> list[Any]:
    names = schema.get("required")
    return names if isinstance(names, list) else []


class _Check:
    """A check against one schema. It ends after `MAX_STEPS`: schemas are untrusted, and may branch without end."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._steps_left = MAX_STEPS

    def problems(self, value: Any, schema: Any, path: str, depth: int = 0) -> Iterator[str]:
        self._steps_left -= 1
        if not isinstance(schema, dict) or depth > MAX_DEPTH or self._steps_left < 0:
            return
        where = path or "the arguments"
        if isinstance(reference := schema.get("$ref"), str):
            yield from self.problems(value, resolve(reference, self._root), path, depth + 1)
            return
        for key in ("anyOf", "oneOf"):
            options = schema.get(key)
            if isinstance(options, list) and options:
                problems = [list(self.problems(value, option, path, depth + 1)) for option in options]
                if all(problems):
                    yield min(problems, key=len)[0]
                    return
        kinds, names = schema.get("type"), _kinds(value)
        allowed = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
        if allowed and not any(kind in names or kind not in _KINDS for kind in allowed):
            yield f"{where} has to be {' or '.join(map(str, allowed))}, not {names[0]}"
            return
        choices = schema.get("enum")
        if isinstance(choices, list) and value not in choices:
            yield f"{where} has to be one of {json.dumps(choices[:MAX_NAMED], ensure_ascii=False)[:300]}"
        if isinstance(value, dict):
            yield from self._object_problems(value, schema, path, depth)
        elif isinstance(value, list):
            for number, entry in enumerate(value):
                yield from self.problems(entry, schema.get("items"), f"{path}[{number}]", depth + 1)

    def _object_problems(
        self, value: dict[str, Any], schema: Mapping[str, Any], path: str, depth: int
    ) -> Iterator[str]:
        prefix = f"{path}." if path else ""
        declared = schema.get("properties")
        properties = declared if isinstance(declared, dict) else {}
        for name in _required(schema):
            if isinstance(name, str) and name not in value:
                yield f"{prefix}{name} is missing"
        for name, entry in value.items():
            if name in properties:
                yield from self.problems(entry, properties[name], f"{prefix}{name}", depth + 1)
            elif schema.get("additionalProperties") is False:
                self._steps_left -= min(len(properties), MAX_COMPARED)
                if self._steps_left < 0:
                    return
                yield f"there is no argument {prefix}{name[:80]} ({_hint(name, properties)})"


def _hint(name: str, properties: Mapping[str, Any]) -> str:
    names = [str(name)[:80] for name in itertools.islice(properties, MAX_COMPARED)]
    listed = f"{', '.join(names[:MAX_NAMED]) or 'none'}{', ...' if len(names) > MAX_NAMED else ''}"
    return did_you_mean(name[:80], names) or f"it takes {listed}"


def _kinds(value: Any) -> tuple[str, ...]:
    """The types of JSON Schema that a value has, the closest first."""
    match value:
        case bool():
            return ("boolean",)
        case int():
            return ("integer", "number")
        case float():
            return ("number", "integer") if value.is_integer() else ("number",)
        case str():
            return ("string",)
        case list():
            return ("array",)
        case dict():
            return ("object",)
        case _:
            return ("null",)

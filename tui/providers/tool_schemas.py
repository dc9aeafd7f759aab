"""Adapts tools to what servers accept: an object at the schema's root, few keywords, shorter descriptions. Pure.

MCP servers write any JSON schema, and most providers refuse a whole request for one keyword in one tool's schema. A
looser schema loses detail; arguments are still checked against the full schema before the tool runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tui.messages import ToolSchema
from tui.providers.wire import Json, as_object, object_of, objects_of
from tui.text.clean import abbreviated

MAX_DESCRIPTION = 1_024  # characters; OpenAI's Chat Completions and many gateways refuse longer ones
_MAX_DEPTH = 16  # levels of nested schemas
_MAX_BRANCHES = 6  # levels of nested branches at the root
_MAX_SCHEMAS = 1_000  # references that are expanded: each may contain several
# The keywords of Google's `Schema` object (Gemini API reference, "Schema").
_PLAIN_WORDS = {
    *("type", "format", "title", "description", "nullable", "enum", "default", "pattern", "anyOf", "items"),
    *("properties", "required", "minProperties", "maxProperties", "minItems", "maxItems"),
    *("minLength", "maxLength", "minimum", "maximum"),
}
_COMBINERS = ("allOf", "anyOf", "oneOf")


@lru_cache(maxsize=2_048)  # asked for with each measure and request, for the tools of a few servers and models
def tool_sent(tool: ToolSchema, plain: bool, short: bool) -> ToolSchema:
    """`tool` as it is sent: an object at its schema's root; `plain` uses few keywords in it.

    `short` limits the description to `MAX_DESCRIPTION` characters.
    """
    schema = object_schema(as_object(tool.parameters))
    schema = plain_schema(schema) if plain else schema
    text = json.dumps(schema, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    description = abbreviated(tool.description, MAX_DESCRIPTION) if short else tool.description
    return replace(tool, parameters=text, description=description)


def object_schema(schema: Mapping[str, Any]) -> Json:
    """`schema` with an object at its root and no dangling references.

    OpenAI and Anthropic refuse `allOf`, `anyOf` and `oneOf` at the root, a root of another type, and references that
    cannot be resolved. The properties of all branches are offered; only those required by every branch are required.
    """
    root: Json = _without_dangling(schema, schema)
    refused = {*_COMBINERS, "$ref", "not", "enum"}
    if root.keys() & refused or root.get("type") != "object":
        properties, required = _merged(root, root)
        others = {key: value for key, value in root.items() if key not in {*refused, "required"}}
        root = {**others, "type": "object", "properties": properties}
        root |= {"required": sorted(required)} if required else {}
    return root | {"properties": object_of(root.get("properties"))}


def _merged(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> tuple[Json, set[str]]:
    """The properties that a schema and its branches allow, and those that all of them require."""
    if depth > _MAX_BRANCHES:
        return {}, set()
    if isinstance(path := schema.get("$ref"), str):
        return _merged(_beside(resolve(path, root), schema), root, depth + 1)
    properties, names = dict(object_of(schema.get("properties"))), schema.get("required")
    required = {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
    for combiner in _COMBINERS:
        branches = [_merged(one, root, depth + 1) for one in objects_of(schema.get(combiner))]
        for more, _ in branches:
            properties = {**more, **properties}
        if branches:
            needed = [names for _, names in branches]
            required |= set.union(*needed) if combiner == "allOf" else set.intersection(*needed)
    return properties, required & properties.keys()


def _beside(target: Mapping[str, Any] | None, schema: Mapping[str, Any]) -> Json:
    """The target of a reference in `schema`, merged with the keywords beside the reference."""
    return {**(target or {}), **{key: value for key, value in schema.items() if key != "$ref"}}


def resolve(path: str, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema that a `$ref` within `root` points to (RFC 6901); None if it can't be resolved."""
    if path != "#" and not path.startswith("#/"):
        return None
    place: Any = root
    for step in path.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, list) and step.isdigit() and int(step) < len(place):
            place = place[int(step)]
        else:
            place = place.get(step) if isinstance(place, Mapping) else None
    return place if isinstance(place, Mapping) else None


def _without_dangling(value: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    """A copy of `value` without unresolvable references, which are replaced by an empty schema."""
    if depth > 4 * _MAX_DEPTH:
        return {}
    match value:
        case Mapping():
            copied = {key: _without_dangling(inner, root, depth + 1) for key, inner in value.items()}
            if isinstance(path := copied.get("$ref"), str) and resolve(path, root) is None:
                del copied["$ref"]
            return copied
        case list():
            return [_without_dangling(inner, root, depth + 1) for inner in value]
        case _:
            return value


def plain_schema(schema: Mapping[str, Any]) -> Json:
    """`schema` in few keywords: references expanded, `const` and `oneOf` rewritten, others left out."""
    return _PlainWriter(schema).write(schema, frozenset())


class _PlainWriter:
    """Expands a schema's references, up to a limit; one within itself becomes its type."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._written = 0

    def write(self, schema: object, within: frozenset[str], depth: int = 0) -> Json:
        self._written += 1
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
            return {}
        if isinstance(path := schema.get("$ref"), str):
            target = resolve(path, self._root) or {}
            if path in within or self._written > _MAX_SCHEMAS:
                target = {"type": target["type"]} if "type" in target else {}
            return self.write(_beside(target, schema), within | {path}, depth + 1)
        plain = {key: value for key, value in schema.items() if key in _PLAIN_WORDS}
        if "const" in schema:
            plain["enum"] = [schema["const"]]
        if not isinstance(choices := plain.get("enum"), list) or not all(isinstance(one, str) for one in choices):
            plain.pop("enum", None)  # Google's schema allows enums of strings only
        if isinstance(branches := schema.get("oneOf"), list):
            plain.setdefault("anyOf", branches)
        if isinstance(types := plain.get("type"), list):
            plain["type"] = next((kind for kind in types if isinstance(kind, str) and kind != "null"), "string")
            if "null" in types:
                plain["nullable"] = True
        if isinstance(fields := plain.get("properties"), Mapping):
            plain["properties"] = {name: self.write(field, within, depth + 1) for name, field in fields.items()}
        if isinstance(branches := plain.get("anyOf"), list):
            plain["anyOf"] = [self.write(branch, within, depth + 1) for branch in branches]
        if plain.get("type") == "array" or "items" in plain:
            plain["items"] = self.write(plain.get("items"), within, depth + 1) or {"type": "string"}
        return plain

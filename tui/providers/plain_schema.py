"""JSON schemas in the few words that every server knows, for those that refuse the rest. Pure.

Gemini's Chat endpoint and Moonshot refuse a whole request for one keyword in the schema of one tool, and MCP servers
write many. The words kept are those of Google's `Schema` object (Gemini API reference, "Schema").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tui.providers.wire import Json

_KEPT = {
    *("type", "format", "title", "description", "nullable", "enum", "default", "pattern", "anyOf", "items"),
    *("properties", "required", "minProperties", "maxProperties", "minItems", "maxItems"),
    *("minLength", "maxLength", "minimum", "maximum"),
}
_MAX_DEPTH = 16  # of schemas within schemas
_MOST = 1_000  # schemas after which no reference is written out any more: each may hold several


def plain_schema(schema: Mapping[str, Any]) -> Json:
    """`schema` in those words: references written out, `const` and `oneOf` said otherwise, the rest left out."""
    return _Writer(schema).plain(schema, frozenset())


class _Writer:
    """Writes a schema's references out: none within itself, and not without end."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._written = 0

    def plain(self, schema: object, within: frozenset[str], depth: int = 0) -> Json:
        self._written += 1
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
            return {}
        if isinstance(path := schema.get("$ref"), str):
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            target = _target(path, self._root)
            if path in within or self._written > _MOST:
                target = {"type": target["type"]} if "type" in target else {}
            return self.plain({**target, **rest}, within | {path}, depth + 1)
        found = {key: value for key, value in schema.items() if key in _KEPT}
        if "const" in schema:
            found["enum"] = [schema["const"]]
        given = found.get("enum")
        if not isinstance(given, list) or not all(isinstance(value, str) for value in given):
            found.pop("enum", None)  # words only
        if isinstance(several := schema.get("oneOf"), list):
            found.setdefault("anyOf", several)
        if isinstance(kinds := found.get("type"), list):
            found["type"] = next((kind for kind in kinds if kind != "null"), "string")
            if "null" in kinds:
                found["nullable"] = True
        if isinstance(fields := found.get("properties"), Mapping):
            found["properties"] = {name: self.plain(field, within, depth + 1) for name, field in fields.items()}
        if isinstance(each := found.get("anyOf"), list):
            found["anyOf"] = [self.plain(one, within, depth + 1) for one in each]
        if found.get("type") == "array" or "items" in found:
            found["items"] = self.plain(found.get("items"), within, depth + 1) or {"type": "string"}
        return found


def _target(path: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a reference within the schema points to; nothing for one that leads out."""
    place: Any = root if path.startswith("#") else {}
    for step in path.removeprefix("#").strip("/").split("/"):
        if step:
            place = place.get(step) if isinstance(place, Mapping) else None
    return place if isinstance(place, Mapping) else {}

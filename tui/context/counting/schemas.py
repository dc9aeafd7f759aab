"""A tool's schema as the text that models see: JSON, or the TypeScript that OpenAI renders it as.

OpenAI does not publish the TypeScript form; models repeat it when asked, and it explains OpenAI's counts of recorded
requests to the token (tests/bench/fit_priors.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from tui.messages import ToolSchema

MAX_DEPTH = 8  # levels; recursive schemas are cut off here


def schema_text(tool: ToolSchema, style: Literal["json", "typescript"]) -> str:
    """The text whose tokens a tool costs."""
    if style == "json":
        return f"{tool.name}\n{tool.description}\n{tool.parameters}"
    try:
        schema = json.loads(tool.parameters)
    except ValueError:
        schema = {}
    if not isinstance(schema, dict):
        schema = {}
    fields = _fields(schema, _definitions(schema), 0)
    comment = "".join(f"// {line}\n" for line in tool.description.split("\n")) if tool.description else ""
    inner = f"_: {{\n{fields}}}" if fields else ""
    return f"{comment}type {tool.name} = ({inner}) => any;\n\n"


def _definitions(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    definitions = schema.get("$defs") or schema.get("definitions")
    return definitions if isinstance(definitions, dict) else {}


def _fields(schema: Mapping[str, Any], named: Mapping[str, Any], depth: int) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return ""
    required = schema.get("required") or []
    lines = []
    for name, value in properties.items():
        if isinstance(value, dict) and value.get("description"):
            lines.append(f"// {value['description']}\n")
        mark = "" if name in required else "?"
        default = (
            f" // default: {json.dumps(value['default'])}" if isinstance(value, dict) and "default" in value else ""
        )
        lines.append(f"{name}{mark}: {_type(value, named, depth)},{default}\n")
    return "".join(lines)


def _type(schema: Any, named: Mapping[str, Any], depth: int) -> str:
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return "any"
    if "$ref" in schema:
        return _type(named.get(str(schema["$ref"]).rsplit("/", 1)[-1]), named, depth + 1)
    if isinstance(schema.get("enum"), list):
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return " | ".join(_type(option, named, depth + 1) for option in schema[key])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(map(str, kind))
    if kind == "array":
        return _type(schema.get("items", {}), named, depth + 1) + "[]"
    if kind == "object":
        fields = _fields(schema, named, depth + 1)
        return f"{{\n{fields}}}" if fields else "object"
    return {"integer": "number"}.get(str(kind), str(kind or "any"))

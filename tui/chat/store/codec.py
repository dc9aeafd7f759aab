"""Messages as JSON and back, without loss: one form for the database and for JSONL export."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

from tui.messages import (
    Attachment,
    BilledPass,
    Message,
    Part,
    ProviderItem,
    Reasoning,
    Refusal,
    Source,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)

_PARTS: dict[str, type[Part]] = {
    "text": Text,
    "reasoning": Reasoning,
    "tool_call": ToolCall,
    "tool_result": ToolResult,
    "attachment": Attachment,
    "refusal": Refusal,
    "source": Source,
    "provider_item": ProviderItem,
}
_DECODER = json.JSONDecoder()
_NAMES = {kind: name for name, kind in _PARTS.items()}
_FIELDS = {kind: tuple((f.name, f.default) for f in fields(kind)) for kind in (*_PARTS.values(), Usage)}


def _fields(value: Part | Usage) -> dict[str, Any]:
    """The fields that are not at their default."""
    kind = _FIELDS[type(value)]
    return {name: content for name, default in kind if (content := getattr(value, name)) != default}


def part_to_dict(part: Part) -> dict[str, Any]:
    """A part as a JSON object."""
    return {"type": _NAMES[type(part)], **_fields(part)}


def part_from_dict(data: dict[str, Any]) -> Part:
    """The inverse of `part_to_dict`. Raises ValueError for an unknown type or missing fields."""
    if (
        data.get("type") == "sealed_summary"
    ):  # OpenAI's server-side compaction, stored by older versions: not sent any more
        return Text("[Compacted by OpenAI in a form that is no longer supported; the messages themselves are sent]")
    values = dict(data)
    kind = _PARTS.get(values.pop("type", ""))
    if kind is None:
        raise ValueError(f"unknown message part {data.get('type')!r}")
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"message part {data.get('type')!r} is malformed: {error}") from None


def dump_parts(parts: tuple[Part, ...]) -> str:
    """Parts as JSON text. Lone surrogates survive, escaped."""
    return json.dumps([part_to_dict(part) for part in parts], separators=(",", ":"))


def load_parts(text: str) -> tuple[Part, ...]:
    """The inverse of `dump_parts`. Raises ValueError."""
    parts, end = _DECODER.raw_decode(text)  # `json.loads` looks for blanks around it, which takes as long again
    if end != len(text):
        raise ValueError(f"{len(text) - end} characters after the parts of a message")
    return tuple([part_from_dict(data) for data in parts])


def dump_usage(usage: Usage | None) -> str | None:
    """Usage as JSON text, or None."""
    if usage is None:
        return None
    return json.dumps(usage_to_dict(usage), separators=(",", ":"))


def load_usage(text: str | None) -> Usage | None:
    """The inverse of `dump_usage`."""
    return None if text is None else usage_from_dict(json.loads(text))


def usage_to_dict(usage: Usage) -> dict[str, Any]:
    """A usage as a JSON object."""
    data = _fields(usage)
    if usage.passes:
        data["passes"] = [asdict(one) for one in usage.passes]
    return data


def usage_from_dict(data: dict[str, Any]) -> Usage:
    """The inverse of `usage_to_dict`. Raises TypeError for unknown or missing fields."""
    passes = tuple(BilledPass(**entry) for entry in data.get("passes") or ())
    return Usage(**{**data, "passes": passes, "terms": tuple(data.get("terms") or ())})


def message_to_dict(message: Message) -> dict[str, Any]:
    """A whole message as a JSON object."""
    data: dict[str, Any] = {"id": message.id, "role": message.role, "parts": [part_to_dict(p) for p in message.parts]}
    for name in ("kind", "status", "created_at", "provider", "model", "finish_reason", "error"):
        data[name] = getattr(message, name)
    usage = message.usage
    data["usage"] = None if usage is None else usage_to_dict(usage)
    return data


def message_from_dict(data: dict[str, Any]) -> Message:
    """The inverse of `message_to_dict`. Raises ValueError."""
    values = dict(data)
    usage = values.pop("usage", None)
    try:
        parts = tuple(part_from_dict(part) for part in values.pop("parts"))
        return Message(parts=parts, usage=usage_from_dict(usage) if usage else None, **values)
    except (TypeError, KeyError) as error:
        raise ValueError(f"message is malformed: {error}") from None

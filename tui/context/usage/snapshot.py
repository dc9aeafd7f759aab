"""The last usage of a session, stored beside it, so that opening a long session shows it without reading its messages.

A snapshot is only valid for the history it was made from: the caller passes a stamp (such as the ids of the last
message and record, and the model), and gets nothing back if it has changed. The full account is computed later, off the
event loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from tui.context.usage.limits import Budget, ModelLimits
from tui.context.usage.rows import UsageItem, UsageRow
from tui.context.usage.usage import Basis, ClassFactor, ContextUsage, LeftOut

VERSION = 2
FEW = 200  # items of a row that are stored; rows with more get their items from the account


def snapshot_to_json(usage: ContextUsage, stamp: str) -> dict[str, object]:
    """A JSON object for the store."""
    data: dict[str, object] = {"version": VERSION, "stamp": stamp}
    for name in ("limits", "budget", "basis"):
        data[name] = asdict(getattr(usage, name))
    for name in _PLAIN:
        data[name] = getattr(usage, name)
    data["rows"] = [
        {
            **{name: getattr(row, name) for name in ("key", "name", "tokens", "source")},
            "items": [asdict(item) for item in row.items]
            if isinstance(row.items, tuple) and len(row.items) <= FEW
            else [],
        }
        for row in usage.rows
    ]
    return data


def snapshot_from_json(data: Mapping[str, Any], stamp: str) -> ContextUsage | None:
    """The inverse of `snapshot_to_json`; None for another history, another version, or malformed data."""
    if data.get("version") != VERSION or data.get("stamp") != stamp:
        return None
    try:
        rows = tuple(
            UsageRow(
                row["key"], row["name"], row["tokens"], row["source"], tuple(UsageItem(**item) for item in row["items"])
            )
            for row in data["rows"]
        )
        return ContextUsage(
            limits=ModelLimits(**data["limits"]),
            budget=Budget(**data["budget"]),
            basis=Basis(**data["basis"] | {"classes": tuple(ClassFactor(*item) for item in data["basis"]["classes"])}),
            rows=rows,
            **{name: data[name] for name in _PLAIN if name not in ("warnings", "left_out")},
            warnings=tuple(data["warnings"]),
            left_out=LeftOut(*data["left_out"]),
        )
    except (KeyError, TypeError):
        return None


_OTHERS = ("limits", "budget", "basis", "rows", "messages")
_PLAIN = tuple(field.name for field in fields(ContextUsage) if field.name not in _OTHERS)

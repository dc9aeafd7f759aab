"""Tables of the config file as dataclasses: one declaration is both parser and JSON Schema of a setting."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import MISSING, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from tui.config.values import Kind, shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Table = TypeVar("Table", bound=DataclassInstance)


class SettingError(ValueError):
    """An unusable setting: `path` are the keys that lead to it, `reason` is one line."""

    def __init__(self, reason: str, *path: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}: {self.reason}" if self.path else self.reason


def setting(kind: Kind, default: Any, about: str, *, name: str = "") -> Any:
    """A dataclass field that can be set in the file. A class as `default` is instantiated.

    `name` is the key in the file, if it differs.
    """
    metadata = {"kind": kind, "about": about, "name": name}
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def read_table(table: type[Table], value: object, example: str) -> dict[str, Any]:
    """The settings of `table` in `value`, by field name. Raises `SettingError`.

    `example` is how the table begins in a file.
    """
    names = {_key(f): f for f in fields(table) if "kind" in f.metadata}
    values = {}
    for key, entry in as_table(value, example).items():
        if key not in names:
            near = difflib.get_close_matches(key, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(names))}"
            raise SettingError(f"there is no such setting; {hint}", key)
        values[names[key].name] = read_at(key, names[key].metadata["kind"].read, entry)
    return values


def as_table(value: object, example: str) -> dict[str, Any]:
    """`value`, which is a table. Raises ValueError."""
    if isinstance(value, dict):
        return value
    raise ValueError(f"{shown(value)} is not a table; a table begins with a line {example}")


def read_at(key: str, read: Callable[[object], object], value: object) -> object:
    """The result of `read(value)`, with `key` added to the path of an error. Raises `SettingError`."""
    try:
        return read(value)
    except SettingError as error:
        raise SettingError(error.reason, key, *error.path) from None
    except ValueError as error:
        raise SettingError(str(error), key) from None


def table_kind(table: type[Table], example: str) -> Kind:
    """A table with settings of its own."""
    return Kind(lambda value: table(**read_table(table, value, example)), table_schema(table))


def tables_kind(entry: Kind, example: str, check: Callable[[str], None] = lambda _: None) -> Kind:
    """A table with keys chosen by a person. `check` raises ValueError for an invalid key."""

    def read(value: object) -> dict[str, object]:
        entries = as_table(value, example)
        for key in entries:
            read_at(key, lambda name: check(str(name)), key)
        return {key: read_at(key, entry.read, value) for key, value in entries.items()}

    return Kind(read, {"type": "object", "additionalProperties": dict(entry.schema)})


def table_schema(table: type[Table]) -> dict[str, Any]:
    """The JSON Schema of a table."""
    properties = {}
    for f in fields(table):
        if "kind" in f.metadata:
            default = {} if f.default is MISSING or f.default is None else {"default": _plain(f.default)}
            properties[_key(f)] = {**f.metadata["kind"].schema, "description": f.metadata["about"], **default}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _key(f: Any) -> str:
    return str(f.metadata["name"] or f.name)


def _plain(value: object) -> object:
    """The value as written in the file."""
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, bool | int | float | str) else str(value)

"""Values and tables as people write them, in the config file or in a command, with their JSON Schema.

A setting is declared once, as a field of a dataclass: that is both its parser and its schema. Every `parse_...` raises
ValueError with a one-line reason that says what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from tui.config.files import from_home
from tui.context.usage.limits import Percent, Tokens
from tui.messages import EFFORTS
from tui.text.labels import did_you_mean

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Table = TypeVar("Table", bound=DataclassInstance)

Compaction: TypeAlias = Percent | Tokens | Literal["off"]
"""When compaction starts."""

MAX_TURNS = 1_000
MAX_SECONDS = 1_000_000
MAX_PERCENT = 100  # no number of tokens up to this is meant as one


def shown(value: object) -> str:
    """`value` for a message, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def parse_text(value: object) -> str:
    """Text."""
    if isinstance(value, str):
        return value
    raise ValueError(f"{shown(value)} is not text; write it in quotes")


def parse_flag(value: object) -> bool:
    """true or false."""
    if isinstance(value, bool):
        return value
    raise ValueError(f"{shown(value)} is neither true nor false; write one of them, without quotes")


def parse_path(value: object) -> Path:
    """A path, with `~` expanded as in a shell."""
    return from_home(parse_text(value))


def parse_tokens(value: object) -> int:
    """A positive token count: 128000, "128k", "1m", "200,000"."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if isinstance(value, str):
        text = value.strip().lower().replace(",", "").replace("_", "")
        scale = {"k": 1_000, "m": 1_000_000}.get(text[-1:], 1)
        digits = text[:-1] if scale > 1 else text
        try:
            number = float(digits) * scale
        except ValueError:
            number = 0.0
        if 0 < number < 1e12:
            return round(number)
    raise ValueError(f"{shown(value)} is not a number of tokens; write it like 128000 or 128k")


def parse_url(value: object) -> str:
    """The address of a server."""
    from urllib.parse import urlsplit

    text = parse_text(value)
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of its brackets or its port
        usable = False
    if not usable or any(sign.isspace() for sign in text):
        address = text if "@" not in text else f"…@{text.rpartition('@')[2]}"  # before it: a name and a password
        raise ValueError(
            f"{shown(address)} is not an address; write it with http:// or https://, like https://llm.example.com/v1"
        )
    return text


# -- kinds of settings -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of a setting.

    `read` converts the value from the file, and raises ValueError with a one-line reason; `schema` is its JSON Schema,
    for editors.
    """

    read: Callable[[object], object]
    schema: Mapping[str, Any]


def choice(*words: str) -> Kind:
    """One of these words."""

    def read(value: object) -> str:
        if isinstance(value, str) and value in words:
            return value
        raise ValueError(f"{shown(value)} is none of its values; use one of {', '.join(words)}")

    return Kind(read, {"enum": list(words)})


def number(low: float, high: float, expected: str, *, integer: bool = False) -> Kind:
    """A number from `low` to `high`."""

    def read(value: object) -> float:
        if isinstance(value, int if integer else int | float) and not isinstance(value, bool) and low <= value <= high:
            return value if integer else float(value)
        raise ValueError(f"{shown(value)} is not {expected}; write a number from {low:,} to {high:,}")

    return Kind(read, {"type": "integer" if integer else "number", "minimum": low, "maximum": high})


def texts(plural: str, example: str, parse: Callable[[str], object] = str) -> Kind:
    """A list of unique strings; `plural` names them, `parse` converts each."""

    def read(value: object) -> tuple[object, ...]:
        if not isinstance(value, list) or not all(isinstance(entry, str) and entry.strip() for entry in value):
            raise ValueError(f"{shown(value)} is not a list of {plural}; write it like {example}")
        return tuple(parse(entry) for entry in dict.fromkeys(value))

    return Kind(read, {"type": "array", "items": {"type": "string", "pattern": r"\S"}})


def size_or_share(expected: str) -> Kind:
    """A number of tokens, or a percentage. `expected` says what it is, and how it is written."""

    def read(value: object) -> Percent | Tokens:
        if isinstance(value, str) and value.strip().endswith("%"):
            try:
                percent = float(value.strip()[:-1])
            except ValueError:
                percent = 0.0
            if 0 < percent <= MAX_PERCENT:
                return Percent(percent)
            raise ValueError(f"{shown(value)} is not a percentage between 0 and 100")
        try:
            tokens = parse_tokens(value)
        except ValueError:
            raise ValueError(f"{shown(value)} is not {expected}") from None
        if tokens <= MAX_PERCENT:
            raise ValueError(f'{tokens} would be {tokens} tokens; write "{tokens}%" for a percentage')
        return Tokens(tokens)

    words = {"type": "string", "pattern": rf"^(?!\s*(100|[0-9]{{1,2}})\s*$)({_TOKENS}|{_PERCENT})$"}
    return Kind(read, {"anyOf": [_COUNT | {"minimum": MAX_PERCENT + 1}, words]})


def or_off(kind: Kind) -> Kind:
    """`kind`, or "off"."""
    schema = {"anyOf": [*kind.schema["anyOf"], {"enum": ["off", False]}]}
    return Kind(lambda value: "off" if value is False or value == "off" else kind.read(value), schema)


def parse_file_name(value: str) -> str:
    """The name of a file, without folders."""
    if Path(value).name != value:
        raise ValueError(f"{value!r} is a path; write the file's name alone")
    return value


_TOKENS = r"\s*[0-9][0-9,_]*(\.[0-9_]*)?[kKmM]?\s*"
_PERCENT = r"\s*[0-9]+(\.[0-9]*)?%\s*"
_COUNT = {"type": "integer", "minimum": 1}

TEXT = Kind(parse_text, {"type": "string"})
FLAG = Kind(parse_flag, {"type": "boolean"})
PATH = Kind(parse_path, {"type": "string"})
URL = Kind(parse_url, {"type": "string", "pattern": r"^[hH][tT][tT][pP][sS]?://\S+$"})
EFFORT = choice(*EFFORTS)
TURNS = number(1, MAX_TURNS, "a number of turns", integer=True)
TOKENS = Kind(parse_tokens, {"anyOf": [_COUNT, {"type": "string", "pattern": f"^{_TOKENS}$"}]})
TARGET = size_or_share('a size; write "40%", 60000 or "60k"')
TOKENS_OR_OFF = or_off(TOKENS)
COMPACTION = or_off(size_or_share('a threshold; write "85%", 120000, "120k" or "off"'))
FILE_NAMES = texts("file names", '["AGENTS.md"]', parse_file_name)


# -- tables of settings ------------------------------------------------------------------------------------------------


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
            hint = did_you_mean(key, names) or f"known: {', '.join(sorted(names))}"
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

"""Values as people write them, in the config file or in a command, with their JSON Schema.

Every `parse_...` raises ValueError with a one-line reason that says what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tui.config.paths import from_home
from tui.context.usage.limits import Percent, Tokens
from tui.messages import EFFORTS

Compaction: TypeAlias = Percent | Tokens | Literal["off"]
"""When compaction starts."""

MOST_TURNS = 1_000


MOST_SECONDS = 1_000_000


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


def parse_tokens_or_off(value: object) -> int | Literal["off"]:
    """A positive token count, or "off"."""
    return "off" if value is False or value == "off" else parse_tokens(value)


def parse_compaction(value: object) -> Compaction:
    """ "85%", 120000, "120k" or "off"."""
    if value is False or value == "off":
        return "off"
    return _share(value, f'{shown(value)} is not a threshold; write "85%", 120000, "120k" or "off"')


def parse_target(value: object) -> Percent | Tokens:
    """ "40%", 60000 or "60k"."""
    return _share(value, f'{shown(value)} is not a size; write "40%", 60000 or "60k"')


def _share(value: object, complaint: str) -> Percent | Tokens:
    if isinstance(value, str) and value.strip().endswith("%"):
        try:
            percent = float(value.strip()[:-1])
        except ValueError:
            percent = 0.0
        if 0 < percent <= 100:
            return Percent(percent)
        raise ValueError(f"{shown(value)} is not a percentage between 0 and 100")
    try:
        return Tokens(parse_tokens(value))
    except ValueError:
        raise ValueError(complaint) from None


def parse_turns(value: object) -> int:
    """A number of turns from 1."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_TURNS:
        return value
    raise ValueError(f"{shown(value)} is not a number of turns; write 1 or more")


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
        raise ValueError(
            f"{shown(value)} is no address; write it with http:// or https://, like https://llm.example.com/v1"
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


def number(low: float, high: float, what: str, *, integer: bool = False) -> Kind:
    """A number from `low` to `high`."""

    def read(value: object) -> float:
        if isinstance(value, int if integer else int | float) and not isinstance(value, bool) and low <= value <= high:
            return value if integer else float(value)
        raise ValueError(f"{shown(value)} is not {what}; write a number from {low:,} to {high:,}")

    return Kind(read, {"type": "integer" if integer else "number", "minimum": low, "maximum": high})


def texts(what: str, example: str, parse: Callable[[str], object] = str) -> Kind:
    """A list of unique strings; `what` names them in the plural, `parse` converts each."""

    def read(value: object) -> tuple[object, ...]:
        if not isinstance(value, list) or not all(isinstance(entry, str) and entry.strip() for entry in value):
            raise ValueError(f"{shown(value)} is not a list of {what}; write it like {example}")
        return tuple(parse(entry) for entry in dict.fromkeys(value))

    return Kind(read, {"type": "array", "items": {"type": "string", "pattern": r"\S"}})


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
TURNS = Kind(parse_turns, {"type": "integer", "minimum": 1, "maximum": MOST_TURNS})
TOKENS = Kind(parse_tokens, {"anyOf": [_COUNT, {"type": "string", "pattern": f"^{_TOKENS}$"}]})
TARGET = Kind(parse_target, {"anyOf": [_COUNT, {"type": "string", "pattern": f"^({_TOKENS}|{_PERCENT})$"}]})
TOKENS_OR_OFF = Kind(parse_tokens_or_off, {"anyOf": [*TOKENS.schema["anyOf"], {"enum": ["off", False]}]})
COMPACTION = Kind(parse_compaction, {"anyOf": [*TARGET.schema["anyOf"], {"enum": ["off", False]}]})
FILE_NAMES = texts("file names", '["AGENTS.md"]', parse_file_name)

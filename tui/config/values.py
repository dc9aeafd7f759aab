"""Values as a person writes them, in the config file or in a command: token counts, thresholds, numbers of turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from tui.context.usage.limits import Percent, Tokens
from tui.messages import EFFORTS

Compaction: TypeAlias = Percent | Tokens | Literal["off"]
"""When compaction starts."""

MOST_TURNS = 1_000


def parse_tokens(value: object) -> int:
    """A positive token count: 128000, "128k", "1m", "200,000". Raises ValueError with a one-line reason."""
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
    raise ValueError(f"{value!r} is not a number of tokens; write it like 128000 or 128k")


def parse_compaction(value: object) -> Compaction:
    """ "85%", 120000, "120k" or "off". Raises ValueError with a one-line reason."""
    if value is False or value == "off":
        return "off"
    return _share(value, f'{value!r} is not a threshold; write "85%", 120000, "120k" or "off"')


def parse_target(value: object) -> Percent | Tokens:
    """ "40%", 60000 or "60k". Raises ValueError with a one-line reason."""
    return _share(value, f'{value!r} is not a size; write "40%", 60000 or "60k"')


def _share(value: object, complaint: str) -> Percent | Tokens:
    if isinstance(value, str) and value.strip().endswith("%"):
        try:
            percent = float(value.strip()[:-1])
        except ValueError:
            percent = 0.0
        if 0 < percent <= 100:
            return Percent(percent)
        raise ValueError(f"{value!r} is not a percentage between 0 and 100")
    try:
        return Tokens(parse_tokens(value))
    except ValueError:
        raise ValueError(complaint) from None


def parse_turns(value: object) -> int:
    """A number of turns from 1. Raises ValueError with a one-line reason."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_TURNS:
        return value
    raise ValueError(f"{value!r} is not a number of turns; write 1 or more")


def parse_effort(value: str) -> str:
    """One of `EFFORTS`. Raises ValueError with a one-line reason."""
    if value not in EFFORTS:
        raise ValueError(f"{value!r} is no effort; use one of {', '.join(EFFORTS)}")
    return value


def parse_url(value: str) -> str:
    """The address of a server. Raises ValueError with a one-line reason."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of its brackets or its port
        usable = False
    if not usable or any(sign.isspace() for sign in value):
        raise ValueError(f"{value!r} is no address; write it with http:// or https://, like https://llm.example.com/v1")
    return value


PARSERS: Mapping[str, Callable[[object], object]] = {
    "window": parse_tokens,
    "compaction": parse_compaction,
    "compaction_target": parse_target,
    "preserve_recent_turns": parse_turns,
    "reserve_output": parse_tokens,
}
"""How each number in the config file is read."""

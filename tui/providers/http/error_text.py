"""Extract messages from failed responses of any shape: JSON, JSON in a string, a list, HTML, nothing. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from itertools import islice

from tui.providers.keys import redact

_MAX_DEPTH = 16
MOST_VALUES = 1_000  # values read of a body
MOST_VALUE = 4_000  # characters of one of them
_MAX_MESSAGE = 400  # characters shown of a server's text
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]+>", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
_WAIT = re.compile(
    r"(?i)(?:try again|retry|retry after|available|wait)\D{0,24}?((?:\d+(?:\.\d+)?\s*(?:ms|h|m|s)[a-z]*\s*)+)"
)
_WAIT_PART = re.compile(r"(?i)(\d+(?:\.\d+)?)\s*(ms|h|m|s)")
_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def unfold(body: object, depth: int = 0) -> Iterator[tuple[str, object]]:
    """All (key, scalar) pairs of `body`, depth first, parsing JSON in strings. The key of a bare value is ""."""
    if depth > _MAX_DEPTH:
        return
    match body:
        case bytes():
            yield from unfold(body.decode("utf-8", "replace"), depth)
        case str() if body.lstrip()[:1] in ("{", "["):
            try:
                value = json.loads(body)
            except (ValueError, RecursionError):
                yield "", body
            else:
                yield from unfold(value, depth + 1)
        case Mapping():
            for key, value in body.items():
                if isinstance(value, Mapping | list) or (isinstance(value, str) and value.lstrip()[:1] in ("{", "[")):
                    for inner, scalar in unfold(value, depth + 1):
                        yield inner or str(key), scalar
                else:
                    yield str(key), value
        case list():
            for value in body:
                yield from unfold(value, depth + 1)
        case _:
            yield "", body


def body_values(body: object) -> list[tuple[str, object]]:
    """The first results of `unfold`; the number is limited, since a body may have megabytes."""
    pairs = islice(unfold(body), MOST_VALUES)
    return [(key, value[:MOST_VALUE] if isinstance(value, str) else value) for key, value in pairs]


_TEXT_KEYS = ("message", "detail", "error", "msg", "raw", "error_description", "reason", "")


def body_message(pairs: list[tuple[str, object]]) -> str:
    """The most specific message in a body: the innermost `message`-like value, or the text of an HTML page."""
    for wanted in _TEXT_KEYS:
        texts = [value.strip() for key, value in pairs if key == wanted and isinstance(value, str) and value.strip()]
        if wanted == "message" and (raw := [value for key, value in pairs if key == "raw" and isinstance(value, str)]):
            texts += [value.strip() for value in raw]  # OpenRouter: the provider's own words
        if texts:
            return _plain(texts[-1])
    return ""


def _plain(text: str) -> str:
    if "<html" in text[:500].lower() or "<!doctype" in text[:100].lower():
        title = _TITLE.search(text)
        text = title.group(1) if title else _TAG.sub(" ", text)
    return text


def one_line(text: str, limit: int = _MAX_MESSAGE) -> str:
    """`text` on one line, without control characters and keys, at most `limit` characters."""
    line = redact(" ".join(_CONTROL.sub(" ", text).split()))
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def retry_after(headers: Mapping[str, str], text: str, now: float) -> float | None:
    """Seconds that the server asks to wait, from its headers or its text; None if it doesn't say.

    Reads `retry-after-ms`, `retry-after` (seconds or an HTTP date), and texts such as "try again in 1m20.5s". `now` is
    in seconds since the epoch.
    """
    lower = {key.lower(): value.strip() for key, value in headers.items()}
    if (wait := _number(lower.get("retry-after-ms"))) is not None:
        return wait / 1000
    if value := lower.get("retry-after"):
        if (wait := _number(value)) is not None:
            return wait
        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - now)
        except (ValueError, OverflowError):
            pass
    if match := _WAIT.search(text):
        return sum(float(number) * _UNIT[unit.lower()] for number, unit in _WAIT_PART.findall(match.group(1)))
    return None


def retry_delay(pairs: list[tuple[str, object]]) -> float | None:
    """Google's `RetryInfo.retryDelay` ("33s") in seconds."""
    for key, value in pairs:
        if key == "retryDelay" and isinstance(value, str):
            return _number(value.removesuffix("s"))
    return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None

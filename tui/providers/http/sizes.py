"""The memory that a server's text takes, and the error if it is too much. Pure."""

from __future__ import annotations

from tui.providers.base import ProviderError, StreamEvent
from tui.text.numbers import size_text

# Bytes that CPython 3.11 (64 bit) uses for JSON values in addition to their characters: an empty list with its slot in
# another one, a dict with one entry, the slot of a value and the value's header.
_LIST, _DICT, _VALUE = 64, 240, 64

_EVENT = 64  # bytes of an event of an answer in addition to its text


class TooLargeError(Exception):
    """A server sent more than `limit` bytes in one piece."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} bytes")
        self.limit = limit


def text_cost(text: str) -> int:
    """The most memory that `text` takes, in bytes."""
    return len(text) if text.isascii() else 4 * len(text)


def check_json_cost(content: bytes | str, limit: int) -> None:
    """Raise `TooLargeError` if `content`, parsed as JSON, would take more than twice `limit` bytes of memory.

    Counts the text, its strings, and each value: `[[],[],[]...` takes more than twenty times its length.
    """
    length = len(content) if content.isascii() else 4 * len(content)
    if 2 * length + _DICT * length <= 2 * limit:
        return
    if isinstance(content, str):
        counts = content.count("["), content.count("{"), content.count(",")
    else:
        counts = content.count(b"["), content.count(b"{"), content.count(b",")
    lists, dicts, values = counts
    if 2 * length + _LIST * lists + _DICT * dicts + _VALUE * values > 2 * limit:
        raise TooLargeError(limit)


def event_cost(event: StreamEvent) -> int:
    """Bytes of memory that `event` takes as part of an answer."""
    values = (getattr(event, name) for name in event.__slots__)
    return _EVENT + sum(text_cost(value) for value in values if isinstance(value, str))


def too_large(provider: str, limit: int) -> ProviderError:
    """The error of an answer of more than `limit` bytes."""
    return ProviderError(
        "protocol",
        f"{provider}: the server sent more than {size_text(limit)} in one answer. What arrived is kept. "
        f"If so much is meant to come, raise max_response (bytes) in [providers.{provider}].",
    )

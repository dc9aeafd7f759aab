"""Encodes requests as JSON, off the event loop and without repeating what the request before had."""

from __future__ import annotations

import json
from typing import Any

from tui.providers.wire import Json, whole_texts

_LISTS = ("messages", "input")  # where the dialects have the conversation


class BodyEncoder:
    """The JSON of one server's requests. A request begins with the messages of the last one: their JSON is kept."""

    def __init__(self) -> None:
        self._items: list[Any] = []
        self._encoded: list[bytes] = []

    def encode(self, body: Json) -> bytes:
        """`body` as `encode_json` would write it."""
        fields = []
        for name, value in body.items():
            is_list = name in _LISTS and isinstance(value, list)
            encoded = b"[" + b",".join(self._items_of(value)) + b"]" if is_list else encode_json(value)
            fields.append(encode_json(name) + b":" + encoded)
        return b"{" + b",".join(fields) + b"}"

    def _items_of(self, items: list[Any]) -> list[bytes]:
        shared = 0
        for before, now in zip(self._items, items, strict=False):  # mostly the same texts: their identity is compared
            if before != now:
                break
            shared += 1
        encoded = [*self._encoded[:shared], *map(encode_json, items[shared:])]
        self._items, self._encoded = items, encoded
        return encoded


def encode_json(value: Any) -> bytes:
    """`value` as JSON in UTF-8. A lone surrogate (from a paste, a file, a server) must not stop it."""
    try:
        return _dumps(value).encode()
    except UnicodeEncodeError:
        return _dumps(whole_texts(value)).encode()


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)

"""Messages for tests, in one line: a string among the parts is a `Text`."""

from __future__ import annotations

from typing import Any

from tui.messages import Message, Part, Text, Usage

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02\x08\x02\0\0\0"
"""The beginning of a picture of 3 by 2 pixels: enough for whoever looks for its size."""


def user(*parts: str | Part, **fields: Any) -> Message:
    """A message of the person. `fields` are those of `Message`."""
    return Message("user", _parts(parts), **fields)


def assistant(*parts: str | Part, **fields: Any) -> Message:
    """A model's answer."""
    return Message("assistant", _parts(parts), **fields)


def measured(text: str, *, tokens: tuple[int | None, int | None] = (50_000, 2_000), **fields: Any) -> Message:
    """An answer whose server reported `tokens` of input and output."""
    source = {"provider": "anthropic", "model": "claude-x", "created_at": 2.0}
    return assistant(text, usage=Usage(*tokens), **source, **fields)


def tool(*parts: str | Part, **fields: Any) -> Message:
    """The results of an answer's tool calls, with what is attached to them."""
    return Message("tool", _parts(parts), **fields)


def _parts(parts: tuple[str | Part, ...]) -> tuple[Part, ...]:
    return tuple(Text(part) if isinstance(part, str) else part for part in parts)

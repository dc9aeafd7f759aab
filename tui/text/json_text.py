"""JSON written by a model, a server or in a file."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any

MAX_DEPTH = 200
"""Maximal levels of nesting. Python's parser and writer are recursive; real arguments have few levels."""


def _finite(number: str) -> float | None:
    value = float(number)
    return value if isfinite(value) else None


# JSON has no NaN or Infinity, and not all servers read numbers beyond a double's range: sent back in the arguments of a
# tool call, one would have each later request of the conversation refused.
_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=lambda _name: None)


def parse_json(text: str) -> Any:
    """`json.loads`, but rejects deep nesting, and reads numbers that JSON doesn't have as null. Raises ValueError."""
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _deeper(value, MAX_DEPTH):
        raise ValueError("nested too deeply")
    return value


def parse_jsonc(text: str) -> Any:
    """JSON as people write it into configuration files, with comments and trailing commas. Raises ValueError."""
    bare = _COMMENT.sub(lambda match: match["string"] or re.sub(r"[^\n]", " ", match[0]), text)  # lines stay the same
    return parse_json(_TRAILING_COMMA.sub(lambda match: match["string"] or " ", bare))


_STRING = r'(?P<string>"(?:[^"\\\n]|\\.)*+"?)'  # also one without an end: each character is looked at once
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")


class NotAnObjectError(ValueError):
    """JSON of another kind ("array") instead of an object."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"{kind} instead of an object")
        self.kind = kind


def parse_object(text: str) -> dict[str, Any]:
    """The JSON object that a model meant as a tool's arguments. Raises ValueError if it is not clear.

    Models and servers also write: nothing, for a tool without arguments; an object inside a JSON string; one in a code
    fence; one followed by an end token or an extra brace; and an empty object, or the same one, first.
    """
    bare = text.strip()
    if fenced := _FENCE.fullmatch(bare):
        bare = fenced["inner"].strip()
    if not bare:
        return {}
    value, rest = _first_value(bare)
    if isinstance(value, str) and not rest and value.strip().startswith(("{", "```", '"')):
        return parse_object(value)
    if isinstance(value, dict) and rest and not _PADDING.fullmatch(rest):
        following, rest = _first_value(rest)
        if not rest and isinstance(following, dict) and value in ({}, following):
            return following
        raise ValueError("more than one value")
    if not isinstance(value, dict):
        raise NotAnObjectError(_KINDS.get(type(value), "number"))
    return value


_FENCE = re.compile(r"```(?:json)?\s*\n?(?P<inner>.*?)\s*```", re.DOTALL | re.IGNORECASE)
_PADDING = re.compile(r"(?:[\s}\]]|<\|?[\w/ -]{1,40}\|?>)*")  # extra braces, and tokens that end a call
_KINDS = {str: "string", list: "array", bool: "boolean", type(None): "null"}


def _first_value(text: str) -> tuple[Any, str]:
    """The JSON value at the beginning of `text`, and the rest. Raises ValueError."""
    try:
        value, end = _DECODER.raw_decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _deeper(value, MAX_DEPTH):
        raise ValueError("nested too deeply")
    return value, text[end:].strip()


def _deeper(value: object, most: int) -> bool:
    """Whether `value` has more than `most` levels; without recursion."""
    level = [value]
    for _ in range(most):
        inner: list[object] = []
        for node in level:
            match node:
                case list():
                    inner += node
                case dict():
                    inner += node.values()
        level = inner
    return any(isinstance(node, list | dict) for node in level)

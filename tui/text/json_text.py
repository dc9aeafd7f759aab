"""JSON that a model, a server or a file wrote."""

from __future__ import annotations

import json
from typing import Any

MOST_DEPTH = 200
"""Levels of nesting that are read. Python's parser and writer recurse; real arguments have a handful of levels."""


def parse_json(text: str) -> Any:
    """`json.loads`, but that what is nested too deeply is no JSON either. Raises ValueError."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if text.count("[") + text.count("{") > MOST_DEPTH and _deeper(value, MOST_DEPTH):
        raise ValueError("nested too deeply")
    return value


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

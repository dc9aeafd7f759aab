from __future__ import annotations

import pytest

from tui.text.json_text import MOST_DEPTH, parse_json


def nested(depth: int) -> str:
    return "[" * (depth - 1) + "{}" + "]" * (depth - 1)


def test_what_is_nested_too_deeply_is_no_json() -> None:
    assert parse_json(nested(MOST_DEPTH)) is not None
    for depth in (MOST_DEPTH + 1, 900, 100_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            parse_json(nested(depth))


def test_width_is_no_depth() -> None:
    assert len(parse_json(f"[{'[],' * 10_000}[]]")) == 10_001
    with pytest.raises(ValueError):
        parse_json("[" * 300)

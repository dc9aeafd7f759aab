"""Texts of recorded sessions, streamed in pieces, are drawn as if they had come whole."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.corpus import corpus_root
from tests.render.test_stream import streamed
from tui.render.markdown import markdown_rows
from tui.render.palette import make_palette
from tui.render.rows import Row

pytestmark = pytest.mark.corpus

WIDTH = 78
TEXTS = 150
MAX_TEXT = 20_000


def strings(value: object) -> Iterator[str]:
    """Every text worth drawing in a recorded line, whatever client wrote it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("text", "content", "thinking") and isinstance(inner, str) and 40 < len(inner) < MAX_TEXT:
                yield inner
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def recorded() -> list[str]:
    texts: set[str] = set()
    for path in sorted((corpus_root() / "sessions").rglob("*.jsonl")):
        content = path.read_text(encoding="utf-8")
        try:
            values = [json.loads(line) for line in content.split("\n") if line.strip()]
        except ValueError:  # one client writes a single value over many lines
            values = [json.loads(content)]
        texts.update(strings(values))
    ordered = sorted(texts, key=lambda text: (len(text), text))
    return ordered[:: max(1, len(ordered) // TEXTS)]


def shown(rows: list[Row]) -> list[tuple[str, int, int, str]]:
    return [(row.text, row.start, row.end, row.joint) for row in rows]


def test_recorded_texts_stream_as_they_are_drawn_whole() -> None:
    palette = make_palette({})
    texts = recorded()
    assert len(texts) >= TEXTS
    for text in texts:
        rows = streamed(text, WIDTH, palette, [max(5, len(text) // 40)])
        whole = markdown_rows(text, WIDTH, palette)
        assert shown(rows) == shown(whole), text[:200]
        assert all(row.cells <= WIDTH for row in whole), text[:200]

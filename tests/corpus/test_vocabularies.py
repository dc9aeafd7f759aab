"""Counts of texts in many languages against those of the families' real vocabularies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.bench.languages import score
from tests.corpus import corpus_root
from tui.context.counting.tokenizers import get_tokenizer

pytestmark = [pytest.mark.corpus, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def texts() -> list[Mapping[str, Any]]:
    with (corpus_root() / "languages" / "texts.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_claude_counts_as_anthropic_does() -> None:
    older, newer = get_tokenizer("claude-opus-4-5"), get_tokenizer("claude-opus-4-7")
    compared = 0
    with (corpus_root() / "languages" / "claude_pairs.jsonl").open(encoding="utf-8") as lines:
        for line in list(lines)[::3]:  # our reader of these tables is in Python: all of them take a minute
            pair = json.loads(line)
            if pair.get("system") is None and pair["kind"] != "recorded call":
                counts = pair["provider_counts"]
                assert older.count(pair["text"]) == counts.get("claude-opus-4-5", 0) - 7, pair["id"]
                assert newer.count(pair["text"]) == counts.get("claude-opus-4-7", 0) - 11, pair["id"]
                compared += 1
    assert compared >= 100


def test_languages_are_within_what_is_promised(texts: list[Mapping[str, Any]]) -> None:
    scores = score(texts)
    assert all(share >= 0.99 for share in scores.exact.values()), scores.exact
    assert scores.good_cells >= 668
    assert scores.p95 <= 0.12
    assert scores.held >= 0.95
    assert scores.bound_ratio <= 1.12
    assert scores.weak_cells <= 20

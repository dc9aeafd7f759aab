"""Counts of texts in many languages against those of the families' real vocabularies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.bench.fit_classes import POOLED
from tests.bench.languages import score
from tests.corpus import corpus_root
from tui.context.counting.tokenizers import count_text, get_tokenizer

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


def test_the_bound_of_a_model_of_no_known_name_holds_in_every_script(texts: list[Mapping[str, Any]]) -> None:
    held: dict[str, list[bool]] = {}
    for text in texts:
        bound = count_text(text["text"], "unheard-of").upper_bound
        held.setdefault(text["language"], []).extend(text["counts"][name] <= bound for name in POOLED)
    shares = {language: sum(fits) / len(fits) for language, fits in held.items()}
    assert min(shares.values()) >= 0.55, shares
    assert sum(map(sum, held.values())) >= 0.95 * sum(map(len, held.values()))

"""Whole requests nobody measured before, with the models they went to left out of the fit."""

from __future__ import annotations

from statistics import median

import pytest

from tests.bench.fit_priors import FAMILIES, evaluate
from tests.bench.wire_requests import Row, read_rows
from tests.corpus import corpus_root
from tui.context.counting.counting import TokenCounter
from tui.context.estimate.ledger import estimate_preamble

pytestmark = [pytest.mark.corpus, pytest.mark.timeout(600)]

LIMITS = {
    ("openai", False): 0.02,
    ("openai", True): 0.05,
    ("anthropic", False): 0.04,
    ("anthropic", True): 0.05,
}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return [row for row in read_rows(corpus_root() / "requests.jsonl") if isinstance(row, Row)]


def test_errors_with_the_model_left_out(rows: list[Row]) -> None:
    evaluated = evaluate(rows)
    for key, limit in LIMITS.items():
        errors = [error for row, error in evaluated if (row.family, bool(row.request.tools)) == key]
        assert len(errors) >= 40, key
        assert median(errors) <= limit, key


def test_the_table_in_use_is_as_good(rows: list[Row]) -> None:
    """The program's own estimate, with the numbers of `families.py`."""
    counter = TokenCounter()
    for key, limit in LIMITS.items():
        errors = []
        for row in rows:
            if (row.family, bool(row.request.tools)) == key:
                sizes = sum(counter.count_message(message, row.model).size for message in row.request.messages)
                tokens = estimate_preamble(row.request, counter).total + sizes
                errors.append(abs(tokens - row.actual) / row.actual)
        assert median(errors) <= limit, key


def test_every_family_has_rows(rows: list[Row]) -> None:
    from tui.context.counting.families import plain_name

    for family in FAMILIES:
        assert any(family.kin(plain_name(row.model)) for row in rows), family.name

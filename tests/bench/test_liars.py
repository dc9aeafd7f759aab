"""A slice of the matrix of liars: every liar, every dialect, every kind of window."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.bench.liars import DIALECTS, LIARS, WINDOW_KINDS, Lying, Said, body_of, converse, matrix
from tui.context.estimate.evidence import Claim, Predecessor
from tui.context.estimate.measurements import Verdict

EVERY = 59  # of the cells; a prime, so that every value of every axis is in the slice


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_there_are_liars_enough_and_the_slice_has_all_axes() -> None:
    assert len(LIARS) >= 25
    cells = list(matrix(EVERY))
    assert {cell.dialect for cell in cells} == set(DIALECTS)
    assert {cell.window for cell in cells} == set(WINDOW_KINDS)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_no_lie_makes_a_number_wrong_or_a_model_unusable(part: int) -> None:
    held = [(cell, converse(cell)) for cell in list(matrix(EVERY))[part::3]]
    assert [(cell, outcome.wrong) for cell, outcome in held if outcome.wrong] == []
    assert sum(outcome.exact for _, outcome in held) > 0.3 * sum(outcome.calls for _, outcome in held)


@pytest.mark.parametrize("off", [-0.08, 0.0, 0.15])
def test_an_honest_server_is_exact_from_the_first_call_on_whatever_the_client_counts_with(off: float) -> None:
    outcome = converse(Lying("nothing", "chat", "known", 10, 0, seed=7, off=off))
    assert (outcome.wrong, outcome.exact) == ([], outcome.calls)


def test_it_notices_when_everything_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    def gullible(claim: Claim, steps: list[Predecessor]) -> Verdict:
        return Verdict(confirmed=True)

    monkeypatch.setattr("tui.context.estimate.evidence.weigh", gullible)
    for liar in ("5,000,000", "cut to the window", "a placeholder of 100"):
        assert converse(Lying(liar, "chat", "unknown", 3, 8, seed=5)).wrong, liar


def test_the_dialects_write_the_same_call_in_their_own_way() -> None:
    report = Said(100, 7, 60)
    assert body_of(report, "anthropic") == {"input_tokens": 40, "output_tokens": 7, "cache_read_input_tokens": 60}
    assert body_of(report, "chat")["prompt_tokens_details"] == {"cached_tokens": 60}
    assert body_of(Said(..., 7), "responses") == {"output_tokens": 7, "input_tokens_details": {"cached_tokens": 0}}

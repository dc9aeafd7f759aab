"""A few damaged inputs of each kind; `python -m tests.bench fuzz` has many."""

from __future__ import annotations

import pytest

from tests.bench.fuzz import TARGETS, attack


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_whatever_comes_a_reader_raises_only_what_it_says(target: str) -> None:
    attack(target, 60, seed=1)

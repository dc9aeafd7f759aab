"""A few conversations of random actions; `python -m tests.bench actions` has many."""

from __future__ import annotations

import pytest

from tests.bench import actions


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
async def test_whatever_a_person_does_the_laws_hold(seed: int) -> None:
    person = actions.Person(seed)
    await person.run(25)
    assert (person.faults, len(person.done)) == ([], 25)

from __future__ import annotations

import random

import pytest

from tests.bench.linear import least_absolute, solve
from tests.bench.rows import BenchRow, table


def test_a_system_is_solved() -> None:
    assert solve([[0.0, 2.0], [4.0, 1.0]], [6.0, 11.0]) == pytest.approx([2.0, 3.0])


def test_the_majority_wins_over_outliers() -> None:
    chance = random.Random(3)
    rows = [[1.0, chance.uniform(0, 100)] for _ in range(60)]
    goal = [7.0 + 1.5 * x for _, x in rows]
    goal[:15] = [value + 400 for value in goal[:15]]
    solution = least_absolute(rows, goal, [1 / 80] * 60, [(0.0, 100.0), (1.0, 10.0)])
    assert solution[0] == pytest.approx(7.0, abs=2.0)
    assert solution[1] == pytest.approx(1.5, abs=0.05)


def test_what_the_rows_do_not_say_stays_where_it_is_drawn_to() -> None:
    solution = least_absolute([[1.0, 0.0]] * 5, [3.0] * 5, [1.0] * 5, [(0.0, 10.0), (42.0, 1.0)])
    assert solution == pytest.approx([3.0, 42.0], abs=0.1)


def test_a_row_over_its_limit_is_marked() -> None:
    good, slow, late = (
        BenchRow("good", 1.0, 1.0, 1.1),
        BenchRow("slow", 2.0, 1.0, 1.1),
        BenchRow("late", 1.0, 1.0, 1.1, 0.5),
    )
    assert [row.ok for row in (good, slow, late)] == [True, False, False]
    lines = table([good, slow, late]).splitlines()
    assert ["OVER" in line for line in lines] == [False, False, True, True]

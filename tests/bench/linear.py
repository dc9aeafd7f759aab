"""Least absolute error by reweighted least squares, in plain Python: a handful of unknowns, a few hundred rows."""

from __future__ import annotations

from collections.abc import Sequence

TYPICAL = 0.05  # relative error of a row


def least_absolute(
    table: Sequence[Sequence[float]],
    goal: Sequence[float],
    weights: Sequence[float],
    drawn: Sequence[tuple[float, float]],
) -> list[float]:
    """x with the least sum of `weights` x |table x - goal|, drawn to values: `drawn` has (value, deviation) of each x.

    A deviation of the size named costs as much as one row that is off by 5 % (with weights of 1 / goal).
    """
    size = len(drawn)
    solution = [value for value, _ in drawn]
    strengths = [TYPICAL / deviation**2 for _, deviation in drawn]
    for _ in range(60):
        matrix = [[strengths[i] if i == j else 0.0 for j in range(size)] for i in range(size)]
        right = [strengths[i] * drawn[i][0] for i in range(size)]
        for row, target, weight in zip(table, goal, weights, strict=True):
            error = abs(sum(a * x for a, x in zip(row, solution, strict=True)) - target) * weight
            force = weight * weight / max(error, 0.01)
            for i in range(size):
                right[i] += force * row[i] * target
                for j in range(size):
                    matrix[i][j] += force * row[i] * row[j]
        solution = solve(matrix, right)
    return solution


def solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """The solution of a small linear system by elimination with pivoting."""
    size = len(right)
    rows = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    for step in range(size):
        pivot = max(range(step, size), key=lambda index: abs(rows[index][step]))
        rows[step], rows[pivot] = rows[pivot], rows[step]
        for index in range(step + 1, size):
            ratio = rows[index][step] / rows[step][step]
            rows[index] = [a - ratio * b for a, b in zip(rows[index], rows[step], strict=True)]
    solution = [0.0] * size
    for step in reversed(range(size)):
        rest = sum(rows[step][index] * solution[index] for index in range(step + 1, size))
        solution[step] = (rows[step][size] - rest) / rows[step][step]
    return solution

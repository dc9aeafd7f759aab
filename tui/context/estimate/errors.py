"""Errors of predictions of whole requests, and the upper bound that follows from them."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

KEPT_ERRORS = 256
ENOUGH_CALLS = 20  # from here on a learned factor may judge reports
BOUND_CALLS = 8  # from here on the upper bound is based on the model's own errors
COVERAGE = 0.95  # share of calls that the upper bound covers
EARLY_SPREAD = 6.0  # of the fixed margin, until then: 95 % of 700 recorded early calls were within it
LEVEL_STEP = 0.05  # by which the quantile follows what was covered (Gibbs & Candès 2021, gamma)
LEVEL_LOW, LEVEL_HIGH = 0.85, 0.99


@dataclass(frozen=True)
class Errors:
    """The errors of one kind of prediction, latest last.

    `scaled` are (actual - predicted) in units of the fixed margin, `relative` shares of the actual number. `calls` is
    how many there were in all.
    """

    scaled: tuple[float, ...] = ()
    relative: tuple[float, ...] = ()
    calls: int = 0

    def add(self, predicted: float, actual: float, margin: float) -> Errors:
        """Return this with one more error of a total, in tokens; `margin` is the fixed one it had."""
        if margin <= 0 or actual <= 0:
            return self
        error = actual - predicted
        return Errors(
            (*self.scaled, error / margin)[-KEPT_ERRORS:],
            (*self.relative, error / actual)[-KEPT_ERRORS:],
            self.calls + 1,
        )

    @cached_property
    def spread(self) -> float | None:
        """What the fixed margin is multiplied by for the upper bound; None before `BOUND_CALLS` calls.

        The order statistic of conformal prediction. Errors shrink while a session goes on and come in bursts, so its
        level follows the share of calls that were covered (adaptive conformal inference).
        """
        if len(self.scaled) < BOUND_CALLS:
            return None
        ordered = sorted(self.scaled[:BOUND_CALLS])
        level = COVERAGE
        for error in self.scaled[BOUND_CALLS:]:
            level += LEVEL_STEP * (COVERAGE - (error <= _order_statistic(ordered, level)))
            level = min(max(level, LEVEL_LOW), LEVEL_HIGH)
            insort(ordered, error)
        return max(0.0, _order_statistic(ordered, level))

    @cached_property
    def p95_percent(self) -> float | None:
        """95th percentile of the absolute error in percent; None before the second call."""
        if len(self.relative) < 2:
            return None
        return 100 * _quantile([abs(error) for error in self.relative], 0.95)

    def to_json(self) -> dict[str, object]:
        """A JSON object for the store."""
        return {"call_errors": list(self.scaled), "relative": list(self.relative), "calls": self.calls}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Errors:
        """The inverse of `to_json`. Raises `ValueError`, `TypeError` or `KeyError` for malformed data."""
        scaled, relative = (tuple(map(float, data.get(key, ())))[-KEPT_ERRORS:] for key in ("call_errors", "relative"))
        return cls(scaled, relative, int(data["calls"]))


def _order_statistic(ordered: Sequence[float], level: float) -> float:
    """The value that the next one does not exceed with a chance of `level`, whatever the distribution."""
    return ordered[min(len(ordered), ceil(level * (len(ordered) + 1))) - 1]


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)

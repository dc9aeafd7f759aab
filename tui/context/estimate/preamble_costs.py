"""The observed cost of system prompts and tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median
from typing import Any, NamedTuple

from tui.context.estimate.fit import FACTOR_HIGH, FACTOR_LOW

KEPT_PREAMBLES = 16
AGREE_SHARE, AGREE_SLACK = 0.05, 20.0  # largest difference between two observations that agree: share, tokens


class PreambleCost(NamedTuple):
    """Estimated and actual tokens of a system prompt with its tools; `agreed`: confirmed by a second call."""

    estimated: float
    actual: float
    agreed: bool = False


@dataclass(frozen=True)
class PreambleCosts:
    """What is learned of one model's preambles: system prompt and tools together.

    `costs` are by digest (hex), latest last; `changes` pairs (estimated, actual) of what a changed preamble added.
    """

    costs: Mapping[str, PreambleCost] = field(default_factory=dict)
    changes: tuple[tuple[float, float], ...] = ()

    def learn(self, digest: str, estimated: float, actual: float) -> PreambleCosts:
        """Return this with the cost in tokens of the system prompt and tools with this digest."""
        if actual <= 0:
            return self
        before = self.costs.get(digest)
        agreed = before is not None and abs(actual - before.actual) <= AGREE_SHARE * before.actual + AGREE_SLACK
        others = {key: value for key, value in self.costs.items() if key != digest}
        others[digest] = PreambleCost(estimated, actual, agreed)
        return replace(self, costs=dict(list(others.items())[-KEPT_PREAMBLES:]))

    def learn_change(self, estimated: float, actual: float) -> PreambleCosts:
        """Return this with the actual tokens that a change of system prompt or tools added."""
        if abs(estimated) < 1 or actual / estimated <= 0:
            return self
        return replace(self, changes=(*self.changes, (estimated, actual))[-KEPT_PREAMBLES:])

    def tokens(self, digest: str, estimated: float, least_factor: float = 1.0) -> float:
        """Tokens of system prompt and tools.

        The learned figure, or the latest learned one plus the estimated difference, or `least_factor` times the
        estimate.
        """
        agreed = {key: cost for key, cost in self.costs.items() if cost.agreed}
        if digest in agreed:
            return agreed[digest].actual
        if not agreed:
            return estimated * least_factor
        nearest = list(agreed.values())[-1]
        return max(0.0, nearest.actual + (estimated - nearest.estimated) * self.factor)

    def knows(self, digest: str) -> bool:
        """Whether two calls agreed on what system prompt and tools of this digest cost."""
        cost = self.costs.get(digest)
        return cost is not None and cost.agreed

    def change(self, before: tuple[str, float], after: tuple[str, float]) -> float:
        """What system prompt and tools add when they change, in tokens; both given as digest and estimate."""
        costs = self.costs.get(before[0]), self.costs.get(after[0])
        if costs[0] is not None and costs[1] is not None:
            return costs[1].actual - costs[0].actual
        return (after[1] - before[1]) * self.factor

    @cached_property
    def factor(self) -> float:
        """What the estimated difference of two preambles is multiplied by."""
        if len(self.changes) < 2:  # a single observation
            return 1.0
        ratio = median(actual / estimated for estimated, actual in self.changes)
        return min(max(ratio, FACTOR_LOW), FACTOR_HIGH)

    @property
    def agreed(self) -> int:
        """How many preambles two calls agreed on."""
        return sum(cost.agreed for cost in self.costs.values())

    def to_json(self) -> dict[str, object]:
        """A JSON object for the store."""
        return {
            "preambles": {key: list(cost) for key, cost in self.costs.items()},
            "tool_changes": [list(pair) for pair in self.changes],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PreambleCosts:
        """The inverse of `to_json`. Raises `ValueError`, `TypeError` or `KeyError` for malformed data."""
        costs = {
            str(key): PreambleCost(float(cost[0]), float(cost[1]), len(cost) > 2 and bool(cost[2]))
            for key, cost in data["preambles"].items()
        }
        return cls(costs, tuple((float(old), float(new)) for old, new in data["tool_changes"]))


def agree(one: float, other: float) -> bool:
    """Whether two observations of the same tokens agree."""
    return abs(one - other) <= AGREE_SHARE * max(one, other) + AGREE_SLACK

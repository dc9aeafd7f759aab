"""Measured costs in tokens: replies by their output, other messages by the difference of two calls, preambles by the
provider's count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from tui.context.counting.cache import Cache, CountCache

CountSource: TypeAlias = Literal["measured", "derived", "counted", "estimated"]

COST_VERSION = 1  # raise when the meaning of the stored tuples changes
_SOURCES: tuple[CountSource, ...] = ("measured", "derived", "counted")


class TokenCost(NamedTuple):
    """Tokens of a message or preamble in the input, how many of them are reasoning, and where the figure comes from."""

    tokens: int
    reasoning: int
    source: CountSource


class CostBook:
    """Costs by (provider, model, full digest), persisted in the same store as the counts."""

    def __init__(self, stored: CountCache | None = None) -> None:
        self._costs = Cache(stored, COST_VERSION, _to_cost, _to_tuple)

    def copy(self) -> CostBook:
        """A book of the costs in memory that stores nothing."""
        book = CostBook()
        book._costs = self._costs.copy()
        return book

    def get(self, provider: str, model: str, digests: Sequence[bytes]) -> list[TokenCost | None]:
        """The cost of each message, or None where it is unknown."""
        costs = self._costs.get(_name(provider, model), digests)
        return [costs.get(digest) for digest in digests]

    def put(self, provider: str, model: str, costs: Mapping[bytes, TokenCost]) -> None:
        """Add or replace costs."""
        self._costs.put(_name(provider, model), costs)

    def forget(self, provider: str, model: str) -> None:
        """Remove all costs of a model."""
        self._costs.clear(_name(provider, model))


def _name(provider: str, model: str) -> str:
    return f"cost:{provider}/{model}"


def _to_cost(values: tuple[int, ...]) -> TokenCost:
    tokens, reasoning, source = values
    return TokenCost(tokens, reasoning, _SOURCES[source])


def _to_tuple(cost: TokenCost) -> tuple[int, ...]:
    return cost.tokens, cost.reasoning, _SOURCES.index(cost.source)

"""Measured costs of single messages: replies by their output, other messages by the difference of two calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Literal, NamedTuple, TypeAlias

from tui.context.counting.counting import MEMORY_ENTRIES, CountCache

CountSource: TypeAlias = Literal["measured", "derived", "counted", "estimated"]

COST_VERSION = 1  # raise when the meaning of the stored tuples changes
_SOURCES: tuple[CountSource, ...] = ("measured", "derived", "counted")


class Cost(NamedTuple):
    """Tokens of a message in the input, how many of them are reasoning, and where the figure comes from."""

    tokens: int
    reasoning: int
    source: CountSource


class CostBook:
    """Costs by (provider, model, full digest of the message), persisted in the same store as the counts."""

    def __init__(self, cache: CountCache | None = None) -> None:
        self._cache = cache
        self._spaces: dict[str, dict[bytes, Cost]] = {}  # what was read or put, by (provider, model)
        self._lock = Lock()

    def copy(self) -> CostBook:
        """A book of the costs in memory that stores nothing."""
        book = CostBook()
        with self._lock:
            book._spaces = {space: dict(costs) for space, costs in self._spaces.items()}
        return book

    def get(self, provider: str, model: str, digests: Sequence[bytes]) -> list[Cost | None]:
        """The cost of each message, or None where it is unknown."""
        space = _space(provider, model)
        with self._lock:
            costs = self._spaces.setdefault(space, {})
            if self._cache is not None and len(costs) > MEMORY_ENTRIES:
                costs.clear()
            missing = [digest for digest in digests if digest not in costs]
        if missing and self._cache is not None:
            stored = self._cache.get_many(space, COST_VERSION, missing)
            read = {digest: _read(stored[digest]) for digest in missing if digest in stored}
            with self._lock:
                costs.update((digest, cost) for digest, cost in read.items() if cost is not None)
        with self._lock:
            return [costs.get(digest) for digest in digests]

    def put(self, provider: str, model: str, costs: Mapping[bytes, Cost]) -> None:
        """Add or replace costs."""
        space = _space(provider, model)
        with self._lock:
            self._spaces.setdefault(space, {}).update(costs)
        if self._cache is not None:
            values = {
                digest: (cost.tokens, cost.reasoning, _SOURCES.index(cost.source))
                for digest, cost in costs.items()
                if cost.source != "estimated"
            }
            self._cache.put_many(space, COST_VERSION, values)

    def forget(self, provider: str, model: str) -> None:
        """Remove all costs of a model."""
        space = _space(provider, model)
        with self._lock:
            self._spaces.pop(space, None)
        if self._cache is not None:
            self._cache.clear(space)


def _space(provider: str, model: str) -> str:
    return f"cost:{provider}/{model}"


def _read(values: tuple[int, ...] | None) -> Cost | None:
    if values is None or len(values) != 3 or not 0 <= values[2] < len(_SOURCES):
        return None
    return Cost(values[0], values[1], _SOURCES[values[2]])

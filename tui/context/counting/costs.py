"""Measured costs of single messages: replies by their output, other messages by the difference of two calls."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Literal, NamedTuple, TypeAlias

from tui.context.counting.counting import CountCache

CountSource: TypeAlias = Literal["measured", "derived", "counted", "estimated"]

COST_VERSION = 1  # raise when the meaning of the stored tuples changes
_SOURCES: tuple[CountSource, ...] = ("measured", "derived", "counted")
_REMEMBERED = 65_536


class Cost(NamedTuple):
    """Tokens of a message in the input, how many of them are reasoning, and where the figure comes from."""

    tokens: int
    reasoning: int
    source: CountSource


class CostBook:
    """Costs by (provider, model, full digest of the message), persisted in the same store as the counts."""

    def __init__(self, cache: CountCache | None = None) -> None:
        self._cache = cache
        self._recent: OrderedDict[tuple[str, bytes], Cost | None] = OrderedDict()
        self._lock = Lock()

    def copy(self) -> CostBook:
        """A book of the costs in memory that stores nothing."""
        book = CostBook()
        with self._lock:
            book._recent = self._recent.copy()
        return book

    def get(self, provider: str, model: str, digests: Sequence[bytes]) -> list[Cost | None]:
        """The cost of each message, or None where it is unknown."""
        space = _space(provider, model)
        with self._lock:
            missing = [digest for digest in digests if (space, digest) not in self._recent]
        if missing:
            stored = {} if self._cache is None else self._cache.get_many(space, COST_VERSION, missing)
            self._remember(space, {digest: _read(stored.get(digest)) for digest in missing})
        with self._lock:
            return [self._recent.get((space, digest)) for digest in digests]

    def put(self, provider: str, model: str, costs: Mapping[bytes, Cost]) -> None:
        """Add or replace costs."""
        space = _space(provider, model)
        self._remember(space, costs)
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
            for key in [key for key in self._recent if key[0] == space]:
                del self._recent[key]
        if self._cache is not None:
            self._cache.clear(space)

    def _remember(self, space: str, costs: Mapping[bytes, Cost | None]) -> None:
        with self._lock:
            for digest, cost in costs.items():
                self._recent[space, digest] = cost
            while len(self._recent) > _REMEMBERED:
                self._recent.popitem(last=False)


def _space(provider: str, model: str) -> str:
    return f"cost:{provider}/{model}"


def _read(values: tuple[int, ...] | None) -> Cost | None:
    if values is None or len(values) != 3 or not 0 <= values[2] < len(_SOURCES):
        return None
    return Cost(values[0], values[1], _SOURCES[values[2]])

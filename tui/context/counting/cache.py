"""Counts and costs by content: in memory, over a store that outlives the process.

Costs are measured: of replies by their output, of other messages by the difference of two calls, of preambles by the
provider's count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Literal, NamedTuple, Protocol, TypeAlias

MEMORY_ENTRIES = 65_536  # values in memory that can be read from the store; when there are more, it begins anew

Counts: TypeAlias = Mapping[bytes, tuple[int, ...]]
"""Values by digest."""


class CountCache(Protocol):
    """Persistent storage for counts. Values are small tuples of integers."""

    def get_many(self, tokenizer: str, version: int, digests: Sequence[bytes]) -> Counts:
        """The stored values of `digests`; those without one are left out."""
        ...

    def put_many(self, tokenizer: str, version: int, values: Counts) -> None:
        """Store `values`, replacing earlier ones. The store may drop old entries at any time."""
        ...

    def clear(self, tokenizer: str) -> None:
        """Remove all values stored under `tokenizer`."""
        ...


class Cache:
    """Values by digest, under the name of a tokenizer or of a model. Safe to use from several threads.

    Values stored under another `version` are not read.
    """

    def __init__(self, stored: CountCache | None, version: int) -> None:
        self._stored = stored
        self._version = version
        self._values: dict[str, dict[bytes, tuple[int, ...]]] = {}
        self._lock = Lock()

    def copy(self) -> Cache:
        """What is in memory, without the store."""
        copied = Cache(None, self._version)
        with self._lock:
            copied._values = {name: dict(values) for name, values in self._values.items()}
        return copied

    def get(self, name: str, digests: Sequence[bytes]) -> dict[bytes, tuple[int, ...]]:
        """The values of `digests`; those without one are left out."""
        with self._lock:
            remembered = self._values.setdefault(name, {})
            values = {digest: remembered[digest] for digest in digests if digest in remembered}
        missing = [digest for digest in digests if digest not in values]
        if missing and self._stored is not None:
            stored = self._stored.get_many(name, self._version, missing)
            self._remember(name, stored)
            values |= stored
        return values

    def put(self, name: str, values: Counts) -> None:
        """Add or replace values."""
        self._remember(name, values)
        if values and self._stored is not None:
            self._stored.put_many(name, self._version, values)

    def clear(self, name: str) -> None:
        """Remove all values of `name`."""
        with self._lock:
            self._values.pop(name, None)
        if self._stored is not None:
            self._stored.clear(name)

    def _remember(self, name: str, values: Counts) -> None:
        with self._lock:
            entries = len(values) + sum(map(len, self._values.values()))
            if self._stored is not None and entries > MEMORY_ENTRIES:
                self._values.clear()
            self._values.setdefault(name, {}).update(values)


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
        self._costs = Cache(stored, COST_VERSION)

    def copy(self) -> CostBook:
        """A book of the costs in memory that stores nothing."""
        book = CostBook()
        book._costs = self._costs.copy()
        return book

    def get(self, provider: str, model: str, digests: Sequence[bytes]) -> list[TokenCost | None]:
        """The cost of each message, or None where it is unknown."""
        costs: list[TokenCost | None] = []
        stored = self._costs.get(f"cost:{provider}/{model}", digests)
        for digest in digests:
            tokens, reasoning, source = stored.get(digest, (0, 0, -1))
            costs.append(None if source < 0 else TokenCost(tokens, reasoning, _SOURCES[source]))
        return costs

    def put(self, provider: str, model: str, costs: Mapping[bytes, TokenCost]) -> None:
        """Add or replace costs."""
        tuples = {digest: (*cost[:2], _SOURCES.index(cost.source)) for digest, cost in costs.items()}
        self._costs.put(f"cost:{provider}/{model}", tuples)

    def forget(self, provider: str, model: str) -> None:
        """Remove all costs of a model."""
        self._costs.clear(f"cost:{provider}/{model}")

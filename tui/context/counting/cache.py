"""Counts and costs by content: in memory, over a store that outlives the process.

Costs are measured: of replies by their output, of other messages by the difference of two calls, of preambles by the
provider's count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

MEMORY_ENTRIES = 65_536  # values in memory that can be read from the store; when there are more, it begins anew

Value = TypeVar("Value")


class CountCache(Protocol):
    """Persistent storage for counts. Values are small tuples of integers."""

    def get_many(self, tokenizer: str, version: int, digests: Sequence[bytes]) -> Mapping[bytes, tuple[int, ...]]:
        """The stored values of `digests`; those without one are left out."""
        ...

    def put_many(self, tokenizer: str, version: int, values: Mapping[bytes, tuple[int, ...]]) -> None:
        """Store `values`, replacing earlier ones. The store may drop old entries at any time."""
        ...

    def clear(self, tokenizer: str) -> None:
        """Remove all values stored under `tokenizer`."""
        ...


class Cache(Generic[Value]):
    """Values by digest, under the name of a tokenizer or of a model. Safe to use from several threads.

    `to_value` and `to_tuple` convert between values and what is stored. Values stored under another `version` are not
    read.
    """

    def __init__(
        self,
        stored: CountCache | None,
        version: int,
        to_value: Callable[[tuple[int, ...]], Value],
        to_tuple: Callable[[Value], tuple[int, ...]],
    ) -> None:
        self._stored = stored
        self._version = version
        self._to_value, self._to_tuple = to_value, to_tuple
        self._values: dict[str, dict[bytes, Value]] = {}
        self._lock = Lock()

    def copy(self) -> Cache[Value]:
        """What is in memory, without the store."""
        copied = Cache(None, self._version, self._to_value, self._to_tuple)
        with self._lock:
            copied._values = {name: dict(values) for name, values in self._values.items()}
        return copied

    def get(self, name: str, digests: Sequence[bytes]) -> dict[bytes, Value]:
        """The values of `digests`; those without one are left out."""
        with self._lock:
            remembered = self._values.setdefault(name, {})
            values = {digest: remembered[digest] for digest in digests if digest in remembered}
        missing = [digest for digest in digests if digest not in values]
        if missing and self._stored is not None:
            stored = self._stored.get_many(name, self._version, missing)
            read = {digest: self._to_value(value) for digest, value in stored.items()}
            self._remember(name, read)
            values |= read
        return values

    def put(self, name: str, values: Mapping[bytes, Value]) -> None:
        """Add or replace values."""
        self._remember(name, values)
        if values and self._stored is not None:
            tuples = {digest: self._to_tuple(value) for digest, value in values.items()}
            self._stored.put_many(name, self._version, tuples)

    def clear(self, name: str) -> None:
        """Remove all values of `name`."""
        with self._lock:
            self._values.pop(name, None)
        if self._stored is not None:
            self._stored.clear(name)

    def _remember(self, name: str, values: Mapping[bytes, Value]) -> None:
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

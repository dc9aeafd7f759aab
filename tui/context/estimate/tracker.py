"""`ConversationStateTracker`: finds the measured call that still describes a conversation, by content alone.

Every completed call is indexed by two chain digests: of what was sent, and of that plus the reply. A request is looked
up by walking back from its end to the longest prefix with a measurement for its model. This one rule covers resume,
fork, edit, rewind, regenerate, undo, model switch and trimming; nothing has to be reset.

The chains are over the messages' `body` digests, without reasoning: where reasoning was dropped or added, the
measurement is corrected by its tokens, taken from the usage of the call that produced it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Literal, Protocol, TypeAlias

from tui.messages import Message, is_sendable

MatchKind: TypeAlias = Literal["exact", "prefix", "none"]
Prefixes: TypeAlias = tuple[int, Callable[[int], bytes]]
"""The number of messages of a request, and the chain digest of its first so many."""

REMEMBERED = 2_048  # measurements kept for each (provider, model); the oldest are dropped first


@dataclass(frozen=True, slots=True)
class Measurement:
    """The usage of one call, and of which request. In tokens; digests are 32 bytes.

    `sent` and `replied` are chain digests over bodies, before and after the reply; `replied` is None where the reply is
    not known to be whole. `sent_reasoning` and `reply_reasoning` are the reasoning tokens inside `input_tokens` and
    `output_tokens` (estimated where the provider did not say: then `reasoning_known` is False). `preamble_tokens` is
    the estimate of system prompt and tools at the time, by which a later change of them is corrected. `cleared` are
    those of `input_tokens` that the provider's own context editing took out before the model read them. `counted` says
    that no call was made: it is the provider's count of what was sent. `unseen` are those of `output_tokens` that no
    part of the reply explains: reasoning billed without a word. `confirmed` says that the number agrees with one that
    was made without it, `doubt` how far it may be off as far as that one tells (see evidence.py). `predicted` is what
    was predicted for `input_tokens`, `first` says that this prediction had no measured call to go by.
    """

    provider: str
    model: str
    preamble: bytes
    sent: bytes
    replied: bytes | None
    messages: int
    input_tokens: int
    output_tokens: int | None
    sent_reasoning: int = 0
    reply_reasoning: int = 0
    reasoning_known: bool = True
    preamble_tokens: float = 0.0
    at: float = 0.0  # seconds since the epoch
    cleared: int = 0
    counted: bool = False
    unseen: int = 0
    confirmed: bool = True
    doubt: float = 0.0
    predicted: int | None = None
    first: bool = False


class MeasurementStore(Protocol):
    """Persistent storage for measurements."""

    def load(self, provider: str, model: str) -> Iterable[Measurement]:
        """Stored measurements of a model, oldest first."""
        ...

    def save(self, measurement: Measurement) -> None:
        """Add one. The store may drop old ones at any time."""
        ...

    def remove(self, measurement: Measurement) -> None:
        """Remove one that proved wrong."""
        ...

    def clear(self, provider: str, model: str) -> None:
        """Remove all of a model."""
        ...


@dataclass(frozen=True, slots=True)
class Match:
    """A measurement of the first `covered` messages of a request, including the reply if `with_reply`."""

    kind: MatchKind
    covered: int = 0
    measurement: Measurement | None = None
    with_reply: bool = False


NO_MATCH = Match("none")


class ConversationStateTracker:
    """Remembers measurements of all models. Safe to use from several threads."""

    def __init__(self, store: MeasurementStore | None = None) -> None:
        self._store = store
        self._models: dict[tuple[str, str], _Remembered] = {}
        self._lock = Lock()
        self.generation = 0  # increases with each measurement

    def copy(self) -> ConversationStateTracker:
        """A tracker of the measurements in memory that stores nothing."""
        tracker = ConversationStateTracker()
        for measurement in self.measurements():
            tracker.remember(measurement)
        return tracker

    def measurements(self) -> list[Measurement]:
        """Those in memory, of each model the oldest first."""
        with self._lock:
            return [measurement for remembered in self._models.values() for measurement in remembered.order.values()]

    def recall(self, provider: str, model: str) -> None:
        """Load the model's measurements for `find_other`. Reads the store: not on an event loop."""
        with self._lock:
            self._model(provider, model)

    def remember(self, measurement: Measurement) -> None:
        """Add a measurement, in the store too."""
        with self._lock:
            self._model(measurement.provider, measurement.model).add(measurement)
            self.generation += 1
        if self._store is not None:
            self._store.save(measurement)

    def withdraw(self, measurement: Measurement) -> None:
        """Remove a measurement that proved wrong, from the store too."""
        with self._lock:
            self._model(measurement.provider, measurement.model).remove(measurement)
            self.generation += 1
        if self._store is not None:
            self._store.remove(measurement)

    def forget(self, provider: str, model: str) -> None:
        """Remove all measurements of a model, from the store too."""
        with self._lock:
            self._models[provider, model] = _Remembered()
            self.generation += 1
        if self._store is not None:
            self._store.clear(provider, model)

    def find(self, provider: str, model: str, prefixes: Prefixes, preamble: bytes, above: int = 0) -> Match:
        """The measurement that covers the most of a request, and more than `above` messages."""
        length, chain = prefixes
        with self._lock:
            index = self._model(provider, model).index
            for covered in range(length, max(0, above), -1):
                entries = index.get(chain(covered))
                if entries:
                    measurement, with_reply = _best(entries, preamble)
                    return Match("exact" if covered == length else "prefix", covered, measurement, with_reply)
        return NO_MATCH

    def find_other(self, provider: str, model: str, prefixes: Prefixes) -> Match:
        """The longest prefix measured by another model, of those used or loaded here; kind is never "exact"."""
        best, (length, chain) = NO_MATCH, prefixes
        with self._lock:
            for name, remembered in self._models.items():
                if name == (provider, model):
                    continue
                for covered in range(length, best.covered, -1):
                    entries = remembered.index.get(chain(covered))
                    if entries:
                        best = Match("prefix", covered, *entries[-1])
                        break
        return best

    def _model(self, provider: str, model: str) -> _Remembered:
        key = (provider, model)
        remembered = self._models.get(key)
        if remembered is None:
            remembered = self._models[key] = _Remembered()
            if self._store is not None:
                for measurement in self._store.load(provider, model):
                    remembered.add(measurement)
        return remembered


_Entry: TypeAlias = tuple[Measurement, bool]


class _Remembered:
    """The measurements of one model, indexed by chain digest."""

    def __init__(self) -> None:
        self.order: OrderedDict[tuple[bytes, bytes | None, bytes], Measurement] = OrderedDict()
        self.index: dict[bytes, list[_Entry]] = {}

    def add(self, measurement: Measurement) -> None:
        identity = (measurement.sent, measurement.replied, measurement.preamble)
        if identity in self.order:
            self._drop(identity)
        self.order[identity] = measurement
        self.index.setdefault(measurement.sent, []).append((measurement, False))
        if measurement.replied is not None:
            self.index.setdefault(measurement.replied, []).append((measurement, True))
        while len(self.order) > REMEMBERED:
            self._drop(next(iter(self.order)))

    def remove(self, measurement: Measurement) -> None:
        identity = (measurement.sent, measurement.replied, measurement.preamble)
        if identity in self.order:
            self._drop(identity)

    def _drop(self, identity: tuple[bytes, bytes | None, bytes]) -> None:
        measurement = self.order.pop(identity)
        for digest in (measurement.sent, measurement.replied):
            if digest is not None and digest in self.index:
                left = [entry for entry in self.index[digest] if entry[0] is not measurement]
                if left:
                    self.index[digest] = left
                else:
                    del self.index[digest]


def _best(entries: Sequence[_Entry], preamble: bytes) -> _Entry:
    """The entry that needs the least correction: same preamble first, then a plain input count, then the latest."""
    return max(
        enumerate(entries),
        key=lambda item: (item[1][0].preamble == preamble, not item[1][1], item[0]),
    )[1]


def reply_as_sent(reply: Message) -> Message:
    """`reply` as later requests contain it: without the parts that are never sent."""
    sendable = tuple(part for part in reply.parts if is_sendable(part))
    return reply if len(sendable) == len(reply.parts) else replace(reply, parts=sendable)

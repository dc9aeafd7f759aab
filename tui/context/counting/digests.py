"""Digests of what is sent: a message, a chain of messages, the preamble (system prompt and tools).

SHA-256 over a canonical encoding in which every field is preceded by its length, so that no two projections share one.
Message ids, timestamps and status are not sent, and so not part of it.

A message has two digests. `body` leaves out reasoning: many models take reasoning back only inside the open tool loop,
so it leaves all earlier replies at once, and a measurement must still be found (estimate/measurements.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from threading import Lock
from typing import Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, assert_never

from tui.messages import (
    Attachment,
    Message,
    Part,
    ProviderItem,
    Reasoning,
    Refusal,
    Source,
    SystemSection,
    Text,
    ToolCall,
    ToolResult,
    ToolSchema,
)

CHAIN_START = sha256(b"chatctx chain 1").digest()


def text_digest(text: str) -> str:
    """The SHA-256 of any text, hex."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class MessageDigest(NamedTuple):
    """`full` covers all that is sent, `body` leaves out reasoning. Equal for a message without reasoning."""

    full: bytes
    body: bytes


def _encode(kind: bytes, *fields: str | None) -> bytes:
    pieces = [kind]
    for field in fields:
        if field is None:
            pieces.append(b"-")
        else:
            data = field.encode("utf-8", "surrogatepass")
            pieces.append(b"%d:" % len(data))
            pieces.append(data)
    pieces.append(b";")
    return b"".join(pieces)


def _part(part: Part) -> bytes:
    match part:
        case Text(text):
            return _encode(b"T", text)
        case Source(url):
            return _encode(b"S", url)
        case ProviderItem(kind, provider, data):
            return _encode(b"I", kind, provider, data)
        case ToolCall(call_id, name, arguments, extra):
            return _encode(b"C", call_id, name, arguments, extra)
        case ToolResult(call_id, name, text, is_error):
            return _encode(b"E" if is_error else b"R", call_id, name, text)
        case Reasoning():
            return _encode(b"N", part.text, part.signature, part.redacted, part.encrypted, part.item_id, part.details)
        case Attachment():
            return _encode(b"A", part.kind, part.name, part.media_type, part.sha256, part.text)
        case Refusal(text):
            return _encode(b"F", text)
        case _:
            assert_never(part)


def message_digest(message: Message) -> MessageDigest:
    """The digests of one projected message."""
    role = message.role.encode() + b"|"
    if len(message.parts) == 1 and isinstance(text := message.parts[0], Text):  # most are, and this takes half as long
        data = text.text.encode("utf-8", "surrogatepass")
        whole = sha256(b"%bT%d:%b;" % (role, len(data), data)).digest()
        return MessageDigest(whole, whole)
    body = sha256(role)
    thoughts = []
    for index, part in enumerate(message.parts):
        if isinstance(part, Reasoning):
            thoughts.append(b"%d " % index + _part(part))
        else:
            body.update(_part(part))
    plain = body.digest()
    return MessageDigest(sha256(plain + b"".join(thoughts)).digest() if thoughts else plain, plain)


def chain(before: bytes, digest: bytes) -> bytes:
    """The chain digest of messages up to one with `digest`; `before` is that of the messages before it."""
    return sha256(before + digest).digest()


def system_digest(section: SystemSection) -> bytes:
    """Digest of one section of the system prompt."""
    return sha256(_encode(b"S", section.kind, section.name, section.text)).digest()


def tool_digest(tool: ToolSchema) -> bytes:
    """Digest of one tool. Its origin is not sent, and so not part of it."""
    return sha256(_encode(b"O", tool.name, tool.description, tool.parameters)).digest()


def preamble_digest(system: Iterable[SystemSection], tools: Iterable[ToolSchema]) -> bytes:
    """Digest of system prompt and tools, in their order."""
    hasher = sha256(b"chatctx preamble 1")
    for section in system:
        hasher.update(system_digest(section))
    hasher.update(b"tools")
    for tool in tools:
        hasher.update(tool_digest(tool))
    return hasher.digest()


# -- counts and costs by digest: in memory, over a store that outlives the process -------------------------------------

MEMORY_ENTRIES = 65_536  # values in memory that can be read from the store; when there are more, it begins anew

Counts: TypeAlias = Mapping[bytes, tuple[int, ...]]
"""Values by digest."""

Value = TypeVar("Value", bound=tuple[int, ...])


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


class Cache(Generic[Value]):
    """Values by digest, under the name of a tokenizer or of a model. Safe to use from several threads.

    `make` makes one of its integers. Values stored under another `version` are not read.
    """

    def __init__(self, stored: CountCache | None, version: int, make: Callable[[Iterable[int]], Value]) -> None:
        self._stored = stored
        self._version = version
        self._make = make
        self._values: dict[str, dict[bytes, Value]] = {}
        self._lock = Lock()

    def copy(self) -> Cache[Value]:
        """What is in memory, without the store."""
        copied = Cache(None, self._version, self._make)
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
            found = self._stored.get_many(name, self._version, missing)
            stored = {digest: self._make(value) for digest, value in found.items()}
            self._remember(name, stored)
            values |= stored
        return values

    def put(self, name: str, values: Mapping[bytes, Value]) -> None:
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
    """Measured costs by (provider, model, full digest), persisted in the same store as the counts.

    Of replies by their output, of other messages by the difference of two calls, of preambles by the provider's count.
    """

    def __init__(self, stored: CountCache | None = None) -> None:
        self._costs: Cache[tuple[int, ...]] = Cache(stored, COST_VERSION, tuple)

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

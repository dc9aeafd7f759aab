"""The running account of a session's messages: an estimate costs the same with 100 messages and with 10,000.

A request shares its message objects with the request before it. The longest common prefix is found by comparing tuples
(by identity first, in C); only what follows is digested, counted and added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from tui.context.counting.costs import Cost, CostBook, CountSource
from tui.context.counting.counting import MessageCount, TokenCounter, reasoning_tokens
from tui.context.counting.digests import CHAIN_START, MessageDigest, chain, message_digest
from tui.messages import (
    Attachment,
    Message,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)

_CHUNK = 512  # messages compared at once
_MARK_EVERY = 16  # entries between two marks of the rows

RowTokens: TypeAlias = Mapping[str, tuple[float, float, float]]
"""Tokens by row key: known, estimated, and the derived part of the known ones."""

NO_TOKENS = (0.0, 0.0, 0.0)


class Sums(NamedTuple):
    """Sums over messages, in tokens.

    Messages of unknown cost are summed by what they consist of (see `MessageCount`), the others by their `known` costs;
    `reasoning` is the part of all that is reasoning, `failed` the part counted by the heuristic. `classes` is `content`
    by class of text, packed.

    Over all messages: `plain` is the estimate before learning, `text` its visible text, `most` the upper limit
    (`most_tokens`), `size` the bytes of visible text, `all_classes` the classes of all of them.
    """

    content: float = 0.0
    markup: float = 0.0
    media: float = 0.0
    fixed: float = 0.0
    known: float = 0.0
    reasoning: float = 0.0
    failed: float = 0.0
    classes: int = 0
    plain: float = 0.0
    text: float = 0.0
    most: float = 0.0
    size: float = 0.0
    all_classes: int = 0

    def minus(self, other: Sums) -> Sums:
        """The difference to `other`."""
        return Sums._make(mine - theirs for mine, theirs in zip(self, other, strict=True))


class Entry(NamedTuple):
    """One message of a request. `size` is the estimate before learning, `cost` the best figure available, in tokens.

    `reasoning` is the part of it that is reasoning, `split` the cost by row key.
    """

    digest: MessageDigest
    size: float
    cost: float
    source: CountSource
    sums: Sums
    calls: bool  # it called tools
    reasoning_known: bool
    split: tuple[tuple[str, float], ...]

    @property
    def row_source(self) -> CountSource:
        """The source of its tokens in a row: a measured message of several rows is divided by estimate."""
        return "derived" if self.source == "measured" and len(self.split) > 1 else self.source


class Account(NamedTuple):
    """The ledger's view of `messages`.

    The lists are shared with the ledger and valid until its next update; use `lines` afterwards. `sums[i]` is over the
    first i entries, `rows` over all, `marks[i]` over the first `_MARK_EVERY` x i.
    """

    messages: tuple[Message, ...]
    entries: list[Entry]
    chains: list[bytes]
    sums: list[Sums]
    rows: RowTokens
    marks: list[RowTokens]
    ledger: Ledger
    version: int

    def lines(self) -> Lines:
        """The entries; also valid after the ledger has been updated."""
        lines = Lines(self.messages, self.entries[: len(self.messages)], self.marks[:])
        if self.ledger.version == self.version:  # asked after copying: a change raises the version first
            return lines
        return make_lines(self.messages, self.ledger.entries_of(self.messages))

    def since(self, covered: int) -> Sums:
        """The sums over the entries after the first `covered`."""
        return self.sums[len(self.messages)].minus(self.sums[covered])


class Lines(NamedTuple):
    """The entries of `messages`; `marks[i]` are the rows of the first `_MARK_EVERY` x i."""

    messages: tuple[Message, ...]
    entries: Sequence[Entry]
    marks: Sequence[RowTokens]

    def rows_before(self, index: int) -> RowTokens:
        """The rows of the first `index` entries; the work does not grow with their number."""
        if not self.marks:
            return {}
        mark = min(index // _MARK_EVERY, len(self.marks) - 1)
        return add_rows(self.marks[mark], self.entries[mark * _MARK_EVERY : index])


def make_lines(messages: tuple[Message, ...], entries: Sequence[Entry]) -> Lines:
    """Lines of entries that no ledger holds."""
    marks: list[RowTokens] = []
    rows: RowTokens = {}
    for start in range(0, len(entries), _MARK_EVERY):
        marks.append(rows)
        rows = add_rows(rows, entries[start : start + _MARK_EVERY])
    return Lines(messages, entries, marks)


def add_rows(rows: RowTokens, entries: Iterable[Entry]) -> RowTokens:
    """`rows` with the tokens of `entries`."""
    added = dict(rows)
    for entry in entries:
        source = entry.row_source
        for key, tokens in entry.split:
            measured, estimated, derived = added.get(key, NO_TOKENS)
            if source == "estimated":
                added[key] = measured, estimated + tokens, derived
            else:
                added[key] = measured + tokens, estimated, derived + tokens * (source == "derived")
    return added


PART_MARKUP = 48
"""Tokens that a server's template may add around a message or a part of it. Anthropic's tool results have 34."""

PAGE_MOST = 6_000
"""Tokens of a PDF page: its text and its picture."""


def text_bytes(message: Message) -> int:
    """UTF-8 bytes of the text of `message` that a model reads, without reasoning and binary attachments."""
    size = 0
    for part in message.parts:
        match part:
            case Text(text=text) | Refusal(text=text) | ToolResult(text=text) | Attachment(text=text):
                size += utf8_size(text)
            case ToolCall():
                size += utf8_size(part.name) + utf8_size(part.arguments)
            case _:
                pass
    return size


def most_tokens(message: Message) -> float:
    """The most that `message` can cost, in tokens: no token is shorter than a byte.

    Images count as base64 text, as some gateways bill them; unreadable reasoning by the length of its encrypted
    original.
    """
    most = float(PART_MARKUP + text_bytes(message))
    for part in message.parts:
        most += PART_MARKUP
        match part:
            case Attachment(kind="image" | "pdf"):
                most += part.size * 4 / 3 + PAGE_MOST * (part.pages or 1)
            case Reasoning():
                hidden = part.encrypted or part.redacted or part.signature or part.details or ""
                most += max(utf8_size(part.text), len(hidden), part.tokens or 0)
            case _:
                pass
    return most


def utf8_size(text: str) -> int:
    """Bytes of `text` in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def row_of(message: Message, kind: str) -> str:
    """The row key of one kind of content in `message`."""
    if message.kind == "summary":
        return "summaries"
    if kind == "text":
        return {"user": "user", "assistant": "assistant", "tool": "tool_results"}[message.role]
    return kind


def make_entry(message: Message, digest: MessageDigest, count: MessageCount, cost: Cost | None) -> Entry:
    """The ledger entry of one message: its known cost, or its estimate."""
    split, calls = count.split, any(isinstance(part, ToolCall) for part in message.parts)
    thought = split.get("reasoning", 0.0)
    failed = count.size if count.failed else 0.0
    text = max(0.0, count.size - thought - count.media - count.markup)
    limits = (count.size, text, max(most_tokens(message), count.size), float(text_bytes(message)))
    if cost is None:
        rows = tuple((row_of(message, kind), tokens) for kind, tokens in split.items())
        fixed_sums = (0.0, thought, failed, count.classes)
        sums = Sums(count.content, count.markup, count.media, count.fixed, *fixed_sums, *limits, count.classes)
        sure = reasoning_tokens(message) is not None
        return Entry(digest, count.size, count.size, "estimated", sums, calls, sure, rows)
    others = count.size - thought
    scale = (cost.tokens - cost.reasoning) / others if others > 0 else 0.0
    rows = tuple(
        (row_of(message, kind), float(cost.reasoning) if kind == "reasoning" else tokens * scale)
        for kind, tokens in split.items()
    )
    sums = Sums(0.0, 0.0, 0.0, 0.0, float(cost.tokens), float(cost.reasoning), 0.0, 0, *limits, count.classes)
    return Entry(digest, others + cost.reasoning, float(cost.tokens), cost.source, sums, calls, True, rows)


class Ledger:
    """The account of one session for one model."""

    def __init__(self, provider: str, model: str, counter: TokenCounter, costs: CostBook) -> None:
        self._provider = provider
        self.model = model
        self._counter, self._costs = counter, costs
        self._messages: tuple[Message, ...] = ()
        self._entries: list[Entry] = []
        self._chains: list[bytes] = []
        self._sums: list[Sums] = [Sums()]
        self._rows: RowTokens = {}
        self._marks: list[RowTokens] = []
        self.version = 0  # increases whenever existing entries change or are removed

    def update(self, messages: tuple[Message, ...]) -> Account:
        """The account of `messages`."""
        if messages is self._messages:
            return self.account()
        common = _common(self._messages, messages)
        if common < len(self._entries):
            self._cut(common)
        if common < len(messages):
            self._append(messages[common:])
        self._messages = messages
        return self.account()

    def account(self) -> Account:
        """The account of the current messages."""
        lists = (self._entries, self._chains, self._sums, self._rows, self._marks)
        return Account(self._messages, *lists, self, self.version)

    def entries_of(self, messages: Sequence[Message]) -> list[Entry]:
        """The entries of any messages; entries already in the ledger are reused."""
        digests = [message_digest(message) for message in messages]
        counts = self._counter.count_messages(messages, self.model, digests)
        costs = self._costs.get(self._provider, self.model, [digest.full for digest in digests])
        return [make_entry(*line) for line in zip(messages, digests, counts, costs, strict=True)]

    def refresh(self, start: int) -> None:
        """Look up the costs from message `start` on again, after some were learned."""
        self._cut(start)
        self._append(self._messages[start:])

    def _cut(self, length: int) -> None:
        self.version += 1
        del self._entries[length:], self._chains[length:], self._sums[length + 1 :]
        del self._marks[-(-length // _MARK_EVERY) :]
        self._rows = Lines(self._messages, self._entries, self._marks).rows_before(length)

    def _append(self, messages: Sequence[Message]) -> None:
        fresh = self.entries_of(messages)
        total = self._sums[-1]
        for entry in fresh:
            sums = zip(total, entry.sums, strict=True)
            total = Sums._make(mine + more if more else mine for mine, more in sums)  # an equal sum is the same object
            self._sums.append(total)
        self._chains.extend(
            chain(self._chains[-1] if self._chains else CHAIN_START, [entry.digest.body for entry in fresh])
        )
        while fresh:
            since_mark = len(self._entries) % _MARK_EVERY
            if not since_mark:
                self._marks.append(self._rows)
            some, fresh = fresh[: _MARK_EVERY - since_mark], fresh[_MARK_EVERY - since_mark :]
            self._entries.extend(some)
            self._rows = add_rows(self._rows, some)


def _common(old: tuple[Message, ...], new: tuple[Message, ...]) -> int:
    """The number of messages that both begin with."""
    shared = min(len(old), len(new))
    for start in range(0, shared, _CHUNK):
        # Comparing tuples looks at identity first, in C: about 5 ns a message.
        some, others = old[start : start + _CHUNK], new[start : start + _CHUNK]
        if some != others:
            for index, (one, other) in enumerate(zip(some, others, strict=False)):
                if one is not other and one != other:
                    return start + index
    return shared

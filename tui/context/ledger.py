"""The running account of a session's messages, so that a number costs the same with 100 messages and with 10,000.

A request shares its message objects with the request before it. The longest common prefix is found by comparing tuples
(identity first, in C), and only what follows is digested, counted and added up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import NamedTuple

from tui.context.costs import Cost, CostBook, CountSource
from tui.context.counting import MessageCount, TokenCounter, reasoning_tokens
from tui.context.digests import CHAIN_START, MessageDigest, chain, message_digest
from tui.messages import Message

MESSAGE_ROWS = ("user", "assistant", "reasoning", "tool_calls", "tool_results", "attachments", "summaries")


class Entry(NamedTuple):
    """One message of a request. `size` is the estimate before learning, `cost` the best that is known, in tokens.

    `reasoning` is the part of it that is reasoning, `split` the cost by row key.
    """

    digest: MessageDigest
    size: float
    cost: float
    source: CountSource
    reasoning: float
    reasoning_known: bool
    failed: bool
    split: tuple[tuple[str, float], ...]


class Account(NamedTuple):
    """A snapshot of a ledger. Lists are shared and only ever grow: `messages` says how many entries count.

    `guessed[i]`, `known[i]` and `reasoning[i]` are sums over the first i entries: estimates of those whose cost is not
    known, the known costs, reasoning. `rows` holds the tokens by row key and how many of them are estimated.
    """

    messages: tuple[Message, ...]
    entries: list[Entry]
    chains: list[bytes]
    guessed: list[float]
    known: list[float]
    reasoning: list[float]
    rows: Mapping[str, tuple[float, float]]
    failed: float


def row_of(message: Message, kind: str) -> str:
    """The row key of a kind of content in `message`."""
    if message.kind == "summary":
        return "summaries"
    if kind == "text":
        return {"user": "user", "assistant": "assistant", "tool": "tool_results"}[message.role]
    return kind


def make_entry(message: Message, digest: MessageDigest, count: MessageCount, cost: Cost | None) -> Entry:
    """The account's line for one message: its estimate, or what is known to be its cost."""
    split = count.split
    thought = split.get("reasoning", 0.0)
    if cost is None:
        rows = tuple((row_of(message, kind), tokens) for kind, tokens in split.items())
        sure = reasoning_tokens(message) is not None
        return Entry(digest, count.size, count.size, "estimated", thought, sure, count.failed, rows)
    size = count.size - thought + cost.reasoning
    rest = cost.tokens - cost.reasoning
    others = count.size - thought
    scale = rest / others if others > 0 else 0.0
    rows = tuple(
        (row_of(message, kind), float(cost.reasoning) if kind == "reasoning" else tokens * scale)
        for kind, tokens in split.items()
    )
    return Entry(digest, size, float(cost.tokens), cost.source, cost.reasoning, True, count.failed, rows)


class Ledger:
    """The account of one session for one model."""

    def __init__(self, provider: str, model: str, counter: TokenCounter, costs: CostBook) -> None:
        self._provider, self._model = provider, model
        self._counter, self._costs = counter, costs
        self._messages: tuple[Message, ...] = ()
        self._entries: list[Entry] = []
        self._chains: list[bytes] = []
        self._guessed, self._known, self._reasoning = [0.0], [0.0], [0.0]
        self._rows: dict[str, tuple[float, float]] = {}
        self._failed = 0.0
        self.version = 0  # grows whenever entries that were there change or leave

    def update(self, messages: tuple[Message, ...]) -> Account:
        """The account of `messages`."""
        kept = _common(self._messages, messages)
        if kept < len(self._entries):
            self._cut(kept)
        if kept < len(messages):
            self._append(messages[kept:])
        self._messages = messages
        return self.account()

    def account(self) -> Account:
        """The account as it stands."""
        return Account(
            self._messages,
            self._entries,
            self._chains,
            self._guessed,
            self._known,
            self._reasoning,
            self._rows,
            self._failed,
        )

    def refresh(self, start: int) -> None:
        """Read the costs from message `start` on again: something was learned about them."""
        self._cut(start)
        self._append(self._messages[start:])

    def _cut(self, kept: int) -> None:
        # New lists: earlier accounts share the old ones.
        self._entries, self._chains = self._entries[:kept], self._chains[:kept]
        self._guessed, self._known = self._guessed[: kept + 1], self._known[: kept + 1]
        self._reasoning = self._reasoning[: kept + 1]
        self._failed = sum(entry.size for entry in self._entries if entry.failed)
        self._rows = {}
        self._add_rows(self._entries)
        self.version += 1

    def _append(self, messages: Sequence[Message]) -> None:
        digests = [message_digest(message) for message in messages]
        counts = self._counter.count_messages(messages, self._model, digests)
        costs = self._costs.get(self._provider, self._model, [digest.full for digest in digests])
        links = chain(self._chains[-1] if self._chains else CHAIN_START, [digest.body for digest in digests])
        fresh = [make_entry(*line) for line in zip(messages, digests, counts, costs, strict=True)]
        guessed, known, thought = self._guessed[-1], self._known[-1], self._reasoning[-1]
        for entry in fresh:
            if entry.source == "estimated":
                guessed += entry.size
            else:
                known += entry.cost
            thought += entry.reasoning
            self._guessed.append(guessed)
            self._known.append(known)
            self._reasoning.append(thought)
            if entry.failed:
                self._failed += entry.size
        self._entries.extend(fresh)
        self._chains.extend(links)
        self._add_rows(fresh)

    def _add_rows(self, entries: Sequence[Entry]) -> None:
        rows = dict(self._rows)
        for entry in entries:
            guessed = entry.source == "estimated"
            for key, tokens in entry.split:
                total, estimated = rows.get(key, (0.0, 0.0))
                rows[key] = (total + tokens, estimated + tokens if guessed else estimated)
        self._rows = rows


def _common(old: tuple[Message, ...], new: tuple[Message, ...]) -> int:
    """The number of messages at the start of both that are the same."""
    shared = min(len(old), len(new))
    if old[:shared] == new[:shared]:  # identity first, in C: about 5 ns a message
        return shared
    for index, same in enumerate(map(is_, old, new)):
        if not same and old[index] != new[index]:
            return index
    return shared

"""The rows of `/context`: what fills the window, by category, adding up to the total exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, overload

from tui.context.counting.costs import CountSource
from tui.context.estimate.ledger import NO_TOKENS, Entry, Lines, RowTokens, add_rows, row_of
from tui.context.estimate.prediction import Situation
from tui.context.usage.attribution import attribute
from tui.messages import Message, Request
from tui.text.names import MESSAGE_ROWS, ROW_NAMES, SECTION_ROWS


@dataclass(frozen=True, slots=True)
class UsageItem:
    """One tool, file or message in a row. `ref` is the message id, tool name or file name."""

    name: str
    tokens: int
    source: CountSource
    ref: str = ""
    group: str = ""  # for tools: "built-in" or the MCP server's name


class LazyItems(Sequence[UsageItem]):
    """Items that are computed when accessed: for ten thousand messages that takes longer than the total itself."""

    __slots__ = ("_items", "_make")

    def __init__(self, make: Callable[[], tuple[UsageItem, ...]]) -> None:
        self._make = make
        self._items: tuple[UsageItem, ...] | None = None

    def _all(self) -> tuple[UsageItem, ...]:
        if self._items is None:
            self._items = self._make()
        return self._items

    def __len__(self) -> int:
        return len(self._all())

    @overload
    def __getitem__(self, index: int) -> UsageItem: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[UsageItem]: ...
    def __getitem__(self, index: int | slice) -> UsageItem | Sequence[UsageItem]:
        return self._all()[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return "LazyItems()" if self._items is None else repr(self._items)  # asyncio makes texts of results


@dataclass(frozen=True, slots=True)
class UsageRow:
    """A category. Items add up to the row, rows to the total."""

    key: str  # one of `ROW_NAMES`
    name: str
    tokens: int
    source: CountSource
    items: Sequence[UsageItem] = ()


def apportion(total: int, weights: Sequence[float]) -> list[int]:
    """Divide `total` into whole numbers by `weights` (none negative), by largest remainder; the sum is exact.

    If all weights are 0 the first gets everything.
    """
    if not weights:
        return []
    weight_total = sum(weights)
    if weight_total <= 0:
        return [total, *[0] * (len(weights) - 1)]
    shares = [total * weight / weight_total for weight in weights]
    parts = [int(share) for share in shares]
    missing = total - sum(parts)
    by_rest = sorted(range(len(weights)), key=lambda index: parts[index] - shares[index])
    for index in by_rest[: max(0, missing)]:
        parts[index] += 1
    for index in reversed(by_rest):  # only reached through rounding of very large numbers
        if sum(parts) <= total:
            break
        parts[index] -= min(parts[index], sum(parts) - total)
    return parts


class MessageTokens(NamedTuple):
    """Tokens of one message in a request, and their source."""

    tokens: int
    source: CountSource


class MessageShares(Mapping[str, MessageTokens]):
    """The tokens of single messages, over all rows, by message id.

    The share of a message is the sum of all weights up to it, in whole tokens, minus the sum before it. So the shares
    add up to their row exactly, and a lookup takes the same time in conversations of any length.
    """

    def __init__(self, lines: Lines, factor: float, rows: Mapping[str, int]) -> None:
        self._lines = lines
        self._factor = factor
        self._rows = rows
        self._whole = lines.rows_before(len(lines.entries))
        self._places: dict[str, int] = {}  # of the last messages, as far back as one was looked for
        self._unplaced = len(lines.messages)
        self._known: dict[str, MessageTokens] = {}
        self._complete = False

    def __getitem__(self, ident: str) -> MessageTokens:
        share = self._known.get(ident)
        if share is None:
            if self._complete:
                raise KeyError(ident)
            share = self._known[ident] = self._look_up(ident)
        return share

    def _look_up(self, ident: str) -> MessageTokens:
        place = self._place(ident)
        entry, before = self._lines.entries[place], self._lines.rows_before(place)
        after = add_rows(before, (entry,))
        rows = {key for key, part in entry.split if part > 0 and key in self._rows}
        if not rows:
            raise KeyError(ident)
        return MessageTokens(sum(self._upto(after, key) - self._upto(before, key) for key in rows), entry.source)

    def __iter__(self) -> Iterator[str]:
        self._look_up_all()
        return iter(self._known)

    def __len__(self) -> int:
        self._look_up_all()
        return len(self._known)

    def _place(self, ident: str) -> int:
        while ident not in self._places and self._unplaced:
            self._unplaced -= 1
            self._places[self._lines.messages[self._unplaced].id] = self._unplaced
        return self._places[ident]

    def _upto(self, rows: RowTokens, key: str) -> int:
        """Tokens of a row that the messages with these `rows` account for."""
        weight, whole = _weight(rows, key, self._factor), _weight(self._whole, key, self._factor)
        return self._rows[key] if weight >= whole else int(self._rows[key] * weight / whole + 0.5)

    def _look_up_all(self) -> None:
        if self._complete:
            return
        every: dict[str, MessageTokens] = {}
        for key in self._rows:
            for message, entry, tokens in self._of(key):
                before = every.get(message.id)
                every[message.id] = MessageTokens(tokens + (before.tokens if before else 0), entry.source)
        self._known, self._complete = every, True

    def _of(self, key: str) -> Iterator[tuple[Message, Entry, int]]:
        """The messages that contribute to a row, and their tokens of it."""
        rows: RowTokens = {}
        upto = 0
        for message, entry in zip(self._lines.messages, self._lines.entries, strict=True):
            if any(row == key and part > 0 for row, part in entry.split):
                rows = add_rows(rows, (entry,))
                before, upto = upto, self._upto(rows, key)
                yield message, entry, upto - before

    def items_of(self, key: str) -> tuple[UsageItem, ...]:
        """The items of a row, as `/context` lists them."""
        return tuple(UsageItem(_title(m), tokens, entry.row_source, m.id) for m, entry, tokens in self._of(key))


def _weight(rows: RowTokens, key: str, factor: float) -> float:
    known, estimated, _ = rows.get(key, NO_TOKENS)
    return known + estimated * factor


class Rows(NamedTuple):
    """The rows, the shares of single messages, and warnings."""

    rows: tuple[UsageRow, ...]
    messages: MessageShares
    warnings: tuple[str, ...]


def make_rows(request: Request, situation: Situation) -> Rows:
    """The rows of a request; `attribute` decides what belongs to which."""
    total = situation.estimate.tokens
    attribution = attribute(request, situation)
    weights = attribution.tokens or ({"unattributed": 1.0} if total else {})
    keys = [key for key in ROW_NAMES if key in weights]
    tokens_of = dict(zip(keys, apportion(total, [weights[key] for key in keys]), strict=True))
    in_messages = {key: tokens_of[key] for key in MESSAGE_ROWS if key in tokens_of}
    shares = MessageShares(situation.account.lines(), attribution.factor, in_messages)
    rows = (
        _row(key, tokens, attribution.sources.get(key, "estimated"), request, situation, shares)
        for key, tokens in tokens_of.items()
    )
    return Rows(tuple(rows), shares, (attribution.warning,) if attribution.warning else ())


def _row(
    key: str, tokens: int, source: CountSource, request: Request, situation: Situation, shares: MessageShares
) -> UsageRow:
    items: Sequence[UsageItem] = ()
    if key in SECTION_ROWS:
        items = _section_items(key, tokens, source, request, situation)
    elif key == "tools":
        items = _tool_items(tokens, source, request, situation)
    elif key in MESSAGE_ROWS:
        items = LazyItems(partial(shares.items_of, key))
    return UsageRow(key, ROW_NAMES[key], tokens, source, items)


def _section_items(
    key: str, tokens: int, source: CountSource, request: Request, situation: Situation
) -> tuple[UsageItem, ...]:
    chosen = [
        (section.name, weight)
        for section, weight in zip(request.system, situation.preamble.sections, strict=True)
        if section.kind == key
    ]
    shares = apportion(tokens, [weight for _, weight in chosen])
    source = source if len(chosen) == 1 else "estimated"
    return tuple(UsageItem(name, share, source, name) for (name, _), share in zip(chosen, shares, strict=True))


def _tool_items(tokens: int, source: CountSource, request: Request, situation: Situation) -> tuple[UsageItem, ...]:
    shares = apportion(tokens, situation.preamble.tools)
    source = source if source == "estimated" or len(shares) == 1 else "derived"
    items = [
        UsageItem(tool.name, share, source, tool.name, tool.origin)
        for tool, share in zip(request.tools, shares, strict=True)
    ]
    return tuple(sorted(items, key=lambda item: (item.group != "built-in", item.group)))


def _title(message: Message) -> str:
    """The first words of a message, on one line."""
    words = message.text.split(maxsplit=12)[:12]
    return " ".join(words)[:60] if words else row_of(message, "text")

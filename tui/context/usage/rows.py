"""The rows of `/context`: what fills the window, by category, adding up to the total exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

from tui.context.counting.costs import CountSource
from tui.context.counting.digests import preamble_digest
from tui.context.estimate.calibration import Calibration
from tui.context.estimate.ledger import row_of
from tui.context.estimate.preamble import Preamble
from tui.context.estimate.prediction import Situation
from tui.messages import Message, Request
from tui.text.names import MESSAGE_ROWS, ROW_NAMES

UNATTRIBUTED = 0.01  # of the total: a smaller remainder is shared out over the messages


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
        return repr(self._all())


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
    whole = sum(weights)
    if whole <= 0:
        return [total, *[0] * (len(weights) - 1)]
    shares = [total * weight / whole for weight in weights]
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


def make_rows(request: Request, situation: Situation) -> tuple[tuple[UsageRow, ...], tuple[str, ...]]:
    """Rows with tokens, and warnings.

    System prompt, memory and tools come first (`split_preamble`), messages are the remainder. A remainder of 1 % or
    more that messages cannot explain is "unattributed". If the preamble is larger than the total, messages are 0, the
    other rows are scaled down, and a warning is added.
    """
    total = situation.estimate.tokens
    preamble, account, factor = situation.preamble, situation.account, situation.estimate.factor
    split = split_preamble(request, preamble, situation.calibration)
    weights = dict(split.weights)
    before = sum(weights.values())
    messages: dict[str, float] = {}
    for key in MESSAGE_ROWS:
        tokens, guessed = account.rows.get(key, (0.0, 0.0))
        messages[key] = max(0.0, tokens - guessed) + max(0.0, guessed) * factor
    messages["tool_results"] = max(0.0, messages["tool_results"] - situation.estimate.cleared)
    explained = sum(messages.values())
    rest = total - before
    warnings: tuple[str, ...] = ()
    loose = 0.0
    if rest < 0 or (explained <= 0 and account.messages and rest <= 0):
        warnings = (
            f"system prompt and tools are estimated at {round(before):,} tokens, more than the whole request "
            f"({total:,}): their rows were scaled down",
        )
        messages = dict.fromkeys(messages, 0.0)
    elif rest - explained >= UNATTRIBUTED * total or explained <= 0:
        loose = rest - explained
    else:
        scale = rest / explained
        messages = {key: tokens * scale for key, tokens in messages.items()}
    weights.update(messages)
    weights["unattributed"] = loose
    keys = [key for key, weight in weights.items() if weight > 0]
    tokens_of = dict(zip(keys, apportion(total, [weights[key] for key in keys]), strict=True))
    if not keys and total:
        tokens_of = {"unattributed": total}
    rows = (_row(key, tokens, request, situation, split.tools) for key, tokens in tokens_of.items())
    return tuple(rows), warnings


def _row(key: str, tokens: int, request: Request, situation: Situation, tools: CountSource) -> UsageRow:
    if key == "unattributed":
        measured = situation.estimate.last_input is not None
        return UsageRow(key, ROW_NAMES[key], tokens, "derived" if measured else "estimated")
    if key in ("system", "memory"):
        return UsageRow(key, ROW_NAMES[key], tokens, "estimated", _section_items(key, tokens, request, situation))
    if key == "tools":
        return UsageRow(key, ROW_NAMES[key], tokens, tools, _tool_items(tokens, request, situation, tools))
    _, guessed = situation.account.rows.get(key, (0.0, 0.0))
    source: CountSource = "estimated" if guessed > 0.005 else "derived"
    account = situation.account
    factor = situation.estimate.factor

    def make() -> tuple[UsageItem, ...]:
        contributions: list[tuple[Message, CountSource, float]] = []
        for message, entry in zip(account.messages, account.lines(), strict=True):
            share = sum(part for row, part in entry.split if row == key)
            if share > 0:
                scale = factor if entry.source == "estimated" else 1.0
                contributions.append((message, entry.source, share * scale))
        parts = apportion(tokens, [weight for _, _, weight in contributions])
        return tuple(
            UsageItem(_title(message), share, origin, message.id)
            for (message, origin, _), share in zip(contributions, parts, strict=True)
        )

    return UsageRow(key, ROW_NAMES[key], tokens, source, LazyItems(make))


def _section_items(key: str, tokens: int, request: Request, situation: Situation) -> tuple[UsageItem, ...]:
    chosen = [
        (section.name, weight)
        for section, weight in zip(request.system, situation.preamble.sections, strict=True)
        if section.kind == key
    ]
    shares = apportion(tokens, [weight for _, weight in chosen])
    return tuple(UsageItem(name, share, "estimated", name) for (name, _), share in zip(chosen, shares, strict=True))


def _tool_items(tokens: int, request: Request, situation: Situation, source: CountSource) -> tuple[UsageItem, ...]:
    shares = apportion(tokens, situation.preamble.tools)
    items = [
        UsageItem(tool.name, share, source, tool.name, tool.origin)
        for tool, share in zip(request.tools, shares, strict=True)
    ]
    return tuple(sorted(items, key=lambda item: (item.group != "built-in", item.group)))


def _title(message: Message) -> str:
    """The first words of a message, on one line."""
    words = message.text.split(maxsplit=12)[:12]
    return " ".join(words)[:60] if words else row_of(message, "text")


class PreambleSplit(NamedTuple):
    """Tokens by row key ("system", "memory", "tools"), and the source of the figure for tools."""

    weights: Mapping[str, float]
    tools: CountSource


def split_preamble(request: Request, preamble: Preamble, calibration: Calibration) -> PreambleSplit:
    """The rows before the messages.

    Calls of this model with this preamble measure its total, calls with the same system prompt and no tools measure
    that part; the tools are the difference. What calls can't tell apart remains an estimate.
    """
    weights: dict[str, float] = {"system": 0.0, "memory": 0.0, "tools": 0.0}
    for section, tokens in zip(request.system, preamble.sections, strict=True):
        weights[section.kind] += tokens
    weights["system"] += preamble.per_request if weights["system"] else 0.0
    weights["tools"] += sum(preamble.tools) + preamble.fixed
    measured = calibration.preambles.get(preamble.digest.hex())
    alone = _without_tools(request, preamble, calibration, weights["system"] + weights["memory"])
    if not request.tools or measured is None or alone is None or alone >= measured[1]:
        return PreambleSplit(weights, "estimated")
    return PreambleSplit({**weights, "tools": measured[1] - alone}, "derived")


def _without_tools(request: Request, preamble: Preamble, calibration: Calibration, words: float) -> float | None:
    """Tokens before the messages in a request with this system prompt and no tools; None if unknown."""
    if not words:
        return preamble.per_request
    learned = calibration.preambles.get(preamble_digest(request.system, ()).hex())
    return None if learned is None else learned[1]

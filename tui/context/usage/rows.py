"""The rows of `/context`: what fills the window, by category, adding up to the total exactly.

What is measured stays, estimates take what is left (README.md, "Rows").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, overload

from tui.context.counting.classes import unpack
from tui.context.counting.costs import CountSource
from tui.context.counting.digests import preamble_digest
from tui.context.counting.tokenizers import margins_of
from tui.context.estimate.calibration import MARGIN_HEURISTIC, MARGIN_TOKENIZER, Calibration
from tui.context.estimate.fit import FACTOR_HIGH, FACTOR_LOW
from tui.context.estimate.ledger import (
    BLOCK,
    NO_TOKENS,
    Account,
    Block,
    Line,
    RowTokens,
    add_shares,
    row_of,
)
from tui.context.estimate.preamble import Preamble, PreambleCost
from tui.context.estimate.prediction import Situation, learned
from tui.messages import Message, Request
from tui.text.names import MESSAGE_ROWS, PREAMBLE_ROWS, ROW_NAMES, SECTION_ROWS

UNATTRIBUTED = 0.01  # share of the total: a smaller remainder is rounding and goes to the largest row
TEMPLATE = 64  # tokens that a chat template may add of its own (a date, a default system prompt): no reason to warn
LEAST_PREAMBLE = 0.25  # of its estimate: some templates leave most of a schema out
LEARNED_RANGE = 0.1  # calls that agree on a preamble are within 5 % of each other
COUNTED_RANGE = 0.02  # between a provider's count and its usage


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

    def __bool__(self) -> bool:
        """A row of messages has an item for each of them: one at least."""
        return True

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

    def __init__(self, account: Account, factor: float, rows: Mapping[str, int]) -> None:
        self._account = account
        self._factor = factor
        self._rows = rows
        self._weights = {key: _weight(account.rows, key, factor) for key in rows}
        self._places: dict[str, int] = {}  # of the last messages, as far back as one was looked for
        self._unplaced = len(account.messages)
        self._shares: dict[str, MessageTokens] = {}  # of the blocks with a message that was looked for
        self._complete = False

    def __getitem__(self, ident: str) -> MessageTokens:
        if ident not in self._shares and not self._complete:
            self._read(self._account.blocks[self._place(ident) // BLOCK])
        return self._shares[ident]

    def __iter__(self) -> Iterator[str]:
        self._read_all()
        return iter(self._shares)

    def __len__(self) -> int:
        self._read_all()
        return len(self._shares)

    def _read_all(self) -> None:
        if not self._complete:
            for block in self._account.blocks:
                self._read(block)
            self._complete = True

    def _place(self, ident: str) -> int:
        while ident not in self._places and self._unplaced:
            self._unplaced -= 1
            self._places[self._account.messages[self._unplaced].id] = self._unplaced
        return self._places[ident]

    def _read(self, block: Block) -> None:
        for line, shares in self._divided(block):
            if shares:
                tokens = sum(tokens for _, tokens, _ in shares)
                self._shares[line.message.id] = MessageTokens(tokens, line.source)

    def _divided(self, block: Block) -> Iterator[tuple[Line, list[tuple[str, int, CountSource]]]]:
        """The messages of `block`, and what each has of the rows in whole tokens."""
        rows = dict(block.rows)
        upto = {key: self._upto(rows, key) for key in self._rows}
        for line in block.lines:
            shares = self._account.shares(line)
            add_shares(rows, shares)
            whole = []
            for key, source in {key: source for key, tokens, source in shares if tokens > 0 and key in upto}.items():
                before, upto[key] = upto[key], self._upto(rows, key)
                whole.append((key, upto[key] - before, source))
            yield line, whole

    def _upto(self, rows: RowTokens, key: str) -> int:
        """Tokens of a row that the messages with these `rows` account for."""
        weight, whole = _weight(rows, key, self._factor), self._weights[key]
        return self._rows[key] if weight >= whole else int(self._rows[key] * weight / whole + 0.5)

    @cached_property
    def row_items(self) -> Mapping[str, tuple[UsageItem, ...]]:
        """The items of each row, as `/context` lists them."""
        items: dict[str, list[UsageItem]] = {key: [] for key in self._rows}
        for block in self._account.blocks:
            for line, shares in self._divided(block):
                for row, tokens, source in shares:
                    items[row].append(UsageItem(_title(line.message), tokens, source, line.message.id))
        return {key: tuple(some) for key, some in items.items()}


def _weight(rows: RowTokens, key: str, factor: float) -> float:
    measured, estimated, _ = rows.get(key, NO_TOKENS)
    return measured + estimated * factor


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
    shares = MessageShares(situation.account, attribution.factor, in_messages)
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
        items = LazyItems(lambda: shares.row_items[key])
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


# -- attribution: which rows the total belongs to ----------------------------------------------------------------------


class Attribution(NamedTuple):
    """Tokens and their source by row key, larger than 0. They add up to the total but for rounding.

    `factor` is what estimates of messages are multiplied by for their rows; `warning` is for a person, "" where
    measurements and total agree.
    """

    tokens: Mapping[str, float]
    sources: Mapping[str, CountSource]
    factor: float
    warning: str = ""


class Flexible(NamedTuple):
    """Tokens that are not certain: their best figure, how uncertain it is, and the range they can be in."""

    tokens: float
    doubt: float
    least: float
    most: float

    def shifted(self, missing: float) -> float:
        """`missing` more (or fewer, if negative), as far as the range goes."""
        return min(max(self.tokens + missing, self.least), self.most)


def attribute(request: Request, situation: Situation) -> Attribution:
    """How the total of `situation` is attributed."""
    total, account, calibration = situation.estimate.tokens, situation.account, situation.calibration
    rows = {key: account.rows.get(key, NO_TOKENS) for key in MESSAGE_ROWS}
    split = split_preamble(request, situation.preamble, calibration)
    tokens = {key: measured for key, (measured, _, _) in rows.items()}
    tokens["tool_results"] = max(0.0, tokens["tool_results"] - situation.estimate.cleared)
    tokens["hidden"] = min(float(total), calibration.hidden + split.hidden)

    guess = learned(account.sums, calibration)
    texts = Flexible(guess, _doubt(situation, guess), FACTOR_LOW * guess, FACTOR_HIGH * guess)
    missing = total - sum(tokens.values()) - texts.tokens - split.flexible.tokens
    texts_tokens, preamble_tokens, rest = _share(missing, texts, split.flexible)
    if rest > UNATTRIBUTED * total:  # more than all estimates could be off by: something else is in the total
        texts_tokens, preamble_tokens, rest = texts.tokens, split.flexible.tokens, missing

    factor = _ratio(texts_tokens, sum(estimated for _, estimated, _ in rows.values()))
    for key, (_, estimated, _) in rows.items():
        tokens[key] += factor * estimated
    for key, weight in split.weights.items():
        tokens[key] = weight * _ratio(preamble_tokens, split.flexible.tokens)
    measured = situation.base.measurement is not None
    sources: dict[str, CountSource] = {**split.sources, "hidden": "derived"}
    for key, (_, estimated, derived) in rows.items():  # a row is as sure as the least sure of its messages
        sources[key] = "estimated" if estimated > 0 else "derived" if derived > 0 else "measured"
    if measured:
        sources |= _differences(rows, split, guess)
    return _with_rest(Attribution(tokens, sources, factor), total, rest, measured=measured)


def _share(missing: float, texts: Flexible, preamble: Flexible) -> tuple[float, float, float]:
    """The tokens of both with `missing` shared out by their doubt within their ranges, and what neither can take."""
    doubt = texts.doubt + preamble.doubt
    new_texts = texts.shifted(missing * texts.doubt / doubt if doubt else 0.0)
    new_preamble = preamble.shifted(missing - (new_texts - texts.tokens))
    new_texts = texts.shifted(missing - (new_preamble - preamble.tokens))
    return new_texts, new_preamble, missing - (new_texts - texts.tokens) - (new_preamble - preamble.tokens)


def _differences(rows: RowTokens, split: PreambleSplit, guess: float) -> dict[str, CountSource]:
    """The only estimated row, if there is one: the difference of a measured total and the certain rows."""
    preamble = [key for key, weight in split.weights.items() if weight > 0]
    guessed = [key for key, (_, estimated, _) in rows.items() if estimated > 0]
    if len(guessed) == 1 and not split.flexible.doubt:
        return {guessed[0]: "derived"}
    certain = guess <= MARGIN_TOKENIZER * split.flexible.tokens
    if len(preamble) == 1 and certain and split.sources[preamble[0]] == "estimated":
        return {preamble[0]: "derived"}
    return {}


def _with_rest(attribution: Attribution, total: int, rest: float, *, measured: bool) -> Attribution:
    """`attribution` with `rest`, which is in none of its rows (negative: they come to more than there is)."""
    tokens, sources, warning = dict(attribution.tokens), dict(attribution.sources), ""
    largest = max(tokens, key=tokens.__getitem__)
    if abs(rest) <= UNATTRIBUTED * total and tokens[largest] + rest >= 0:
        tokens[largest] += rest
    elif rest > 0:
        tokens["unattributed"] = rest
        sources["unattributed"] = "derived" if measured else "estimated"
        if measured and rest > TEMPLATE:
            warning = f"{round(rest):,} tokens belong to no known message, prompt or tool"
    else:
        sum_of_rows = sum(tokens.values())
        warning = (
            f"the rows come to {round(sum_of_rows):,} tokens, the whole request has {total:,}: they were scaled down"
        )
        sources = dict.fromkeys(sources, "estimated")
    present = {key: value for key, value in tokens.items() if value > 0}
    return Attribution(present, sources, attribution.factor, warning)


def _ratio(new: float, old: float) -> float:
    return new / old if old > 0 else 0.0


def _doubt(situation: Situation, guess: float) -> float:
    """How uncertain the messages' estimates are, in tokens: texts by class, the rest as any tokenizer's count."""
    account = situation.account
    texts = unpack(account.sums.classes)
    margins = margins_of(account.model)
    content = sum(tokens for _, tokens in texts)
    return sum(margins[kind] * tokens for kind, tokens in texts) + MARGIN_TOKENIZER * max(0.0, guess - content)


class PreambleSplit(NamedTuple):
    """Tokens and their source by row key (one of `PREAMBLE_ROWS`), and how certain their sum is.

    `hidden` is what calls had beyond these, and what they agree on: a prompt that the server adds.
    """

    weights: Mapping[str, float]
    sources: Mapping[str, CountSource]
    flexible: Flexible
    hidden: float = 0.0


def split_preamble(request: Request, preamble: Preamble, calibration: Calibration) -> PreambleSplit:
    """The rows before the messages.

    The provider's own counts come first. Else calls of this model with this preamble measure its total, calls with the
    same system prompt and no tools measure that part; the tools are the difference. What calls can't tell apart remains
    an estimate, and so does what is unlikely as long as one call alone says so. If two say so, the server adds it.
    """
    if preamble.counted is not None:
        return _split(preamble.counted._asdict(), ("counted", "counted"), doubt=0.0, within=COUNTED_RANGE)
    weights = _estimated_weights(request, preamble)
    whole, prompts = sum(weights.values()), sum(weights[key] for key in SECTION_ROWS)
    costs = calibration.preambles.costs
    measured = costs.get(preamble.digest)
    added = 0.0
    if measured is not None and measured.agreed and measured.actual > FACTOR_HIGH * whole + TEMPLATE:
        added = measured.actual - whole
    hidden = max(0.0, added - calibration.hidden)
    # What a request without tools has before its messages.
    alone = costs.get(preamble_digest(request.system, ()))
    if not prompts:
        alone = PreambleCost(preamble.per_request, preamble.per_request + added, agreed=True)
    difference = 0.0 if measured is None or alone is None else measured.actual - alone.actual
    likely = LEAST_PREAMBLE * weights["tools"] <= difference <= FACTOR_HIGH * weights["tools"]
    if measured is None or alone is None or difference <= 0 or not likely:
        flexible = Flexible(whole, MARGIN_HEURISTIC * whole, LEAST_PREAMBLE * whole, FACTOR_HIGH * whole)
        return PreambleSplit(weights, dict.fromkeys(weights, "estimated"), flexible, hidden)
    weights["tools"] = difference
    for key in SECTION_ROWS:
        weights[key] *= _ratio(max(0.0, alone.actual - added), prompts)
    one = sum(weights[key] > 0 for key in SECTION_ROWS) <= 1
    agreed = measured.agreed and alone.agreed
    doubt, within = (MARGIN_TOKENIZER, LEARNED_RANGE) if agreed else (MARGIN_HEURISTIC, FACTOR_LOW)
    split = _split(weights, ("derived" if one else "estimated", "derived"), doubt=doubt, within=within)
    return split._replace(hidden=hidden)


def _estimated_weights(request: Request, preamble: Preamble) -> dict[str, float]:
    """The estimates of sections and tools by row key."""
    weights: dict[str, float] = dict.fromkeys(PREAMBLE_ROWS, 0.0)
    for section, tokens in zip(request.system, preamble.sections, strict=True):
        weights[section.kind] += tokens
    weights["system"] += preamble.per_request if weights["system"] else 0.0
    weights["tools"] += sum(preamble.tools) + preamble.fixed
    return weights


def _split(
    weights: Mapping[str, float], sources: tuple[CountSource, CountSource], *, doubt: float, within: float
) -> PreambleSplit:
    """The split into `weights`; `sources` are those of the prompts and of the tools, `doubt` and `within` shares."""
    whole = sum(weights.values())
    flexible = Flexible(whole, doubt * whole, (1 - within) * whole, (1 + within) * whole)
    prompts, tools = sources
    return PreambleSplit(weights, {**dict.fromkeys(SECTION_ROWS, prompts), "tools": tools}, flexible)

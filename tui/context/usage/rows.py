"""The rows of `/context`: what fills the window, by category, adding up to the total exactly.

What is measured stays, estimates take what is left (README.md, "Rows").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

from tui.context.counting.counting import has_image_formula
from tui.context.counting.digests import CountSource, preamble_digest
from tui.context.counting.tokenizers import get_tokenizer
from tui.context.counting.words import LATIN
from tui.context.estimate.calibration import FACTOR_HIGH, FACTOR_LOW, Calibration, PreambleCost
from tui.context.estimate.evidence import PLAUSIBLE_MARGINS
from tui.context.estimate.ledger import BLOCK, NO_TOKENS, Account, Line, Preamble, RowTokens, add_shares, row_of
from tui.context.estimate.measurements import learned
from tui.context.estimate.prediction import (
    MARGIN_HEURISTIC,
    MARGIN_IMAGES,
    MARGIN_TOKENIZER,
    Situation,
    estimate_margin,
)
from tui.messages import BUILT_IN, Request
from tui.text.labels import MESSAGE_ROWS, PREAMBLE_ROWS, ROW_NAMES, SECTION_ROWS
from tui.text.numbers import apportion, tokens_exact

UNATTRIBUTED = 0.01  # share of the total: a smaller remainder is rounding and goes to the largest row
TEMPLATE_LEAST, TEMPLATE = 8, 64  # tokens that a chat template may add, or lack: a date, a default system prompt
MIN_PREAMBLE = 0.25  # of its estimate: some templates leave most of a schema out
COUNTED_RANGE = 0.02  # between a provider's count and its usage


@dataclass(frozen=True, slots=True)
class UsageItem:
    """One tool, file or message in a row. `ref` is the message id, tool name or file name."""

    name: str
    tokens: int
    source: CountSource
    ref: str = ""
    group: str = ""  # for tools: "built-in" or the MCP server's name


@dataclass(eq=False, repr=False)
class LazyItems(Sequence[UsageItem]):
    """Items that are computed when accessed: for ten thousand messages that takes longer than the total itself."""

    make: Callable[[], tuple[UsageItem, ...]]

    @cached_property
    def _items(self) -> tuple[UsageItem, ...]:
        return self.make()

    def __len__(self) -> int:
        return len(self._items)

    def __bool__(self) -> bool:
        """A row of messages has an item for each of them: one at least."""
        return True

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._items == tuple(other)

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return repr(self.__dict__.get("_items", "LazyItems()"))  # asyncio makes texts of results


@dataclass(frozen=True, slots=True)
class UsageRow:
    """A category. Items add up to the row, rows to the total."""

    key: str  # one of `ROW_NAMES`
    name: str
    tokens: int
    source: CountSource
    items: Sequence[UsageItem] = ()


class MessageTokens(NamedTuple):
    """Tokens of one message in a request, and their source."""

    tokens: int
    source: CountSource


@dataclass(eq=False)
class MessageShares(Mapping[str, MessageTokens]):
    """The tokens of single messages, over all rows, by message id.

    The share of a message is the sum of all weights up to it, in whole tokens, minus the sum before it. So the shares
    add up to their row exactly, and a lookup takes the same time in conversations of any length.
    """

    account: Account
    factors: Mapping[str, float]  # as in `Attribution`
    rows: Mapping[str, int]
    _places: dict[str, int] = field(default_factory=dict)  # of the last messages, as far back as one was looked for
    _placed: int = 0
    _shares: dict[str, MessageTokens] = field(default_factory=dict)  # of blocks with a message that was looked for

    def __getitem__(self, ident: str) -> MessageTokens:
        lines = self.account.lines
        while ident not in self._places and self._placed < len(lines):
            self._placed += 1
            place = len(lines) - self._placed
            self._places[lines[place].message.id] = place
        if ident not in self._shares:
            self._read(self._places[ident] // BLOCK)
        return self._shares[ident]

    def __iter__(self) -> Iterator[str]:
        for block in range(len(self.account.before)):
            self._read(block)
        return iter(self._shares)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _read(self, block: int) -> None:
        for line, shares in self._divided(block):
            if shares:
                tokens = sum(tokens for _, tokens, _ in shares)
                self._shares[line.message.id] = MessageTokens(tokens, line.source)

    def _divided(self, block: int) -> Iterator[tuple[Line, list[tuple[str, int, CountSource]]]]:
        """The messages of a block, and what each has of the rows in whole tokens."""
        rows = dict(self.account.before[block].rows)
        upto = {key: self._upto(rows, key) for key in self.rows}
        for line in self.account.lines[block * BLOCK : (block + 1) * BLOCK]:
            shares = self.account.shares(line)
            add_shares(rows, shares)
            whole = []
            for key, source in {key: source for key, tokens, source in shares if tokens > 0 and key in upto}.items():
                before, upto[key] = upto[key], self._upto(rows, key)
                whole.append((key, upto[key] - before, source))
            yield line, whole

    def _upto(self, rows: RowTokens, key: str) -> int:
        """Tokens of a row that the messages with these `rows` account for."""
        both = rows.get(key, NO_TOKENS), self.account.rows.get(key, NO_TOKENS)
        factor = self.factors.get(key, 0.0)
        weight, whole = (measured + estimated * factor for measured, estimated, _ in both)
        return self.rows[key] if weight >= whole else int(self.rows[key] * weight / whole + 0.5)

    def row_items(self, key: str) -> tuple[UsageItem, ...]:
        """The items of a row, as `/context` lists them."""
        return tuple(self._items[key])

    @cached_property
    def _items(self) -> Mapping[str, Sequence[UsageItem]]:
        items: dict[str, list[UsageItem]] = {key: [] for key in self.rows}
        for block in range(len(self.account.before)):
            for line, shares in self._divided(block):
                # The first words of the message on one line, or what kind of row it is in.
                title = " ".join(line.message.text.split(maxsplit=12)[:12])[:60] or row_of(line.message, "text")
                for row, tokens, source in shares:
                    items[row].append(UsageItem(title, tokens, source, line.message.id))
        return items


class Rows(NamedTuple):
    """The rows, the shares of single messages, and warnings."""

    rows: tuple[UsageRow, ...]
    messages: MessageShares
    warnings: tuple[str, ...]


def make_rows(request: Request, situation: Situation) -> Rows:
    """The rows of a request; `attribute` decides what belongs to which."""
    total, preamble = situation.estimate.tokens, situation.preamble
    attribution = attribute(request, situation)
    weights = attribution.tokens or ({"unattributed": 1.0} if total else {})
    keys = [key for key in ROW_NAMES if key in weights]
    tokens_of = dict(zip(keys, apportion(total, [weights[key] for key in keys]), strict=True))
    in_messages = {key: tokens_of[key] for key in MESSAGE_ROWS if key in tokens_of}
    shares = MessageShares(situation.account, attribution.factors, in_messages)
    rows = []
    for key, tokens in tokens_of.items():
        items: Sequence[UsageItem] = ()
        source = attribution.sources.get(key, "estimated")
        if key in SECTION_ROWS:
            sections = zip(request.system, preamble.sections, strict=True)
            chosen = [(section.name, weight) for section, weight in sections if section.kind == key]
            how = source if len(chosen) == 1 else "estimated"
            parts = apportion(tokens, [weight for _, weight in chosen])
            items = tuple(UsageItem(name, part, how, name) for (name, _), part in zip(chosen, parts, strict=True))
        elif key == "tools":
            how = source if source == "estimated" or len(request.tools) == 1 else "derived"
            tools = zip(request.tools, apportion(tokens, preamble.tools), strict=True)
            unsorted = [UsageItem(tool.name, part, how, tool.name, tool.origin) for tool, part in tools]
            items = tuple(sorted(unsorted, key=lambda item: (item.group != BUILT_IN, item.group)))
        elif key in MESSAGE_ROWS:
            items = LazyItems(partial(shares.row_items, key))
        rows.append(UsageRow(key, ROW_NAMES[key], tokens, source, items))
    return Rows(tuple(rows), shares, (attribution.warning,) if attribution.warning else ())


# -- attribution: which rows the total belongs to ----------------------------------------------------------------------


class Attribution(NamedTuple):
    """Tokens and their source by row key, larger than 0. They add up to the total but for rounding.

    `factors` are what estimates of messages are multiplied by, for each of their rows; `warning` is for a person, ""
    where measurements and total agree.
    """

    tokens: Mapping[str, float]
    sources: Mapping[str, CountSource]
    factors: Mapping[str, float]
    warning: str = ""


def attribute(request: Request, situation: Situation) -> Attribution:
    """How the total of `situation` is attributed."""
    estimate, base, account, preamble, calibration = situation
    total, measured = estimate.tokens, base.measurement is not None
    rows = {key: account.rows.get(key, NO_TOKENS) for key in MESSAGE_ROWS}
    prompts = split_preamble(request, preamble, calibration)
    tokens = {key: known for key, (known, _, _) in rows.items()}
    tokens["tool_results"] -= min(estimate.cleared, sum(rows["tool_results"][:2]))  # measured or not
    tokens["reasoning"] *= calibration.reasoning_share
    tokens["hidden"] = min(float(total), calibration.hidden + prompts.hidden)

    files = account.sums.media * calibration.media_factor
    texts = max(0.0, learned(account.sums, calibration) - files)
    messages = _text_guess(texts, estimate_margin(texts, account.sums, account.model), account.model)
    guesses = messages, _files_guess(files, account.model, calibration), prompts.sections, prompts.tools
    missing = total - sum(tokens.values()) - sum(guess.tokens for guess in guesses)
    by_template = 0.0
    if preamble.per_request > TEMPLATE_LEAST and not any(preamble.sections):
        by_template = min(preamble.per_request, max(0.0, missing))
    tokens["hidden"] += by_template
    missing -= by_template
    corrected, unexplained = _corrected(guesses, missing)
    if abs(unexplained) > UNATTRIBUTED * total:  # more than they can be off by: something else is in the total
        corrected, unexplained = [guess.tokens for guess in guesses], missing
    in_texts, in_files, in_sections, in_tools = corrected
    estimated = {key: guess for key, (_, guess, _) in rows.items() if guess > 0}
    in_rows = _in_message_rows(estimated, account.sums.media, in_texts, in_files)
    for key, guess in in_rows.items():
        tokens[key] += guess
    for key in SECTION_ROWS:
        tokens[key] = prompts.tokens[key] * in_sections / prompts.sections.tokens if prompts.tokens[key] else 0.0
    tokens["tools"] = in_tools

    largest, warning = max(tokens, key=tokens.__getitem__), ""
    is_rounding = abs(unexplained) <= UNATTRIBUTED * total and tokens[largest] + unexplained >= 0
    if is_rounding:
        tokens[largest] += unexplained
    elif measured and 0 < unexplained <= TEMPLATE and get_tokenizer(account.model).method == "vocabulary":
        tokens["hidden"] += unexplained
        by_template += unexplained
    elif unexplained > 0:
        tokens["unattributed"] = unexplained
        if measured and unexplained > TEMPLATE:
            warning = f"{round(unexplained):,} tokens belong to no known message, prompt or tool"
    difference: CountSource = "derived" if measured else "estimated"
    is_whole = measured and not by_template and "unattributed" not in tokens
    sources = _sources(rows, prompts, is_whole=is_whole)
    sources |= {"hidden": difference if by_template else "derived", "unattributed": difference}
    if unexplained < 0 and not is_rounding:
        if unexplained < -TEMPLATE:
            came_to = round(sum(tokens.values()))
            whole = tokens_exact(total, estimate.source)
            warning = f"the rows come to ~{came_to:,} tokens, the whole request has {whole}: they were scaled down"
        sources = dict.fromkeys(sources, "estimated")
    factors = {key: in_rows[key] / guess for key, guess in estimated.items()}
    return Attribution({key: value for key, value in tokens.items() if value > 0}, sources, factors, warning)


class Guess(NamedTuple):
    """An estimate in tokens, by how many it may be off, and the lowest and highest factor it can be off by."""

    tokens: float
    margin: float
    low: float
    high: float

    def limited(self, tokens: float) -> float:
        """`tokens` within the limits."""
        return min(max(tokens, self.low * self.tokens), self.high * self.tokens)


def _text_guess(tokens: float, margin: float, model: str) -> Guess:
    """The guess at a text; one in the model's own vocabulary is off by a few margins at most."""
    if not tokens or get_tokenizer(model).method != "vocabulary":
        return Guess(tokens, margin, FACTOR_LOW, FACTOR_HIGH)
    share = (PLAUSIBLE_MARGINS * margin + TEMPLATE_LEAST) / tokens
    return Guess(tokens, margin, max(0.0, 1 - share), 1 + share)


def _files_guess(tokens: float, model: str, calibration: Calibration) -> Guess:
    """The guess at images and PDFs; without a published formula, and until two calls were measured, a wide one."""
    if has_image_formula(model) or len(calibration.media) >= 2:
        return Guess(tokens, MARGIN_TOKENIZER * tokens, FACTOR_LOW, FACTOR_HIGH)
    return Guess(tokens, MARGIN_IMAGES * tokens, 1 / (1 + MARGIN_IMAGES), 1 + MARGIN_IMAGES)


def _corrected(guesses: Sequence[Guess], missing: float) -> tuple[list[float], float]:
    """The tokens of `guesses` with what they are `missing` together, and what of it is beyond their limits.

    It is divided by their margins, as far as each can be off; what one can't take those with larger margins get, and
    last those that were counted.
    """
    tokens, margins = [guess.tokens for guess in guesses], sum(guess.margin for guess in guesses)
    for index in sorted(range(len(guesses)), key=lambda index: (not guesses[index].margin, guesses[index].margin)):
        guess = guesses[index]
        tokens[index] = guess.limited(guess.tokens + missing * (guess.margin / margins if guess.margin else 1.0))
        missing -= tokens[index] - guess.tokens
        margins -= guess.margin
    return tokens, missing


def _in_message_rows(estimated: Mapping[str, float], media: float, texts: float, files: float) -> dict[str, float]:
    """`texts` and `files` by row, in proportion to what is `estimated`, of which `media` are images and PDFs."""
    factor = texts / max(1.0, sum(estimated.values()) - media)
    tokens = {key: factor * guess for key, guess in estimated.items()}
    if media:
        tokens["attachments"] = tokens.get("attachments", 0.0) + files - factor * media
    return tokens


def _sources(
    rows: Mapping[str, tuple[float, float, float]], prompts: PreambleSplit, *, is_whole: bool
) -> dict[str, CountSource]:
    """How the tokens of each row are known; a row is as sure as the least sure of its messages.

    If they make up a measured total (`is_whole`), the only estimated row is the difference of it and the certain rows.
    """
    sources = dict(prompts.sources)
    for key, (_, guess, derived) in rows.items():
        sources[key] = "estimated" if guess > 0 else "derived" if derived > 0 else "measured"
    guessed = [key for key, (_, guess, _) in rows.items() if guess > 0]
    before = [key for key, guess in prompts.tokens.items() if guess > 0]
    if is_whole and len(guessed) == 1 and not (before and prompts.sections.margin + prompts.tools.margin):
        sources[guessed[0]] = "derived"
    return sources


class PreambleSplit(NamedTuple):
    """Tokens and their source by row key (one of `PREAMBLE_ROWS`).

    `sections` and `tools` say how far off the rows of the system prompt and of the tools may be. `hidden` is what calls
    had beyond these, and what they agree on: a prompt that the server adds.
    """

    tokens: Mapping[str, float]
    sources: Mapping[str, CountSource]
    sections: Guess
    tools: Guess
    hidden: float = 0.0


def split_preamble(request: Request, preamble: Preamble, calibration: Calibration) -> PreambleSplit:
    """The rows before the messages.

    The provider's own counts come first. Else calls of this model with this preamble measure its total, calls with the
    same system prompt and no tools measure that part, and the tools are the difference. What can't be told apart is an
    estimate, and so is what is unlikely as long as one call alone says so. If two say so, the server adds it.
    """
    if preamble.counted is not None:
        counts = preamble.counted._asdict()
        both = sum(counts[key] for key in SECTION_ROWS), counts["tools"]
        sections, tools = (Guess(size, 0.0, 1 - COUNTED_RANGE, 1 + COUNTED_RANGE) for size in both)
        return PreambleSplit(counts, dict.fromkeys(PREAMBLE_ROWS, "counted"), sections, tools)
    tokens = dict.fromkeys(PREAMBLE_ROWS, 0.0)
    for section, guess in zip(request.system, preamble.sections, strict=True):
        tokens[section.kind] += guess
    tokens["system"] += preamble.per_request if tokens["system"] else 0.0
    prompts = sum(tokens.values())
    tokenizer = get_tokenizer(request.model)
    doubt = tokenizer.margins[LATIN] if tokenizer.method == "vocabulary" else MARGIN_HEURISTIC
    sections = _text_guess(prompts, doubt * prompts, request.model)
    tokens["tools"] = sum(preamble.tools) + preamble.fixed
    tools = Guess(tokens["tools"], MARGIN_HEURISTIC * tokens["tools"], MIN_PREAMBLE, FACTOR_HIGH)
    # What a request without tools has before its messages, and what one with them has.
    alone = calibration.preambles.get(preamble_digest(request.system, ())) if prompts else None
    whole = calibration.preambles.get(preamble.digest)
    added, most = 0.0, sections.high * prompts + TEMPLATE
    if alone is not None and alone.agreed and alone.actual > most:
        added = alone.actual - prompts
    elif whole is not None and whole.agreed and whole.actual > most + tools.high * tools.tokens:
        added = whole.actual - prompts - tools.tokens
    hidden = max(0.0, added - calibration.hidden)
    if not prompts:
        alone = PreambleCost(preamble.per_request, preamble.per_request + added, agreed=True)
    beyond = 0.0 if whole is None or alone is None else whole.actual - alone.actual
    if whole is None or alone is None or beyond <= 0 or tools.limited(beyond) != beyond:
        return PreambleSplit(tokens, dict.fromkeys(PREAMBLE_ROWS, "estimated"), sections, tools, hidden)
    measured = max(0.0, alone.actual - added) if prompts else 0.0
    for key in SECTION_ROWS:
        tokens[key] *= measured / prompts if prompts else 0.0
    tokens["tools"] = beyond
    several = sum(tokens[key] > 0 for key in SECTION_ROWS) > 1
    sources: dict[str, CountSource] = dict.fromkeys(SECTION_ROWS, "estimated" if several else "derived")
    sources["tools"] = "derived"
    sections, tools = (Guess(size, MARGIN_TOKENIZER * size, FACTOR_LOW, FACTOR_HIGH) for size in (measured, beyond))
    return PreambleSplit(tokens, sources, sections, tools, hidden)

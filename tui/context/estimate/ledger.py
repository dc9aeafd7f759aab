"""What a request consists of: the estimate of its preamble, and the account of its messages.

The account has the cost of each message, and sums over any number of them. An estimate costs the same with 100 messages
and with 10,000: a request shares its message objects with the request before it, and only what follows the longest
common prefix is digested, counted and added up. Totals are kept for every `BLOCK` messages; what a message costs by row
is computed when it is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import add, attrgetter, sub
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from tui.context.counting.counting import MessageCount, RawCount, TokenCounter, with_markup
from tui.context.counting.digests import (
    CHAIN_START,
    CostBook,
    CountSource,
    TokenCost,
    chain,
    message_digest,
    preamble_digest,
)
from tui.context.counting.families import prior_of
from tui.messages import Attachment, Message, Reasoning, Refusal, Request, Text, ToolCall, ToolResult

BLOCK = 16
SECTION_MARKUP, TOOL_MARKUP = 64, 160  # tokens that a template may add around one of them
AT_ONCE = 2_000  # messages counted at once
COMPARED = 512  # messages compared at once

RowTokens: TypeAlias = Mapping[str, tuple[float, float, float]]
"""Tokens by row key: known, estimated, and the derived part of the known ones."""

NO_TOKENS = (0.0, 0.0, 0.0)


class Sums(NamedTuple):
    """Sums over messages, in tokens.

    Messages of unknown cost are summed by what they consist of (see `MessageCount`), the others by their `known` costs;
    `reasoning` is the part of all that is reasoning. `classes` is `content` by class of text, packed.

    Over all messages: `plain` is the estimate before learning, `text` its visible text, `most` the upper limit
    (`most_tokens`), `size` the bytes of visible text, `all_classes` the classes of all of them.
    """

    content: float = 0.0
    markup: float = 0.0
    media: float = 0.0
    fixed: float = 0.0
    known: float = 0.0
    reasoning: float = 0.0
    classes: int = 0
    plain: float = 0.0
    text: float = 0.0
    most: float = 0.0
    size: float = 0.0
    all_classes: int = 0

    def plus(self, other: Sums) -> Sums:
        """Both added up."""
        return Sums._make(map(add, self, other))


class Line(NamedTuple):
    """What is kept of a message: what its tokenizer counted, its measured cost if known, and its part of the sums."""

    message: Message
    raw: RawCount
    cost: TokenCost | None
    sums: Sums
    body: bytes
    chain: bytes

    @property
    def tokens(self) -> float:
        """The best figure available."""
        return self.sums.plain if self.cost is None else self.cost.tokens

    @property
    def source(self) -> CountSource:
        """Where that figure comes from."""
        return "estimated" if self.cost is None else self.cost.source


Share: TypeAlias = tuple[str, float, CountSource]
"""What a message has of one row: the row's key, tokens, source. A measured message is divided by estimate."""


class Totals(NamedTuple):
    """Sums over the first messages, and what they have of each row."""

    sums: Sums = Sums()
    rows: RowTokens = MappingProxyType({})


class Account(NamedTuple):
    """A line for each message of a request to `model`, and their totals. Immutable.

    `before` are the totals of the messages before each one whose index is a multiple of `BLOCK`.
    """

    model: str
    lines: tuple[Line, ...] = ()
    before: tuple[Totals, ...] = (Totals(),)
    sums: Sums = Sums()
    rows: RowTokens = MappingProxyType({})

    def sums_before(self, index: int) -> Sums:
        """The sums over the first `index` messages; the work does not grow with their number."""
        sums = self.before[index // BLOCK].sums
        for line in self.lines[index - index % BLOCK : index]:
            sums = sums.plus(line.sums)
        return sums

    def since(self, index: int) -> Sums:
        """The sums over the messages from `index` on."""
        return Sums._make(map(sub, self.sums, self.sums_before(index)))

    def chain(self, length: int) -> bytes:
        """The chain digest of the first `length` messages."""
        return self.lines[length - 1].chain if length else CHAIN_START

    def begins_with(self, length: int, chain: bytes) -> bool:
        """Whether `chain` is the chain digest of the first `length` messages, one at least."""
        return 0 < length <= len(self.lines) and self.chain(length) == chain

    def cut(self, length: int) -> Account:
        """The account of the first `length` messages."""
        blocks = length // BLOCK
        start, before = blocks * BLOCK, self.before[: blocks + 1]
        whole = Account(self.model, self.lines[:start], before, *before[-1])
        rest = self.lines[start:length]
        return whole.extended(rest, list(map(self.shares, rest)))

    def extended(self, lines: Sequence[Line], shares: Sequence[Sequence[Share]]) -> Account:
        """The account of these messages and those of `lines`, which have `shares` of the rows."""
        before, sums, rows = list(self.before), list(self.sums), dict(self.rows)
        for number, (line, of_line) in enumerate(zip(lines, shares, strict=True), len(self.lines) + 1):
            sums = list(map(add, sums, line.sums))
            add_shares(rows, of_line)
            if number % BLOCK == 0:
                before.append(Totals(Sums._make(sums), dict(rows)))
        return Account(self.model, (*self.lines, *lines), tuple(before), Sums._make(sums), rows)

    def shares(self, line: Line) -> list[Share]:
        """What the message of `line` has of each row."""
        return shares_of(line.message, line.cost, with_markup(line.message, line.raw, self.model))


def add_shares(rows: dict[str, tuple[float, float, float]], shares: Iterable[Share]) -> None:
    """Add what one more message has of each row."""
    for key, tokens, source in shares:
        known, estimated, derived = rows.get(key, NO_TOKENS)
        if source == "estimated":
            rows[key] = known, estimated + tokens, derived
        else:
            rows[key] = known + tokens, estimated, derived + tokens * (source == "derived")


def shares_of(message: Message, cost: TokenCost | None, count: MessageCount) -> list[Share]:
    """What a message has of each row. A measured cost is divided by estimate."""
    size, split, *_ = count
    if cost is None:
        return [(row_of(message, kind), tokens, "estimated") for kind, tokens in split.items()]
    source: CountSource = "derived" if cost.source == "measured" and len(split) > 1 else cost.source
    others = size - split.get("reasoning", 0.0)
    scale = (cost.tokens - cost.reasoning) / others if others > 0 else 0.0
    return [
        (row_of(message, kind), float(cost.reasoning) if kind == "reasoning" else tokens * scale, source)
        for kind, tokens in split.items()
    ]


def sums_of(message: Message, cost: TokenCost | None, count: MessageCount) -> Sums:
    """What a message adds to the sums."""
    size, split, markup, media, fixed, classes = count
    reasoning = split.get("reasoning", 0.0)
    text = max(0.0, size - reasoning - media - markup)
    visible, most = _limits(message)
    most = max(most, size)
    if cost is not None:
        known, reasoning = float(cost.tokens), float(cost.reasoning)
        return Sums(
            known=known, reasoning=reasoning, plain=size, text=text, most=most, size=visible, all_classes=classes
        )
    return Sums(
        content=count.content,
        markup=markup,
        media=media,
        fixed=fixed,
        reasoning=reasoning,
        classes=classes,
        plain=size,
        text=text,
        most=most,
        size=visible,
        all_classes=classes,
    )


PART_MARKUP = 48
"""Tokens that a server's template may add around a message or a part of it. Anthropic's tool results have 34."""

MAX_PAGE = 6_000
"""Tokens of a PDF page: its text and its picture."""


def _limits(message: Message) -> tuple[float, float]:
    """The UTF-8 bytes of the text of `message` that a model reads, and the most tokens that it can cost.

    No token is shorter than a byte. Images count as base64 text, as some gateways bill them; unreadable reasoning by
    the length of its encrypted original.
    """
    size, others = 0, float(PART_MARKUP * (1 + len(message.parts)))
    for part in message.parts:
        match part:
            case Text(text=text) | Refusal(text=text) | ToolResult(text=text):
                size += utf8_size(text)
            case ToolCall():
                size += utf8_size(part.name) + utf8_size(part.arguments)
            case Attachment():
                size += utf8_size(part.text_sent)
                if part.kind != "text":
                    others += part.size * 4 / 3 + MAX_PAGE * (part.pages or 1)
            case Reasoning():
                hidden = part.encrypted or part.redacted or part.signature or part.details or ""
                others += max(utf8_size(part.text), len(hidden), part.tokens or 0)
            case _:
                pass
    return float(size), size + others


def utf8_size(text: str) -> int:
    """Bytes of `text` in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def row_of(message: Message, kind: str) -> str:
    """The row key of one kind of content in `message`."""
    if message.kind == "summary":
        return "summaries"
    return _TEXT_ROWS[message.role] if kind == "text" else kind


_TEXT_ROWS = {"user": "user", "assistant": "assistant", "tool": "tool_results"}


@dataclass(eq=False)
class Ledger:
    """The account of one session for one model, kept up to date.

    `version` increases whenever existing lines change or are removed.
    """

    provider: str
    counter: TokenCounter
    costs: CostBook
    account: Account
    version: int = 0
    _messages: tuple[Message, ...] = ()

    def update(self, messages: tuple[Message, ...]) -> Account:
        """The account of `messages`."""
        lines = len(self.account.lines)
        if messages is not self._messages or lines < len(messages):  # fewer after an error of the store
            common = min(lines, _common(self._messages, messages))
            self._messages = messages
            self.refresh(common)
        return self.account

    def refresh(self, start: int) -> None:
        """Make the lines from message `start` on anew: the messages changed, or more of their costs was learned."""
        if start < len(self.account.lines):
            self.version += 1
            self.account = self.account.cut(start)
        model = self.account.model
        for begin in range(start, len(self._messages), AT_ONCE):  # what is needed in between is of a few messages only
            messages = self._messages[begin : begin + AT_ONCE]
            digests = list(map(message_digest, messages))
            full = list(map(attrgetter("full"), digests))
            raws = self.counter.raw_counts(messages, model, full)
            costs = self.costs.get(self.provider, model, full)
            chained, lines, shares = self.account.chain(len(self.account.lines)), [], []
            for message, digest, raw, cost in zip(messages, digests, raws, costs, strict=True):
                count = with_markup(message, raw, model)
                chained = chain(chained, digest.body)
                lines.append(Line(message, raw, cost, sums_of(message, cost, count), digest.body, chained))
                shares.append(shares_of(message, cost, count))
            self.account = self.account.extended(lines, shares)


def _common(old: tuple[Message, ...], new: tuple[Message, ...]) -> int:
    """The number of messages that both begin with."""
    at, shared = 0, min(len(old), len(new))
    # Comparing tuples looks at identity first, in C: about 5 ns a message.
    while at < shared and old[at : at + COMPARED] == new[at : at + COMPARED]:
        at += COMPARED
    while at < shared and (old[at] is new[at] or old[at] == new[at]):
        at += 1
    return min(at, shared)


# -- what stands before the messages -----------------------------------------------------------------------------------


class CountedParts(NamedTuple):
    """Tokens of the parts of a preamble by the provider's own counts."""

    system: float
    memory: float
    instructions: float
    tools: float


class Preamble(NamedTuple):
    """Estimates in tokens, with sections and tools in the request's order; `fixed` is the cost of offering tools at
    all.

    `most` is the upper limit of `total`: a token for each byte, plus what a template may add.
    """

    digest: bytes
    sections: tuple[float, ...]
    tools: tuple[float, ...]
    fixed: float
    per_request: float
    most: float = 0.0
    size: float = 0.0  # bytes of the sections
    counted: CountedParts | None = None

    @property
    def total(self) -> float:
        """All of it, including the request's markup."""
        return sum(self.sections) + sum(self.tools) + self.fixed + self.per_request


def preamble_steps(request: Request) -> tuple[Request, ...]:
    """The requests whose counts tell what the parts of a preamble cost: each has one part more than the one before.

    They have one short message in place of `request`'s own, since no provider counts a request without any.
    """
    bare = replace(request, messages=(Message("user", (Text("."),)),), system=(), tools=())
    prompt = replace(bare, system=tuple(section for section in request.system if section.kind == "system"))
    memory = replace(prompt, system=tuple(section for section in request.system if section.kind != "instructions"))
    whole_prompt = replace(memory, system=request.system)
    return bare, prompt, memory, whole_prompt, replace(whole_prompt, tools=request.tools)


def estimate_preamble(request: Request, counter: TokenCounter) -> Preamble:
    """The estimate for `request`, by the family's prior."""
    prior = prior_of(request.model)
    sections, tools, size = list[float](), list[float](), 0
    most = SECTION_MARKUP * len(request.system) + TOOL_MARKUP * len(request.tools)
    for section in request.system:
        sections.append(float(counter.count_section(section, request.model) if section.text else 0))
        size += utf8_size(section.text)
    for tool in request.tools:
        tools.append(float(counter.count_tool(tool, request.model)))
        most += utf8_size(f"{tool.name}{tool.description}{tool.parameters}")
    chat = 0.0 if request.provider == "openai" else prior.tools_chat  # OpenAI itself is called by the Responses API
    fixed = prior.tools_fixed + chat if tools else 0.0
    digest = preamble_digest(request.system, request.tools)
    reasons = request.reasoning not in (None, "off")
    markup = prior.per_request + prior.thinking * reasons
    markup += prior.per_message if any(sections) else prior.default_prompt
    return Preamble(digest, tuple(sections), tuple(tools), fixed, markup, float(most + size), float(size))

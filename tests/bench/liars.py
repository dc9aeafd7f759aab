"""`python -m tests.bench simulate --liars`: servers that report their usage wrongly, each in its own way.

Every conversation is the real `ChatSession` on a store of its own. The server knows what a request really costs, and
reports something else for a while, in one of three dialects; before and after that it is honest. Held in all:

- a number without `~` is no further off than its bound or 5 %;
- no request larger than the real window goes out once two reports have proved it;
- no turn is refused that would fit;
- two honest calls after the lie the number is right again, within 5 %;
- what the person set as the window stands.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tests.bench.simulate_driver import fast_folder, in_one_thread, make_services
from tests.bench.simulate_server import SimTokenizer
from tests.context.helpers import registered
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import TurnFailed
from tui.chat.store.database import new_id
from tui.chat.store.store import SessionInfo, SessionStore
from tui.chat.turn.session import ChatSession
from tui.config.settings import ModelSettings, Settings
from tui.context.usage.limits import ModelLimits
from tui.messages import Request
from tui.providers.base import Capabilities, ModelInfo, Provider, StreamEnd, StreamEvent, TextDelta, UsageUpdate
from tui.providers.usage_reading import read_usage

Dialect: TypeAlias = Literal["chat", "responses", "anthropic"]
WindowKind: TypeAlias = Literal["known", "unknown", "wrong", "set", "small"]

DIALECTS: tuple[Dialect, ...] = ("chat", "responses", "anthropic")
WINDOW_KINDS: tuple[WindowKind, ...] = ("known", "unknown", "wrong", "set", "small")
CLIENT_ERRORS = (-0.15, -0.08, -0.02, 0.0, 0.02, 0.08, 0.15)
HISTORIES = ((0, 1), (0, 6), (1, 2), (3, 4), (12, 20), (30, 30))  # honest turns before the lies, turns with lies
AFTER = 4  # honest turns after them
WINDOW = 100_000
SMALL = 4_096  # of the servers that cut
SET = 64_000
TIGHT = 16_000  # so that a lie by a factor would refuse what fits
TOLERANCE, SLACK = 0.05, 24  # of the truth, tokens
HIDDEN = 4_096  # tokens that a gateway says it adds to every request: there is no telling that it doesn't
PROVED = 0.9  # of a request: what was read of it, when it is plain that the rest was cut

Body: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Honest:
    """One call as it was, in tokens; `before` are the earlier ones of the conversation."""

    input: int
    output: int
    cached: int
    characters: int
    before: Sequence[Honest]
    chance: random.Random


@dataclass(frozen=True, slots=True)
class Said:
    """What the server reports; a value may be anything that JSON has, `...` leaves the field out."""

    input: Any
    output: Any
    cached: Any = 0
    total: Any = ...


Lie: TypeAlias = Callable[[Honest], "Said | tuple[Said, ...] | None"]


def _sum(call: Honest, *, output: bool = False) -> int:
    calls = [*call.before, call]
    return sum(one.input + (one.output if output else 0) for one in calls)


def _earlier(call: Honest, position: int) -> Said | None:
    if not call.before:
        return None
    return Said(call.before[position].input, call.before[position].output)


LIARS: dict[str, Lie] = {
    "a placeholder of 100": lambda c: Said(100, c.output),
    "one and one": lambda c: Said(1, 1),
    "only the uncached part": lambda c: Said(c.input - c.cached, c.output, ...),
    "cut to the window": lambda c: Said(min(c.input, SMALL), c.output),
    "cut by dropping messages": lambda c: Said(
        c.input if c.input <= SMALL else c.chance.randint(SMALL // 2, SMALL), c.output
    ),
    "30,000": lambda c: Said(30_000, c.output),
    "5,000,000": lambda c: Said(5_000_000, c.output),
    "all inputs so far": lambda c: Said(_sum(c), c.output),
    "all tokens so far": lambda c: Said(_sum(c, output=True), c.output),
    "no input": lambda c: Said(..., c.output),
    "null input": lambda c: Said(None, c.output),
    "zero input": lambda c: Said(0, c.output),
    "text": lambda c: Said(str(c.input), str(c.output)),
    "nothing": lambda c: None,
    "the call before": lambda c: _earlier(c, -1),
    "the first call": lambda c: _earlier(c, 0),
    "a thousand times": lambda c: Said(1_000 * c.input, c.output),
    "thousands": lambda c: Said(max(1, c.input // 1_000), c.output),
    "rounded": lambda c: Said(-(-c.input // 20) * 20, c.output),
    "random": lambda c: Said(c.chance.randint(1, 50_000), c.chance.randint(1, 2_000)),
    "another request": lambda c: Said(c.chance.choice((210, 900, 7_000, 41_000)), c.output),
    "two passes": lambda c: Said(2 * c.input, c.output),
    "half": lambda c: Said(c.input // 2, c.output),
    "input and output": lambda c: Said(c.input + c.output, c.output),
    "swapped": lambda c: Said(c.output, c.input),
    "characters": lambda c: Said(c.characters, c.output),
    "words": lambda c: Said(max(1, c.characters // 6), c.output),
    "negative": lambda c: Said(-c.input, c.output),
    "fractions": lambda c: Said(c.input + 0.5, c.output),
    "more cached than there is": lambda c: Said(c.input, c.output, 3 * c.input),
    "no output": lambda c: Said(c.input, ...),
    "zero output": lambda c: Said(c.input, 0),
    "output of a beginning": lambda c: Said(c.input, 1),
    "fifty times the output": lambda c: Said(c.input, 50 * c.output),
    "hidden reasoning in the output": lambda c: Said(c.input, c.output + 2_000),
    "only a total": lambda c: Said(..., ..., ..., c.input + c.output),
    "another tokenizer, less": lambda c: Said(c.input * 4 // 5, c.output * 4 // 5),
    "another tokenizer, more": lambda c: Said(c.input * 5 // 4, c.output * 5 // 4),
    "a tenth less": lambda c: Said(c.input * 9 // 10, c.output),
    "a tenth more": lambda c: Said(c.input * 11 // 10, c.output),
    "ten times": lambda c: Said(10 * c.input, c.output),
    "only the output": lambda c: Said(c.output, c.output),
    "only the last message": lambda c: Said(_added(c), c.output),
    "without the system prompt": lambda c: Said(max(1, c.input - 160), c.output),
    "cached counted twice": lambda c: Said(c.input + c.cached, c.output, c.cached),
    "less twice the cached": lambda c: Said(abs(c.input - 2 * c.cached), c.output),
    "capped": lambda c: Said(min(c.input, 8_191), c.output),
    "never less than": lambda c: Said(max(c.input, 4_000), c.output),
    "three": lambda c: Said(3, c.output),
    "the window": lambda c: Said(WINDOW, c.output),
    "a fixed step more": lambda c: Said(500 * (len(c.before) + 1), c.output),
    "a growing excess": lambda c: Said(round(c.input * 1.02 ** len(c.before)), c.output),
    "a shrinking share": lambda c: Said(round(c.input * 0.98 ** len(c.before)), c.output),
    "falling": lambda c: Said(max(1, 9_000 - 100 * len(c.before)), c.output),
    "noise": lambda c: Said(round(c.input * c.chance.uniform(0.8, 1.2)), c.output),
    "every other call": lambda c: Said(c.input if len(c.before) % 2 else 3 * c.input, c.output),
    "a prompt of its own": lambda c: Said(c.input + HIDDEN, c.output),
    "with the answer's reserve": lambda c: Said(c.input + c.chance.randint(1_000, 16_000), c.output),
    "seconds since the epoch": lambda c: Said(1_764_339_300 + len(c.before), c.output),
    "beyond all integers": lambda c: Said(10**30, 10**30),
    "not a number": lambda c: Said(float("nan"), float("inf")),
    "true": lambda c: Said(True, True),
    "a list": lambda c: Said([c.input], {"tokens": c.output}),
    "thousands in text": lambda c: Said(f"{c.input:,}", f"{c.output:,}"),
    "negative cached": lambda c: Said(c.input, c.output, -c.cached),
    "a good one and then a poor one": lambda c: (Said(c.input, c.output), Said(0, 0)),
    "a poor one and then a good one": lambda c: (Said(1, 1), Said(c.input, c.output)),
    "a good one and then a small one": lambda c: (Said(c.input, c.output), Said(c.input // 9, c.output)),
}


def _added(call: Honest) -> int:
    return call.input - (call.before[-1].input + call.before[-1].output if call.before else 0)


def body_of(report: Said, dialect: Dialect) -> Body:
    """The usage as the dialect writes it."""
    read, cached = report.input, report.cached
    match dialect:
        case "chat":
            fields = {"prompt_tokens": read, "completion_tokens": report.output, "total_tokens": report.total}
            if cached is not ...:
                fields["prompt_tokens_details"] = {"cached_tokens": cached}
        case "responses":
            fields = {"input_tokens": read, "output_tokens": report.output, "total_tokens": report.total}
            if cached is not ...:
                fields["input_tokens_details"] = {"cached_tokens": cached}
        case "anthropic":
            honest = isinstance(read, int) and isinstance(cached, int) and 0 < cached <= read
            fields = {"input_tokens": read - cached if honest else read, "output_tokens": report.output}
            if honest:
                fields["cache_read_input_tokens"] = cached
    return {name: value for name, value in fields.items() if value is not ...}


@dataclass(frozen=True, slots=True)
class Lying:
    """One cell of the matrix. `off` is the client's tokenizer against the truth, less one."""

    liar: str
    dialect: Dialect
    window: WindowKind
    honest: int
    lies: int
    seed: int
    off: float = 0.0


@dataclass(slots=True)
class Held:
    """What was counted of one conversation, and in words what did not hold."""

    conversations: int = 1
    calls: int = 0
    exact: int = 0  # numbers shown without `~`
    wrong: list[str] = field(default_factory=list)


def matrix(every: int = 1, seed: int = 0) -> Iterator[Lying]:
    """All cells, or one in so many. Another `seed` draws other texts, sizes and errors of the client's tokenizer."""
    cells = itertools.product(LIARS, DIALECTS, WINDOW_KINDS, HISTORIES)
    for number, (liar, dialect, window, (honest, lies)) in enumerate(cells):
        if number % every == seed % every:
            cell_seed = number + 1_000_003 * seed
            yield Lying(liar, dialect, window, honest, lies, cell_seed, random.Random(cell_seed).choice(CLIENT_ERRORS))


class Server(Provider):
    """Knows the truth and says something else."""

    name = "liar"
    dialect = "openai-chat"

    def __init__(self, cell: Lying) -> None:
        self.cell = cell
        self.calls: list[Honest] = []
        self.lying = False
        self.largest_sent = 0
        self.read = 0  # tokens of the last request, as reported
        self._chance = random.Random(cell.seed)

    @property
    def cuts(self) -> bool:
        """Whether it really reads no more than `SMALL`."""
        return self.cell.liar.startswith("cut")

    def truth(self, request: Request) -> int:
        """What a request costs: four characters a token, and four a message."""
        texts = [section.text for section in request.system]
        return 3 + sum(4 + len(m.text) // 4 for m in request.messages) + sum(len(text) // 4 for text in texts)

    def capabilities(self, model: str) -> Capabilities:
        """The least."""
        return Capabilities()

    async def describe(self, model: str) -> ModelInfo:
        """Its window."""
        return ModelInfo(model, limits=await self.limits(model))

    async def limits(self, model: str) -> ModelLimits | None:
        """The window, or what is claimed to be it."""
        real = SMALL if self.cuts else WINDOW
        windows = {
            "known": real,
            "unknown": None,
            "wrong": WINDOW if self.cuts else 2 * WINDOW,
            "set": real,
            "small": SMALL if self.cuts else TIGHT,
        }
        context = windows[self.cell.window]
        return None if context is None else ModelLimits(context, source="probe")

    async def models(self) -> list[ModelInfo]:
        """One."""
        return [ModelInfo("liar")]

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """An answer of some size, and what is said of it."""
        size = self.truth(request)
        self.largest_sent = size
        text = prose(self._chance, self._chance.choice((5, 40, 200, 500)))
        output = len(text) // 4 + 4
        cached = self.calls[-1].input if self.calls and self.calls[-1].input < size else 0
        characters = sum(len(message.text) for message in request.messages) + 20
        call = Honest(size, output, cached, characters, tuple(self.calls), self._chance)
        self.calls.append(call)
        read = min(size, SMALL) if self.cuts else size
        reported = LIARS[self.cell.liar](call) if self.lying else Said(read, output, min(cached, read))
        reports = reported if isinstance(reported, tuple) else () if reported is None else (reported,)
        self.read = reports[-1].input if reports and isinstance(reports[-1].input, int) else 0
        yield TextDelta(text)
        for report in reports:
            usage = read_usage(body_of(report, self.cell.dialect))
            if usage is not None:
                yield UsageUpdate(usage)
        yield StreamEnd("stop", "stop")


def prose(chance: random.Random, tokens: int) -> str:
    """A text of about so many tokens."""
    return " ".join(chance.choice(("what", "else", "could", "there", "possibly", "be")) for _ in range(max(1, tokens)))


async def _converse(cell: Lying, name: str, store: SessionStore) -> Held:
    server, held = Server(cell), Held()
    models = {f"liar/{name}": ModelSettings(window=SET)} if cell.window == "set" else {}
    settings = Settings(compaction="off", models=models, system=prose(random.Random(cell.seed), 150))
    services = make_services(store, settings, server)
    info = SessionInfo(new_id(), "", "liar", name, 0.0, 0.0, rolling=True)
    store.create_session(info)
    session = ChatSession(Conversation(store, info, [], []), services)
    chance = random.Random(cell.seed + 1)
    proofs = largest = 0  # reports of a cut prompt so far: the request grew, and what was read did not
    for turn in range(cell.honest + cell.lies + AFTER):
        server.lying = cell.honest <= turn < cell.honest + cell.lies
        after = turn - cell.honest - cell.lies
        events = [e async for e in session.send(prose(chance, chance.choice((3, 30, 120, 600))))]
        held.calls += 1
        failed = [event.text for event in events if isinstance(event, TurnFailed)]
        _judge(cell, server, session, held, turn=turn, after=after, failed=failed, proved=proofs >= 2)
        if server.cuts and server.read < PROVED * server.calls[-1].input and server.read <= largest:
            proofs += 1
        largest = max(largest, server.read)
    return held


def _judge(
    cell: Lying,
    server: Server,
    session: ChatSession,
    held: Held,
    *,
    turn: int,
    after: int,
    failed: Sequence[str],
    proved: bool,
) -> None:
    usage = session.usage
    if failed or usage is None:
        held.wrong.append(f"turn {turn} refused: {failed}")
        return
    truth = server.truth(session.conversation.request())
    if server.lying and cell.liar == "a prompt of its own":
        truth += HIDDEN
    off = abs(usage.total - truth)
    if usage.source == "exact":
        held.exact += 1
        if off > max(TOLERANCE * truth, usage.upper_bound - usage.total, SLACK):
            held.wrong.append(f"turn {turn}: {usage.total:,} without ~, really {truth:,}")
    if after >= 1 and not server.cuts and off > max(TOLERANCE * truth, SLACK):
        held.wrong.append(f"turn {turn}: {usage.total:,} after {after + 1} honest calls, really {truth:,}")
    if proved and cell.window != "set" and server.largest_sent > SMALL:
        held.wrong.append(f"turn {turn}: {server.largest_sent:,} tokens sent, {SMALL:,} are read")
    if cell.window == "set" and usage.limits.context != SET:
        held.wrong.append(f"turn {turn}: the window set is {SET:,}, not {usage.limits.context}")


def converse(cell: Lying) -> Held:
    """Run one cell to its end."""
    name = f"liar{cell.off:+.2f}"
    folder = Path(tempfile.mkdtemp(prefix="chatctx-liar-", dir=fast_folder()))
    try:
        store = SessionStore(folder / "sim.db")
        try:
            with in_one_thread(), registered(name, SimTokenizer(name, cell.off)):
                return asyncio.run(_converse(cell, name, store))
        finally:
            store.close()
    finally:
        shutil.rmtree(folder)

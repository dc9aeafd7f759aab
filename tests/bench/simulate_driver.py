"""One simulated conversation: the real `ChatSession` on a store of its own, against the strict fake server."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar

from tests.bench.simulate_server import (
    BLOCK,
    FakeServer,
    ReasoningKind,
    Reply,
    ServerKind,
    SimTokenizer,
    Summariser,
    facts_in,
    part_tokens,
    preamble_tokens,
    words,
)
from tests.context.helpers import registered
from tui.chat.conversation.conversation import Conversation
from tui.chat.conversation.events import (
    CompactionFinished,
    ContextTrimmed,
    MessageAdded,
    ReplyFinished,
    SessionEvent,
    TurnFailed,
)
from tui.chat.runtime.services import Services
from tui.chat.store.database import new_id
from tui.chat.store.store import SessionInfo, SessionStore
from tui.chat.turn.session import ChatSession
from tui.config.settings import Settings
from tui.context.usage.limits import Percent
from tui.messages import Attachment, Message, ToolResult, ToolSchema
from tui.providers.base import Provider
from tui.tools.base import Tool, ToolOutput, ToolSource

P = ParamSpec("P")
T = TypeVar("T")

Talk: TypeAlias = Literal["chat", "agent", "cjk", "images"]
Mode: TypeAlias = Literal["rolling", "compaction", "off"]

GIVE_UP_AFTER = 3  # refused turns in a row, after which the person leaves


@dataclass(frozen=True, slots=True)
class Scenario:
    """One cell of the grid. `overhead` is the share of the window that system prompt and tools take, `off` the
    client's estimate against the truth less one."""

    talk: Talk
    mode: Mode
    window: int
    overhead: float
    off: float
    server: ServerKind
    reasoning: ReasoningKind
    summariser: Summariser
    turns: int
    seed: int


@dataclass(slots=True)
class Outcome:
    """What came of one conversation, as numbers that add up over many."""

    conversations: int = 1
    turns: int = 0
    requests: int = 0
    overflows: int = 0
    surprises: int = 0
    surprises_unknown_window: int = 0
    surprises_after_measure: int = 0
    truncated: int = 0
    pairing_errors: int = 0
    signature_errors: int = 0
    loops: int = 0
    lost_messages: int = 0
    lost_facts: int = 0
    refusals: int = 0
    wrong_refusals: int = 0
    failures: int = 0
    trims: int = 0
    compactions: int = 0
    summaries: int = 0
    prefix_changes: int = 0
    samples: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Sum up."""
        for name in COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.samples += other.samples


COUNTED = tuple(name for name in Outcome.__dataclass_fields__ if name != "samples")


class SimTools:
    """Tools whose results are as large as the conversation says, and whose schemas take the overhead's share."""

    name = "built-in"

    def __init__(self, schemas: Sequence[ToolSchema]) -> None:
        self.results: dict[str, str] = {}
        self._schemas = tuple(schemas)

    def tools(self) -> Sequence[Tool]:
        """What is offered."""
        return [Tool(schema, True, self.run) for schema in self._schemas]

    async def run(self, arguments: Mapping[str, Any]) -> ToolOutput:
        """The prepared result."""
        ident = arguments["id"]
        return ToolOutput(self.results[ident], is_error=ident.endswith("e"))


def make_services(store: SessionStore, settings: Settings, server: Provider, *tools: ToolSource) -> Services:
    """What a `ChatSession` needs, around one provider."""
    return Services(settings, store, lambda name: server, tools)


class Simulation:
    """Runs one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.outcome = Outcome()
        self.server = FakeServer(
            scenario.window,
            kind=scenario.server,
            reasoning=scenario.reasoning,
            summariser=scenario.summariser,
            seed=scenario.seed,
        )
        self._random = random.Random(scenario.seed)
        self._serial = 0
        self._said: list[str] = []
        self._facts: set[str] = set()
        self._replied_since_compaction = True

    async def run(self) -> Outcome:
        """The whole conversation."""
        model = f"sim{self.scenario.off:+.2f}"
        folder = Path(tempfile.mkdtemp(prefix="chatctx-sim-", dir=fast_folder()))
        try:
            store = SessionStore(folder / "sim.db")
            try:
                with registered(model, SimTokenizer(model, self.scenario.off)):
                    session, tools = self._open(store, model)
                    await self._converse(session, tools)
                    self._look_for_losses(store, session)
            finally:
                store.close()
        finally:
            shutil.rmtree(folder)
        faults = self.server.faults
        outcome = self.outcome
        outcome.requests, outcome.summaries = faults.requests, faults.summaries
        outcome.overflows, outcome.surprises = faults.knowable, faults.surprises
        outcome.surprises_unknown_window = faults.unknown_window
        outcome.surprises_after_measure, outcome.truncated = faults.after_measure, faults.truncated
        outcome.pairing_errors, outcome.signature_errors = faults.pairing, faults.signature
        outcome.samples += faults.samples
        return outcome

    def _open(self, store: SessionStore, model: str) -> tuple[ChatSession, SimTools]:
        scenario = self.scenario
        fixed = int(scenario.window * scenario.overhead)
        system = words(fixed if scenario.talk != "agent" else fixed // 2)
        schemas = []
        if scenario.talk == "agent":
            schemas = [ToolSchema("read_file", words(fixed // 2), "{}")]
        tools = SimTools(schemas)
        settings = Settings(compaction="off" if scenario.mode == "off" else Percent(85), system=system)
        services = make_services(store, settings, self.server, tools)
        info = SessionInfo(new_id(), "", "sim", model, 0.0, 0.0, rolling=scenario.mode == "rolling")
        store.create_session(info)
        session = ChatSession(Conversation(store, info, [], []), services)
        self.server.believed = lambda: session.usage
        return session, tools

    # -- the conversation --------------------------------------------------------------------------------------------

    async def _converse(self, session: ChatSession, tools: SimTools) -> None:
        refused = 0
        before: tuple[Message, ...] = ()
        for number in range(self.scenario.turns):
            text, attachments = self._question(number)
            self.server.replies = self._answers(tools)
            self._said.append(text)
            self.outcome.turns += 1
            failed = ""
            async for event in session.send(text, attachments):
                failed = self._watch(event, session) or failed
            if failed:
                refused += 1
                self._judge(failed, session, text)
                if refused >= GIVE_UP_AFTER:
                    return
                continue
            refused = 0
            sent = self.server.last_sent
            if [m.id for m in sent[: len(before)]] != [m.id for m in before] or sent[: len(before)] != before:
                self.outcome.prefix_changes += 1
            before = sent

    def _watch(self, event: SessionEvent, session: ChatSession) -> str:
        outcome = self.outcome
        match event:
            case ReplyFinished(message) if message.parts:
                self._replied_since_compaction = True
                self._said += [m for m in (message.text,) if m]
                self._check_facts(session)
            case MessageAdded(message) if message.role == "tool":
                self._said += [p.text for p in message.parts if isinstance(p, ToolResult)]
            case ContextTrimmed():
                outcome.trims += 1
            case CompactionFinished(summary=summary):
                outcome.compactions += 1
                outcome.loops += not self._replied_since_compaction
                self._replied_since_compaction = False
                self._check_due = summary is not None
            case TurnFailed(text):
                return text
            case _:
                pass
        return ""

    _check_due = False

    def _check_facts(self, session: ChatSession) -> None:
        """After a summary: every fact said so far must stand in the request that was just answered."""
        if not self._check_due or self.scenario.summariser != "faithful" or self.outcome.trims:
            return
        self._check_due = False
        missing = facts_in(session.messages[:-1]) - facts_in(self.server.last_sent)
        self.outcome.lost_facts += len(missing)
        if missing and len(self.outcome.samples) < 3:
            whether_asked = "asked" if missing <= self.server.summary_facts else "not asked"
            self.outcome.samples.append(f"{len(missing)} facts missing after a compaction ({whether_asked})")

    def _judge(self, failed: str, session: ChatSession, text: str) -> None:
        """A turn without an answer: a clear refusal, and one that had to be?"""
        if "tokens" not in failed or "/model" not in failed:
            self.outcome.failures += 1
            self.outcome.samples.append(f"failed: {failed[:160]}")
            return
        self.outcome.refusals += 1
        usage = session.usage
        limit = usage.budget.max_input if usage is not None else None
        request = session.conversation.request()
        truth = preamble_tokens(request) + _least_tokens(session.messages)
        least = max(truth, truth * (1 + self.scenario.off))
        if limit is not None and self.scenario.mode != "off" and least < 0.8 * limit:
            self.outcome.wrong_refusals += 1
            self.outcome.samples.append(f"refused, though {least:.0f} of {limit} would do: {failed[:120]}")

    def _question(self, number: int) -> tuple[str, tuple[Attachment, ...]]:
        scenario, chance = self.scenario, self._random
        share = chance.choice((0.002, 0.005, 0.01, 0.02))
        if chance.random() < 0.01:
            share = chance.choice((0.3, 0.9))  # a paste
        wide = scenario.talk == "cjk"
        text = f"{number}: {self._fact()}{words(scenario.window * share, wide)}"
        if scenario.talk == "images" and chance.random() < 0.3:
            shot = Attachment("image", f"{number}.png", "image/png", f"{number:064x}", 2_500_000, 512, 512)
            return text, (shot,)
        return text, ()

    def _answers(self, tools: SimTools) -> list[Reply]:
        scenario, chance = self.scenario, self._random
        most = min(16_000, scenario.window // 4) // 2
        replies: list[Reply] = []
        thought = chance.choice((0, 60, 200)) if scenario.reasoning != "none" else 0
        if scenario.talk == "agent":
            for _ in range(chance.choice((0, 0, 1, 1, 2, 6))):
                calls = []
                for _ in range(chance.choice((1, 1, 3))):
                    self._serial += 1
                    ident = f"call-{self._serial}{'e' if chance.random() < 0.1 else ''}"
                    calls.append((ident, f'{{"id": "{ident}", "path": "{"x" * chance.choice((8, 8, 400))}"}}'))
                    size = scenario.window * chance.choice((0.001, 0.005, 0.01, 0.03, 0.03, 0.1))
                    if chance.random() < 0.01:
                        size = scenario.window * chance.choice((0.5, 1.5))
                    tools.results[ident] = f"result {self._serial} {words(size)}"
                replies.append(Reply(chance.choice(("", "Let me look.")), tuple(calls), thought))
        size = min(most, scenario.window * chance.choice((0.002, 0.01, 0.02, 0.04)))
        replies.append(Reply(f"Answer {self._fact()}{words(size, scenario.talk == 'cjk')}", reasoning=thought))
        return replies

    def _fact(self) -> str:
        """Now and then a fact to remember, as many as a summary for this window can hold."""
        room = min(120, self.scenario.window // 300)
        if self.scenario.window < 8_000 or len(self._facts) >= room or self._random.random() < 0.5:
            return ""
        fact = f"F{len(self._facts)}:src/{self._random.choice(('parser', 'store', 'screen'))}.py"
        self._facts.add(fact)
        return fact + " "

    def _look_for_losses(self, store: SessionStore, session: ChatSession) -> None:
        stored: set[str] = set()
        for message in store.messages(session.id):
            stored.add(message.text)
            stored |= {p.text for p in message.parts if isinstance(p, ToolResult)}
        lost = [text for text in self._said if text not in stored]
        self.outcome.lost_messages += len(lost)
        if lost:
            self.outcome.samples.append(f"lost: {lost[0].replace(BLOCK, '')[:60]!r}")


def _least_tokens(history: Sequence[Message]) -> float:
    """The least that must go out of `history`: the last question and, where tools have answered it, the last step with
    its results cut short."""
    least = 0.0
    for message in reversed(history):
        if message.role == "user" and message.kind == "chat":
            return least + 4 + sum(part_tokens(part, "sim") for part in message.parts)
        if message is history[-1] and message.role == "tool":
            least += 60 * len(message.parts)
        elif len(history) > 1 and message is history[-2] and history[-1].role == "tool":
            least += 4 + sum(part_tokens(part, "sim") for part in message.parts)
    return least


def fast_folder() -> str | None:
    """A folder in memory, where the system has one."""
    shared = Path("/dev/shm")
    return str(shared) if shared.is_dir() else None


@contextmanager
def in_one_thread() -> Iterator[None]:
    """Threads add nothing to a conversation's logic: what would run in one runs at once."""

    async def at_once(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return function(*args, **kwargs)

    threaded = asyncio.to_thread
    asyncio.to_thread = at_once
    try:
        yield
    finally:
        asyncio.to_thread = threaded


def simulate(scenario: Scenario) -> Outcome:
    """Run one conversation to its end."""
    with in_one_thread():
        return asyncio.run(Simulation(scenario).run())

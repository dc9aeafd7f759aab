"""Conversations for tests of the screen: the real workspace over a database of its own, answered from a script."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tests import messages as build
from tests.chat.fakes import Answer, FakeWorkspace, ScriptedProvider, answer
from tests.usages import make_usage
from tui.chat.conversation.history import RecordKind
from tui.chat.memory_files import MemoryFiles
from tui.chat.model_list import ListedModel, Listing, ModelList
from tui.chat.store.calls import CallRow
from tui.chat.store.store import SessionInfo
from tui.chat.turn.session import ChatSession
from tui.chat.workspace import Workspace
from tui.config.settings import Settings
from tui.context.reduction.records import TRIM_LOG, TrimLog
from tui.context.usage.limits import ModelLimits
from tui.context.usage.usage import ContextUsage
from tui.messages import Message, Request
from tui.providers.base import Capabilities, ModelInfo, StreamEvent
from tui.screens.chat.screen import OpenWorkspace
from tui.text.labels import MESSAGE_ROWS
from tui.text.numbers import Cost
from tui.tools.base import ToolSource

SESSION = "s1"
"""Id of the conversation on screen."""


def ident(name: str) -> str:
    """An id that sorts before those of messages written now."""
    return name.rjust(24, "0")


def user(text: str, name: str = "m1") -> Message:
    """A message of the person, whose id is `ident(name)`."""
    return build.user(text, id=ident(name), created_at=1.0)


def assistant(text: str, name: str = "m2", *, tokens: tuple[int | None, int | None] = (50_000, 2_000)) -> Message:
    """An answer, whose id is `ident(name)`."""
    return build.measured(text, tokens=tokens, id=ident(name))


def shown_usage(total: int = 52_100, window: int | None = 200_000, **values: Any) -> ContextUsage:
    """As `make_usage`, of messages with the ids of `ident`."""
    return with_idents(make_usage(total, window, **values))


def with_idents(usage: ContextUsage) -> ContextUsage:
    """`usage` of messages with the ids of `ident`."""
    rows = [
        replace(row, items=tuple(replace(item, ref=ident(item.ref or "")) for item in row.items))
        if row.key in MESSAGE_ROWS
        else row
        for row in usage.rows
    ]
    messages = {ident(name): tokens for name, tokens in usage.messages.items()}
    return replace(usage, rows=tuple(rows), messages=messages)


def echo(request: Request) -> Answer:
    """Answers with what was said."""
    questions = [message.text for message in request.messages if message.role == "user"]
    return answer(f"You said: {questions[-1][:200] if questions else ''}.")


@dataclass
class EchoProvider(ScriptedProvider):
    """Answers with what was said, where the script is at its end. A `gate` holds each answer after `before` events."""

    window: int | None = 200_000
    fallback: Callable[[Request], Answer] = echo
    gate: asyncio.Event | None = None
    before: int = 1
    windows: Mapping[str, int | None] = field(default_factory=dict)  # of some models, by name

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        self.requested.set()
        if self.before == 0 and self.gate is not None:
            await self.gate.wait()
        count = 0
        async for event in super().stream(request):
            if count == self.before > 0 and self.gate is not None:
                await self.gate.wait()
            count += 1
            yield event

    async def limits(self, model: str) -> ModelLimits | None:
        window = self.windows.get(model, self.window)
        return None if window is None else ModelLimits(window, source="probe", detail="models API")


@dataclass(frozen=True)
class Model:
    """A model that a server offers."""

    id: str
    limits: ModelLimits | None = None
    price: tuple[float, float] | None = None


MODELS = (
    ("anthropic", Model("claude-x", ModelLimits(200_000, source="probe", detail="models API"))),
    ("openai", Model("gpt-x", ModelLimits(128_000, source="table"))),
    ("local", Model("smol", ModelLimits(8_192, source="probe"))),
    ("local", Model("mystery")),
)


class SetModels(ModelList):
    """A list of models that the test decides on. `gate` holds the servers' answers."""

    gate: asyncio.Event | None = None
    problems: tuple[str, ...] = ()
    failure: Exception | None = None
    current: Sequence[tuple[str, Model]] = MODELS

    def _now(self) -> tuple[ListedModel, ...]:
        return tuple(
            ListedModel(provider, ModelInfo(m.id, limits=m.limits, price=m.price), Capabilities())
            for provider, m in self.current
        )

    async def cached(self) -> Listing:
        if self.failure is not None:
            raise self.failure
        return Listing(self._now(), time.time() - 172_800)

    async def ask(self) -> Listing:
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return Listing(self._now(), time.time(), self.problems)


@dataclass
class Scenario:
    """A stored conversation, and all that answers in it.

    `usage` are the numbers shown in the place of those that would be measured, 120 tokens more for each answer; with
    None they are measured. `other` conversations are stored beside it, `calls` in the log.
    """

    messages: Sequence[Message] = ()
    title: str = ""
    provider: str = "anthropic"
    model: str = "claude-x"
    usage: ContextUsage | None = field(default_factory=shown_usage)
    rolling: bool = False
    draft: str = ""
    system: str = ""
    memory: MemoryFiles | None = None
    not_sent: Mapping[str, str] = field(default_factory=dict)  # besides what the records say
    pinned: Sequence[str] = ()
    other: Sequence[tuple[SessionInfo, Sequence[Message]]] = ()
    prompts: Sequence[str] = ()
    calls: Sequence[CallRow] = ()
    trims: TrimLog | None = None  # what rolling context did so far
    spent: float | None = None  # dollars, in the place of what the calls cost
    updated_at: float = 2.0
    models: Sequence[tuple[str, Model]] = MODELS
    tools: Sequence[ToolSource] = ()
    server: EchoProvider = field(default_factory=EchoProvider)
    prepare: Callable[[Workspace], None] = lambda _workspace: None  # before the session is opened
    begin: Callable[[ChatSession], None] = lambda _session: None  # once it is

    _opened: list[Workspace] = field(default_factory=list)

    async def open(self, settings: Settings) -> Workspace:
        """The workspace, which starts with this conversation. `close` closes it."""
        workspace = await ScenarioWorkspace.open(settings, resume=SESSION)
        assert isinstance(workspace, ScenarioWorkspace)
        self._opened.append(workspace)
        workspace.scenario, workspace.fake = self, self.server
        workspace.services.tools.sources = {source.name: source for source in self.tools}
        models = SetModels(workspace.services, workspace.model_list._configs)
        models.current = self.models
        workspace.model_list = models
        self._store(workspace)
        self.prepare(workspace)
        return workspace

    async def close(self) -> None:
        """Close what is still open, however a test has ended."""
        for workspace in self._opened:
            await Workspace.close(workspace)

    def _store(self, workspace: Workspace) -> None:
        store = workspace.store
        if store.session(SESSION) is not None:
            return  # the program is started again
        info = SessionInfo(
            SESSION, self.title, self.provider, self.model, 1.0, self.updated_at, self.rolling, self.draft
        )
        for stored, messages in ((info, self.messages), *self.other):
            store.create_session(stored)
            for message in messages:
                store.add_message(stored.id, message)
            store.update_session(stored.id, updated_at=stored.updated_at)
        for name in self.pinned:
            store.add_record(SESSION, RecordKind.PIN, {"id": ident(name), "on": True})
        if self.system:
            store.add_record(SESSION, RecordKind.SYSTEM, {"text": self.system})
        if self.trims is not None:
            store.put_state(TRIM_LOG, json.dumps(asdict(self.trims)))
        for prompt in self.prompts:
            store.add_prompt(prompt)
        names = list(CallRow.__dataclass_fields__)
        rows = [replace(call, id=f"call-{number}") for number, call in enumerate(self.calls)]
        with store.transaction() as db:
            db.executemany(
                f"INSERT INTO calls ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
                [[getattr(row, name) for name in names] for row in rows],
            )

    def show(self, session: ChatSession) -> None:
        """Let the session show what this says."""
        conversation, meter = session.conversation, session._meter
        if self.memory is not None:
            conversation.memory = self.memory
            session.tools.update_offer()
        if self.not_sent:
            more, not_sent = self.not_sent, conversation.not_sent
            override(conversation, not_sent=lambda: {**not_sent(), **more})
        if self.usage is not None:
            first, stored = self.usage, len(self.messages)

            def measure(_request: Request) -> ContextUsage:
                answers = sum(message.role == "assistant" for message in session.messages[stored:])
                if not answers and session.conversation.info.rolling is self.rolling:
                    return first
                return shown_usage(
                    first.total + 120 * answers, first.limits.context, rolling=session.conversation.info.rolling
                )

            override(meter, measure=measure)
            meter.latest = first
        if self.spent is not None:
            spent = self.spent

            async def cost() -> Cost:
                return Cost(spent, spent, estimated=False)

            override(session, cost=cost)
        self.begin(session)


def override(thing: object, **methods: Callable[..., object]) -> None:
    """Let this one object do something else."""
    vars(thing).update(methods)


class ScenarioWorkspace(FakeWorkspace):
    """The real workspace, opened in a scenario."""

    scenario: Scenario

    async def start_session(self) -> ChatSession:
        session = await super().start_session()
        if session.id == SESSION:
            self.scenario.show(session)
        return session


def long_scenario(**values: Any) -> Scenario:
    """A conversation with enough in it to be compacted, and its real numbers."""
    messages: list[Message] = []
    for number in range(12):
        text = f"Tell me about boat {number}. " + "It floats on water. " * 60
        messages += [user(text, f"m{number:02}a"), assistant("It floats.", f"m{number:02}b", tokens=(None, None))]
    return Scenario(**{"messages": messages, "title": "boats", "usage": None, **values})


def stored(name: str, title: str, **values: Any) -> tuple[SessionInfo, Sequence[Message]]:
    """A conversation beside the one on screen."""
    count = values.pop("count", 1)
    info = SessionInfo(name, title, "anthropic", "claude-x", 1.0, 1.0)
    messages = [user(f"{title} {number}", f"m{number}") for number in range(count)]
    return replace(info, **values), messages


def settings_in(folder: Path, **values: Any) -> Settings:
    """Settings with everything in one folder."""
    return Settings(**{"config_file": folder / "config.toml", "data_dir": folder, "log_dir": folder, **values})


def opener(scenario: Scenario, settings: Settings, gate: asyncio.Event | None = None) -> OpenWorkspace:
    """An `open_workspace` that waits at `gate`."""

    async def open_workspace() -> Workspace:
        if gate is not None:
            await gate.wait()
        return await scenario.open(settings)

    return open_workspace

"""A scripted session and workspace for tests of the screen: what they say is decided by the test."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from tests.fake_summaries import FakeSummaries
from tests.fake_tools import FakeServers, FakeTools
from tui.chat.attachments import read_attachment
from tui.chat.conversation.events import (
    CompactionFinished,
    CompactionStarted,
    MessageAdded,
    ReplyDelta,
    ReplyFinished,
    ReplyStarted,
    SessionEvent,
    TurnFinished,
    UsageChanged,
)
from tui.chat.interchange.import_known import AlreadyHereError
from tui.chat.interchange.recording import RecordingError
from tui.chat.memory_files import NO_MEMORY, MemoryFiles
from tui.chat.models.model_list import ListedModel, Listing
from tui.chat.models.provider_setup import ProviderSetup
from tui.chat.store.calls import CallRow
from tui.chat.store.store import SessionInfo
from tui.chat.workspace import Workspace
from tui.config.settings import Settings
from tui.context.reduction.trimming import TrimLog
from tui.context.usage.limits import Budget, ModelLimits
from tui.context.usage.rows import UsageItem, UsageRow
from tui.context.usage.usage import Basis, ContextUsage
from tui.messages import Attachment, Message, MessageStatus, Reasoning, Text, Usage
from tui.providers.base import Capabilities, ModelInfo
from tui.providers.registry import all_configs
from tui.screens.chat.screen import OpenWorkspace
from tui.text.numbers import Cost

Script = Callable[["FakeSession", str], AsyncIterator[SessionEvent]]


def make_usage(
    total: int = 52_100,
    window: int | None = 200_000,
    *,
    source: str = "exact",
    rows: Sequence[UsageRow] | None = None,
    rolling: bool = False,
) -> ContextUsage:
    """Numbers that keep the promises of `ContextUsage`, for any total and window."""
    if rows is None:
        system, tools = min(4_000, total), min(8_000, max(0, total - 4_000))
        rest = max(0, total - system - tools)
        shares = [rest * part // 100 for part in (15, 24, 8, 5, 46)]
        rows = (
            UsageRow("system", "System prompt", system, "estimated"),
            UsageRow(
                "tools", "Tools", tools, "estimated",
                (UsageItem("read_file", tools // 3, "estimated", "read_file"),
                 UsageItem("search", tools - tools // 3, "estimated", "search", "github")),
            ),
            UsageRow("user", "User messages", shares[0], "derived", (UsageItem("hi", shares[0], "derived", "m1"),)),
            UsageRow("assistant", "Assistant", shares[1], "derived", (UsageItem("ho", shares[1], "derived", "m2"),)),
            UsageRow("reasoning", "Reasoning sent back", shares[2], "derived"),
            UsageRow("tool_calls", "Tool calls", shares[3], "derived"),
            UsageRow("tool_results", "Tool results", shares[4], "derived"),
            UsageRow("attachments", "Attachments", rest - sum(shares), "estimated"),
        )  # fmt: skip
    limits = ModelLimits(window, source="probe" if window else "unknown", detail="models API" if window else "")
    basis = Basis(total - 2_100, 2_000, 2_000, 100, 1, 0.1, 1.31, 0.6, 31, 1, 84_000) if total > 2_100 else Basis()
    if not window:
        return ContextUsage(
            "s1", "anthropic", "claude-x", limits, Budget(None, None, None, None), total, total + 180,
            "exact" if source == "exact" else "estimated", basis, tuple(rows), None, None, None, None, None, None,
        )  # fmt: skip
    reserve = min(16_000, window // 4)
    most = window - reserve
    threshold = None if rolling else most * 85 // 100
    mark = most if threshold is None else threshold
    over = max(0, total - most)
    buffer = 0 if over else most - max(mark, total)
    return ContextUsage(
        "s1", "anthropic", "claude-x", limits, Budget(window, most, reserve, threshold), total, total + 180,
        "exact" if source == "exact" else "estimated", basis, tuple(rows), reserve, buffer,
        max(0, mark - total), over, None if threshold is None else max(0, threshold - total), 100 * total / window,
    )  # fmt: skip


def user(text: str, message_id: str = "m1") -> Message:
    """A message of the person."""
    return Message("user", (Text(text),), id=message_id, created_at=1.0)


def assistant(text: str, message_id: str = "m2", *, tokens: tuple[int, int] = (50_000, 2_000)) -> Message:
    """A measured answer; `tokens` are input and output."""
    return Message(
        "assistant", (Text(text),), id=message_id, created_at=2.0, provider="anthropic", model="claude-x",
        usage=Usage(*tokens),
    )  # fmt: skip


async def echo(session: FakeSession, text: str) -> AsyncIterator[SessionEvent]:
    """Answers with what was said, in three pieces, and grows the numbers a little."""
    reply = session.next_id()
    yield ReplyStarted(reply, session.provider, session.model)
    yield ReplyDelta(reply, "reasoning", "Let me think.")
    for piece in ("You said: ", text[:200], "."):
        await session.pause()
        if session.cancelled:
            break
        yield ReplyDelta(reply, "text", piece)
    status: MessageStatus = "cancelled" if session.cancelled else "complete"
    parts = (Reasoning("Let me think."), Text(f"You said: {text[:200]}."))
    message = replace(assistant("", reply), parts=parts, status=status)
    session.messages = [*session.messages, message]
    yield ReplyFinished(message)


@dataclass
class FakeSession:
    """A session that plays `script` for each message. Set `gate` to hold it in the middle of an answer."""

    id: str = "s1"
    title: str = ""
    provider: str = "anthropic"
    model: str = "claude-x"
    messages: Sequence[Message] = ()
    usage: ContextUsage | None = field(default_factory=make_usage)
    rolling: bool = False
    running: bool = False
    not_sent: Mapping[str, str] = field(default_factory=dict)
    pinned: frozenset[str] = frozenset()
    draft: str = ""
    system: str = ""
    memory: MemoryFiles = NO_MEMORY
    reasoning: str | None = None
    capabilities: Capabilities = Capabilities()  # noqa: RUF009
    script: Script = echo
    gate: asyncio.Event | None = None
    cancelled: bool = False
    sent: list[str] = field(default_factory=list)
    attached: list[list[str]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)  # every change that was asked for
    tools: FakeTools = field(default_factory=FakeTools)
    summaries: FakeSummaries = field(default_factory=FakeSummaries)
    counted: list[int] = field(default_factory=list)  # lengths of drafts counted
    windows: Mapping[str, int | None] = field(default_factory=dict)  # of other models, by full name
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(100))

    def next_id(self) -> str:
        """A fresh message id."""
        return f"m{next(self._ids)}"

    async def pause(self) -> None:
        """Wait at the gate, if there is one."""
        await asyncio.sleep(0)
        if self.gate is not None and not self.cancelled:
            await self.gate.wait()

    async def send(self, text: str, attachments: Sequence[Attachment] = ()) -> AsyncIterator[SessionEvent]:
        """Keep the message, play the script."""
        self.sent.append(text)
        self.attached.append([attachment.name for attachment in attachments])
        self.cancelled, self.running = False, True
        message = user(text, self.next_id())
        self.messages = [*self.messages, message]
        self.title = self.title or " ".join(text.split())[:40]
        yield MessageAdded(message)
        try:
            async for event in self.script(self, text):
                yield event
        finally:
            self.running = False
        if self.usage is not None:
            self.usage = make_usage(self.usage.total + 120, self.usage.limits.context)
            yield UsageChanged(self.usage)
        yield TurnFinished()

    async def retry(self) -> AsyncIterator[SessionEvent]:
        """The last message again."""
        self.log.append("retry")
        async for event in self.script(self, self.sent[-1] if self.sent else "again"):
            yield event
        yield TurnFinished()

    async def compact(self, instructions: str = "") -> AsyncIterator[SessionEvent]:
        """Half of it."""
        self.log.append(f"compact {instructions}".strip())
        yield CompactionStarted(False)
        await self.pause()
        yield CompactionFinished(142, 121_400, 18_300, Message("user", (Text("old"),), id="m9s", kind="summary"))
        yield TurnFinished()

    async def switch_memory(self, name: str, on: bool) -> None:
        """Switch it."""
        self.memory = self.memory.switched(name, on)

    def cancel(self) -> None:
        """Open the gate with the word that it is over."""
        self.cancelled = self.summaries.cancelled = True
        for gate in (self.gate, self.summaries.gate):
            if gate is not None:
                gate.set()

    async def measured_for(self, full_name: str) -> ContextUsage:
        """The same tokens in the window the test gives that model."""
        assert self.usage is not None
        return make_usage(self.usage.total, self.windows.get(full_name, self.usage.limits.context))

    async def compact_for(self, full_name: str) -> AsyncIterator[SessionEvent]:
        """As `compact`, then the switch."""
        async for event in self.compact():
            if isinstance(event, TurnFinished):
                await self.set_model(full_name)
            yield event

    async def set_model(self, full_name: str) -> None:
        """Take any model."""
        self.log.append(f"model {full_name}")
        self.provider, _, self.model = full_name.partition("/")

    async def set_rolling(self, on: bool) -> None:
        """On or off."""
        self.log.append(f"rolling {on}")
        self.rolling = on

    async def refresh_usage(self) -> ContextUsage:
        """The same numbers, with or without a threshold."""
        if self.usage is None:
            self.usage = make_usage(0, 200_000, rolling=self.rolling)
        elif self.usage.limits.context and self.rolling == (self.usage.budget.compaction_at is not None):
            self.usage = make_usage(self.usage.total, self.usage.limits.context, rolling=self.rolling)
        return self.usage

    def draft_tokens(self, text: str) -> int | None:
        """Four characters a token."""
        self.counted.append(len(text))
        return (len(text) + 3) // 4

    async def set_system(self, text: str) -> None:
        """Set."""
        self.system = text

    @property
    def reasoning_sent(self) -> str | None:
        return self.reasoning

    async def set_reasoning(self, effort: str | None) -> None:
        """Set."""
        self.reasoning = effort

    async def rename(self, title: str) -> None:
        """Set."""
        self.title = title

    async def export(self, path: Path) -> None:
        """Written, if the ending says how."""
        if path.suffix not in (".md", ".jsonl"):
            raise ValueError("the ending says the form")
        await asyncio.to_thread(path.write_text, self.title)

    async def save_draft(self, text: str) -> None:
        """Keep it."""
        self.draft = text

    async def cost(self) -> Cost:
        """A price."""
        return Cost(0.42, 0.42, estimated=False)

    async def count_exactly(self) -> int | None:
        """The server's word."""
        self.log.append("count")
        self.usage = make_usage(52_000)
        return 52_000

    async def set_window(self, tokens: int | None) -> None:
        """Set or reset."""
        self.log.append(f"window {tokens}")
        self.usage = make_usage(self.usage.total if self.usage else 0, tokens)

    async def pin(self, message_id: str, on: bool) -> None:
        """Pin."""
        self.log.append(f"pin {message_id} {on}")
        self.pinned = self.pinned | {message_id} if on else self.pinned - {message_id}

    async def exclude(self, message_id: str, on: bool) -> None:
        """Leave out."""
        self.log.append(f"exclude {message_id} {on}")
        kept = {key: why for key, why in self.not_sent.items() if key != message_id}
        self.not_sent = {**kept, message_id: "excluded"} if on else kept

    async def rewind(self, message_id: str) -> None:
        """Set aside."""
        self.log.append(f"rewind {message_id}")

    async def undo(self) -> str | None:
        """Nothing to undo."""
        return None


@dataclass(frozen=True)
class FakeInfo:
    """A line of the session list."""

    id: str
    title: str
    model: str = "anthropic/claude-x"
    updated_at: float = 1.0
    messages: int = 4
    parent: str | None = None


@dataclass(frozen=True)
class FakeModel:
    """A model."""

    id: str
    limits: ModelLimits | None = None
    price: tuple[float, float] | None = None


def open_gate() -> asyncio.Event:
    """An event that has happened."""
    gate = asyncio.Event()
    gate.set()
    return gate


def no_setup() -> ProviderSetup:
    """The presets, with no keys, and a config file that can't be written."""

    async def drop(_name: str) -> None:
        return None

    return ProviderSetup(all_configs(), drop, Path("/nonexistent/config.toml"), {}, env={})


@dataclass
class FakeModelList:
    """The models of a workspace; `ask` waits at the workspace's `models_gate`."""

    workspace: FakeWorkspace

    async def cached(self) -> Listing:
        """As listed two days ago."""
        kept = [ListedModel(provider, ModelInfo(m.id, limits=m.limits, price=m.price), Capabilities())
                for provider, m in self.workspace.known_models]  # fmt: skip
        return Listing(tuple(kept), time.time() - 172_800)

    async def ask(self) -> Listing:
        """What the workspace says now."""
        await self.workspace.models_gate.wait()
        await self.workspace.models()
        return replace(await self.cached(), at=time.time(), problems=self.workspace.problems)


@dataclass
class FakeWorkspace:
    """A workspace with one session, or what the test puts in."""

    session: FakeSession = field(default_factory=FakeSession)
    infos: Sequence[FakeInfo] = ()
    known_models: Sequence[tuple[str, FakeModel]] = (
        ("anthropic", FakeModel("claude-x", ModelLimits(200_000, source="probe", detail="models API"))),
        ("openai", FakeModel("gpt-x", ModelLimits(128_000, source="table"))),
        ("local", FakeModel("smol", ModelLimits(8_192, source="probe"))),
        ("local", FakeModel("mystery")),
    )
    prompts: list[str] = field(default_factory=list)
    theme: str = ""
    closed: bool = False
    resumed: list[str | None] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    stored_calls: Sequence[CallRow] = ()
    servers: FakeServers = field(default_factory=FakeServers)
    problems: tuple[str, ...] = ()  # who could not be asked for models
    models_gate: asyncio.Event = field(default_factory=open_gate)
    setup: ProviderSetup = field(default_factory=lambda: no_setup())
    import_gate: asyncio.Event = field(default_factory=open_gate)
    settings: Settings = field(default_factory=lambda: fake_settings())

    async def start_session(self) -> FakeSession:
        """The session."""
        return self.session

    async def new_session(self) -> FakeSession:
        """A fresh one."""
        self.session = FakeSession(id=f"{self.session.id}n", usage=make_usage(300))
        return self.session

    async def resume(self, session_id: str | None = None) -> FakeSession:
        """A stored one."""
        self.resumed.append(session_id)
        title = next((info.title for info in self.infos if info.id == session_id), "")
        self.session = FakeSession(id=session_id or "s", title=title, messages=[user("old"), assistant("older")])
        return self.session

    async def fork(self, session_id: str, message_id: str) -> FakeSession:
        """The messages up to that one."""
        assert session_id == self.session.id
        kept = [message for message in self.session.messages if message.id <= message_id]
        self.session = replace(self.session, id=f"{session_id}f", messages=kept)
        return self.session

    async def sessions(self, query: str = "") -> Sequence[FakeInfo]:
        """Those whose title has the words."""
        kept = [info for info in self.infos if info.id not in self.gone]
        return [info for info in kept if query.lower() in info.title.lower()]

    async def models(self) -> Sequence[tuple[str, FakeModel]]:
        """All of them."""
        return self.known_models

    @property
    def deleted(self) -> str:
        """The last of them."""
        return self.gone[-1] if self.gone else ""

    @property
    def model_list(self) -> FakeModelList:
        """The same, as a listing."""
        return FakeModelList(self)

    async def find_model(self, name: str) -> str:
        """By its name alone, too."""
        return next((f"{provider}/{m.id}" for provider, m in self.known_models if m.id == name), name)

    async def prompt_history(self, limit: int) -> Sequence[str]:
        """Earlier prompts."""
        return self.prompts[-limit:]

    async def add_prompt(self, text: str) -> None:
        """One more."""
        self.prompts.append(text)

    async def save_theme(self, name: str) -> None:
        """Remembered."""
        self.theme = name

    def place(self, provider: str) -> str:
        """Where it runs."""
        return "It runs on this machine: nothing you write leaves it." if provider == "local" else ""

    async def calls(self, session_id: str | None = None) -> Sequence[CallRow]:
        """Calls."""
        return self.stored_calls

    async def trims(self) -> TrimLog:
        """Trims."""
        return TrimLog(10, 3, 700.0)

    async def attach(self, path: Path) -> Attachment:
        """Reads the file."""
        return (await asyncio.to_thread(read_attachment, path))[0]

    async def rename_session(self, session_id: str, title: str) -> None:
        """Renamed."""
        self.infos = [replace(info, title=title) if info.id == session_id else info for info in self.infos]

    async def import_file(
        self, path: Path, *, again: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> FakeInfo:
        """One that is there, or what is wrong with the file; one whose name says so was taken in before."""
        if progress is not None:
            progress(7, 9)
        await self.import_gate.wait()
        if "twice" in path.name and not again:
            raise AlreadyHereError(SessionInfo("s8", "an old talk", "p", "m", 1.0, 2.0, messages=4), 0)
        if "none" in path.name:
            raise RecordingError(f"{path}: no such file")
        return FakeInfo("s9", path.stem)

    async def delete_session(self, session_id: str) -> None:
        """Gone."""
        self.gone.append(session_id)

    async def restore_session(self, session_id: str) -> None:
        """Back."""
        self.gone.remove(session_id)

    async def close(self) -> None:
        """Closed."""
        self.closed = True


def fake_settings(**values: Any) -> Settings:
    """Settings of a program that writes nothing."""
    nowhere = Path("/nonexistent")
    return Settings(**{"config_file": nowhere / "config.toml", "data_dir": nowhere, "log_dir": nowhere, **values})


def opener(workspace: FakeWorkspace, gate: asyncio.Event | None = None) -> OpenWorkspace:
    """An `open_workspace` that waits at `gate`."""

    async def open_workspace() -> Workspace:
        if gate is not None:
            await gate.wait()
        return cast("Workspace", workspace)

    return open_workspace

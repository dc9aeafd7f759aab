"""A provider that answers from a script, and a workspace on it: for what no real server does on demand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from tui.chat.turn.session import ChatSession
from tui.chat.workspace import Workspace
from tui.config.settings import ProviderSettings, Settings, ToolSettings
from tui.context.counting.bpe import ENCODINGS, BpeCounter
from tui.context.counting.words import total
from tui.context.usage.limits import ModelLimits
from tui.messages import Attachment, Reasoning, Refusal, Request, Text, ToolCall, ToolResult, ToolSchema, Usage
from tui.providers.base import (
    Capabilities,
    ModelInfo,
    Provider,
    ProviderError,
    StreamEnd,
    StreamEvent,
    TextDelta,
    UsageUpdate,
)
from tui.tools.base import Tool, ToolOutput, ToolSource

T = TypeVar("T")

Answer = Sequence[StreamEvent | ProviderError | float]
"""Events to yield; a ProviderError is raised, a float is a pause in seconds."""


def answer(text: str = "Certainly.", *, end: str = "stop") -> list[StreamEvent | ProviderError | float]:
    """A whole answer in two pieces; the provider adds its usage."""
    half = len(text) // 2
    return [TextDelta(text[:half]), TextDelta(text[half:]), StreamEnd("stop", end)]


@cache
def _vocabulary() -> BpeCounter:
    """The server's own: of those that the program reads only the latest stays in memory."""
    return BpeCounter(ENCODINGS["cl100k"])


def tokens_of(text: str) -> int:
    """What this provider's server makes of a text."""
    return round(total(_vocabulary().classes(text)))


def real_tokens(request: Request) -> int:
    """What this provider's tokenizer makes of a request: text as cl100k counts it, and its own markup."""
    total = 7
    for section in request.system:
        total += tokens_of(section.text) + 3
    for tool in request.tools:
        total += tokens_of(tool.description + tool.parameters) + 10
    for message in request.messages:
        total += 5
        for part in message.parts:
            match part:
                case Text(text) | Refusal(text) | ToolResult(text=text) | Reasoning(text=text):
                    total += tokens_of(text)
                case ToolCall(name=name, arguments=arguments):
                    total += tokens_of(name + arguments) + 4
                case Attachment(text=text):
                    total += tokens_of(text) + 4
    return total


@dataclass
class ScriptedProvider(Provider):
    """Answers in turn from `script`, then with `fallback`. Strict: refuses what does not fit `window`."""

    script: list[Answer] = field(default_factory=list)
    window: int | None = 8_000
    claimed: int | None = None  # what it says its window is, if not that
    report_usage: bool = True
    name: str = "scripted"
    dialect: str = "scripted"
    able: Capabilities = field(default_factory=Capabilities)
    fallback: Callable[[Request], Answer] = lambda _: answer()
    requests: list[Request] = field(default_factory=list)
    refused: int = 0
    closed: int = 0
    counted: int = 0
    requested: asyncio.Event = field(default_factory=asyncio.Event)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        self.requests.append(request)
        self.requested.set()
        size = real_tokens(request)
        if self.window is not None and size > self.window:
            self.refused += 1
            raise ProviderError(
                "overflow_input", f"request ({size} tokens) exceeds the window", limit=self.window, input_tokens=size
            )
        events = self.script.pop(0) if self.script else self.fallback(request)
        written = 0
        try:
            for event in events:
                if isinstance(event, ProviderError):
                    raise event
                if isinstance(event, float):
                    await asyncio.sleep(event)
                    continue
                if isinstance(event, TextDelta):
                    written += tokens_of(event.text)
                if isinstance(event, StreamEnd) and self.report_usage:
                    yield UsageUpdate(Usage(size, written + 2))
                yield event
        finally:
            self.closed += 1

    def capabilities(self, model: str) -> Capabilities:
        return self.able

    async def describe(self, model: str) -> ModelInfo:
        return ModelInfo(model, limits=await self.limits(model))

    async def limits(self, model: str) -> ModelLimits | None:
        window = self.claimed or self.window
        return None if window is None else ModelLimits(window, source="probe")

    async def models(self) -> list[ModelInfo]:
        return [ModelInfo("m"), ModelInfo("small")]

    async def count_tokens(self, request: Request) -> int | None:
        assert request.messages, "no provider counts a request without messages"
        self.counted += 1
        return real_tokens(request) if self.able.count_endpoint else None

    async def close(self) -> None:
        return None


@dataclass
class Tools:
    """A source of one tool, `fetch`, that returns what `result` says and runs without asking."""

    result: Callable[[Mapping[str, Any]], str] = lambda arguments: f"result of {json.dumps(dict(arguments))}"
    read_only: bool = True
    name: str = "built-in"

    def tools(self) -> Sequence[Tool]:
        parameters = '{"properties":{"id":{"type":"integer"}},"type":"object"}'
        return (Tool(ToolSchema("fetch", "Fetches a thing.", parameters, self.name), self.read_only, self.run),)

    async def run(self, arguments: Mapping[str, Any]) -> ToolOutput:
        return ToolOutput(self.result(arguments))


class FakeWorkspace(Workspace):
    """The real workspace, with one scripted provider in place of all others."""

    fake: ScriptedProvider

    def provider(self, name: str) -> ScriptedProvider:
        return self.fake


@asynccontextmanager
async def open_workspace(
    folder: Path,
    provider: ScriptedProvider,
    *,
    tools: ToolSource | None = None,
    sources: Sequence[ToolSource] = (),
    tool_settings: ToolSettings | None = None,
    **settings: Any,
) -> AsyncIterator[FakeWorkspace]:
    """A workspace in `folder` whose every model is `provider`'s, with no tools but these."""
    values: dict[str, Any] = {
        "model": "scripted/m",
        "providers": {"scripted": ProviderSettings(base_url="http://127.0.0.1:9")},
        "data_dir": folder,
        "log_dir": folder,
        "tools": tool_settings or ToolSettings(),
        **settings,
    }
    workspace = await FakeWorkspace.open(Settings(**values))
    assert isinstance(workspace, FakeWorkspace)
    workspace.fake = provider
    every = sources if tools is None else (*sources, tools)
    workspace.services.tools.sources = {source.name: source for source in every}
    try:
        yield workspace
    finally:
        await workspace.close()


def of(kind: type[T], events: Iterable[object]) -> list[T]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


async def drain(events: AsyncIterator[object]) -> list[object]:
    """All events of a turn."""
    return [event async for event in events]


async def converse(session: ChatSession, turns: int, text: str) -> list[object]:
    """The events of so many turns, with the message `text` behind a number."""
    return [event for number in range(turns) for event in await drain(session.send(f"{number} {text}"))]


def is_summary(request: Request) -> bool:
    """Whether a request asks for a summary."""
    return request.messages[-1].id == "summary-request"

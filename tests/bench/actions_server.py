"""A server and tools for random actions: they answer with everything that answers were seen to hold, and break off."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tests.bench.simulate_server import pairing_problem
from tests.chat.fakes import ScriptedProvider, real_tokens
from tui.context.usage.limits import ModelLimits
from tui.context.usage.usage import ContextUsage
from tui.messages import Attachment, FinishKind, Request, ToolCall, ToolSchema, Usage
from tui.providers.base import (
    ErrorKind,
    ProviderError,
    ReasoningDelta,
    ReasoningMeta,
    StreamEnd,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)
from tui.tools.base import Tool, ToolError, ToolImage, ToolOutput

WINDOWS = {"small": 1_500, "unknown": 4_000}  # tokens; what is not named has the last, and says so
ODD = (
    "\ud83d half",
    "nul\0byte",
    "\u202eback",
    "\x1b[31mred",
    "漢字" * 40,
    "a" * 3_000,
    "<think>x</think>y",
    "```\nopen",
)
PICTURE = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x40\0\0\0\x40" + bytes(50)
ARGUMENTS = ('{"id": 5}',) * 4 + ('{"id":', "[]", "null", '{"id": "\\ud800"}', '{"id": 5, "x": "' + "y" * 2_000 + '"}')
_KINDS: tuple[ErrorKind, ...] = ("rate_limit", "overloaded", "server", "network", "auth", "signature", "too_many_bytes")
_ENDS: tuple[FinishKind, ...] = ("length", "refusal", "content_filter", "window_full", "other")

Events: TypeAlias = list[StreamEvent | ProviderError]


@dataclass
class OddServer(ScriptedProvider):
    """Refuses what does not fit or is not paired; `believes` is what the client says of the request it sends."""

    chance: random.Random = field(default_factory=random.Random)
    believes: Callable[[Request], ContextUsage | None] = lambda _: None
    faults: list[str] = field(default_factory=list)

    async def limits(self, model: str) -> ModelLimits | None:
        return None if model == "unknown" else ModelLimits(WINDOWS.get(model, 4_000), source="probe")

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        summary = request.messages[-1].id == "summary-request"
        self._look_at(request, summary)
        size, window = real_tokens(request), WINDOWS.get(request.model, 4_000)
        if size > window:
            named = window if self.chance.random() < 0.5 else None
            raise ProviderError("overflow_input", f"{size} tokens are too many", limit=named, input_tokens=size)
        await asyncio.sleep(0)
        for event in self._summary(size) if summary else self._answer(request, size):
            if isinstance(event, ProviderError):
                raise event
            yield event

    def _look_at(self, request: Request, summary: bool) -> None:
        """What a client must never send."""
        calls = [
            replace(m, parts=tuple(replace(p, arguments="{}") if isinstance(p, ToolCall) else p for p in m.parts))
            for m in request.messages
        ]
        if (problem := pairing_problem(calls)) and not summary:
            self.faults.append(problem)
        files = [p for m in request.messages for p in m.parts if isinstance(p, Attachment) and p.kind != "text"]
        self.faults += [f"{file.name} came without its bytes" for file in files if file.sha256 not in request.blobs]
        usage = None if summary else self.believes(request)
        if usage is not None and usage.budget.max_input is not None and usage.total > usage.budget.max_input:
            self.faults.append(f"sent {usage.total} tokens, of {usage.budget.max_input} at most")

    def _summary(self, size: int) -> Events:
        usage, end = UsageUpdate(Usage(size, 70)), StreamEnd("stop", "stop")
        whole: Events = [TextDelta("Goal: " + "fact " * self.chance.randrange(1, 60)), usage, end]
        odd: tuple[Events, ...] = (
            [ProviderError("server", "500", status=500, retry_after=0.001)],
            [end],
            [TextDelta("Goal: half "), usage, StreamEnd("length", "length")],
            [TextDelta("broken off")],
        )
        return whole if self.chance.random() < 0.6 else self.chance.choice(odd)

    def _answer(self, request: Request, size: int) -> Events:
        chance = self.chance
        if chance.random() < 0.05:
            return [ProviderError(chance.choice(_KINDS), "no", status=400, retry_after=0.001)]
        events: Events = []
        if chance.random() < 0.4:
            events += [
                ReasoningDelta("thinking " * chance.randrange(1, 30)),
                ReasoningMeta(signature=chance.choice(("s", None))),
            ]
        for _ in range(chance.randrange(4)):
            events.append(
                TextDelta(chance.choice(ODD) if chance.random() < 0.15 else "word " * chance.randrange(1, 60))
            )
        end: FinishKind = chance.choice(_ENDS) if chance.random() < 0.08 else "stop"
        if request.tools and chance.random() < 0.45:
            end = "tool_calls"
            for index in range(chance.choice((1, 1, 2, 3))):
                ident = chance.choice(("c1", "c2", None, f"u{chance.randrange(10**9)}"))
                name = chance.choice(("fetch", "fetch", "danger", "nope", "\x1b"))
                events.append(ToolCallDelta(index, ident, name, chance.choice(ARGUMENTS)))
        if chance.random() < 0.95:
            events.append(UsageUpdate(Usage(size, 20 + len(events)) if chance.random() < 0.95 else Usage(0, 0)))
        if chance.random() < 0.04:
            events.append(ProviderError("network", "dropped", retry_after=0.001))
        if chance.random() < 0.97:
            events.append(StreamEnd(end, end))
        return events


class OddTools:
    """One tool that only reads and one that asks; what they give is anything between nothing and too much."""

    name = "built-in"

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def tools(self) -> Sequence[Tool]:
        """Both."""
        schema = '{"properties":{"id":{"type":"integer"}},"type":"object"}'
        names = (("danger", False), ("fetch", True))
        return [Tool(ToolSchema(name, "Does a thing.", schema, self.name), safe, self.run) for name, safe in names]

    async def run(self, _arguments: Mapping[str, Any]) -> ToolOutput:
        """A result."""
        outcome: ToolOutput | Exception = self._chance.choice(
            (
                ToolOutput("result " * self._chance.randrange(1, 300)),
                ToolOutput("large result " * self._chance.randrange(200, 4_000)),
                ToolOutput(""),
                ToolOutput("\0\ud800\x1b[2J" + "A" * 500),
                ToolOutput("seen", images=(ToolImage("image/png", PICTURE),)),
                ToolOutput("failed", is_error=True),
                ToolError("refused \ud800"),
                ValueError("a fault of its own"),
            )
        )
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

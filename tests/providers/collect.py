"""Gathers an answer's events into what a message would hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from tui.messages import Request, Usage
from tui.providers.base import (
    Provider,
    ProviderError,
    ReasoningDelta,
    ReasoningMeta,
    RefusalDelta,
    StreamEnd,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)


@dataclass
class Call:
    id: str = ""
    name: str = ""
    arguments: str = ""
    extra: str | None = None


@dataclass
class Answer:
    """An answer put together. `end` is None where the stream had no end mark."""

    text: str = ""
    refusal: str = ""
    reasoning: dict[int, str] = field(default_factory=dict)
    meta: dict[int, list[ReasoningMeta]] = field(default_factory=dict)
    calls: dict[int, Call] = field(default_factory=dict)
    usage: Usage | None = None
    end: StreamEnd | None = None
    error: ProviderError | None = None
    events: list[StreamEvent] = field(default_factory=list)

    @property
    def thoughts(self) -> str:
        return "".join(self.reasoning[block] for block in sorted(self.reasoning))

    @property
    def signature(self) -> str | None:
        return next((item.signature for items in self.meta.values() for item in items if item.signature), None)

    def add(self, event: StreamEvent) -> None:
        self.events.append(event)
        match event:
            case TextDelta():
                self.text += event.text
            case RefusalDelta():
                self.refusal += event.text
            case ReasoningDelta():
                self.reasoning[event.block] = self.reasoning.get(event.block, "") + event.text
            case ReasoningMeta():
                self.meta.setdefault(event.block, []).append(event)
            case ToolCallDelta():
                call = self.calls.setdefault(event.index, Call())
                call.id = event.id or call.id
                call.name = event.name or call.name
                call.arguments += event.arguments
                call.extra = event.extra or call.extra
            case UsageUpdate():
                self.usage = event.usage
            case StreamEnd():
                assert self.end is None, "two end marks"
                self.end = event


async def collect(provider: Provider, request: Request) -> Answer:
    """Everything a stream yields; an error is kept beside what arrived before it."""
    answer = Answer()
    try:
        async for event in provider.stream(request):
            assert answer.end is None, "an event after the end mark"
            answer.add(event)
    except ProviderError as error:
        answer.error = error
    return answer

"""Replies that call tools, tools made of functions, and what became of the calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.chat.fakes import Answer
from tui.chat.conversation.events import ApprovalAsked
from tui.chat.turn.session import ChatSession
from tui.messages import Request, ToolCall, ToolResult, ToolSchema
from tui.providers.base import StreamEnd, TextDelta, ToolCallDelta
from tui.tools.approval import Decision
from tui.tools.base import Tool, ToolOutput


def calls(*names: tuple[str, str] | str) -> Answer:
    """A reply that calls tools: (name, arguments), or a name."""
    pairs = [pair if isinstance(pair, tuple) else (pair, "{}") for pair in names]
    deltas = [ToolCallDelta(n, f"c{n}", name, arguments) for n, (name, arguments) in enumerate(pairs)]
    return [TextDelta("Let me see."), *deltas, StreamEnd("tool_calls", "tool_calls")]


Run = Callable[[Mapping[str, Any]], Any]


class FunctionTools:
    """Tools made of functions; those in `reads` only read."""

    def __init__(self, name: str = "built-in", reads: Sequence[str] = (), **runs: Run) -> None:
        self.name = name
        self.ran: list[str] = []
        self.says = ""
        self._reads = reads
        self.runs = runs

    def tools(self) -> Sequence[Tool]:
        return [self._tool(name, run) for name, run in self.runs.items()]

    def _tool(self, name: str, run: Run) -> Tool:
        async def call(arguments: Mapping[str, Any]) -> ToolOutput:
            self.ran.append(name)
            output = run(arguments)
            output = await output if asyncio.iscoroutine(output) else output
            return output if isinstance(output, ToolOutput) else ToolOutput(str(output))

        schema = ToolSchema(
            name, self.says or f"The {name}.", '{"properties":{"id":{"type":"integer"}},"type":"object"}', self.name
        )
        return Tool(schema, name in self._reads, call)


def results(session: ChatSession) -> list[ToolResult]:
    return [part for message in session.messages for part in message.parts if isinstance(part, ToolResult)]


def well_formed(request: Request) -> bool:
    """Every call is answered directly after it, nothing else is."""
    waiting: list[str] = []
    for message in request.messages:
        if message.role == "tool":
            for part in message.parts:
                if isinstance(part, ToolResult):
                    waiting.remove(part.call_id)
        elif waiting:
            return False
        waiting += [part.id for part in message.parts if isinstance(part, ToolCall)]
    return not waiting


async def turn(session: ChatSession, decide: Callable[[ApprovalAsked], Decision] | None = None) -> list[object]:
    """Send something; questions get `decide`'s answer."""
    events: list[object] = []
    async for event in session.send("go"):
        events.append(event)
        if isinstance(event, ApprovalAsked) and decide is not None:
            session.tools.approve(event.id, decide(event))
    return events

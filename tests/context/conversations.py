"""Conversations to trim and to compact: by hand, and drawn by hypothesis. One token is four characters here."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

from tui.context.usage.limits import Budget
from tui.messages import Attachment, Message, MessageKind, Part, Reasoning, Request, Role, Text, ToolCall, ToolResult

MESSAGE_TOKENS = 4


def part_tokens(part: Part) -> int:
    match part:
        case ToolCall(arguments=text):
            return 10 + len(text) // 4
        case Attachment():
            return 1000
        case Text(text=text) | Reasoning(text=text) | ToolResult(text=text):
            return len(text) // 4
        case _:
            return 0


def count(message: Message) -> int:
    return MESSAGE_TOKENS + sum(map(part_tokens, message.parts))


def size(messages: Iterable[Message]) -> int:
    return sum(map(count, messages))


def estimate(request: Request) -> int:
    return size(request.messages) + sum(len(s.text) // 4 for s in request.system)


def budget(max_input: int, threshold: float | None = 0.85) -> Budget:
    at = None if threshold is None else int(max_input * threshold)
    return Budget(context=max_input * 4 // 3, max_input=max_input, reserved_output=max_input // 3, compaction_at=at)


def request(messages: Sequence[Message]) -> Request:
    return Request("test", "model", tuple(messages))


class HistoryBuilder:
    """Builds a history; ids sort in the order of making."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._ids = itertools.count(1)

    def add(self, role: Role, *parts: Part, kind: MessageKind = "chat") -> str:
        message_id = f"m{next(self._ids):06d}"
        self.messages.append(Message(role, parts, id=message_id, kind=kind))
        return message_id

    def user(self, tokens: int = 20, text: str = "") -> str:
        return self.add("user", Text(text or "u" * (4 * tokens)))

    def assistant(self, tokens: int = 40, text: str = "", reasoning: int = 0) -> str:
        thought = (Reasoning("r" * (4 * reasoning), "test", "model", signature="s"),) if reasoning else ()
        return self.add("assistant", *thought, Text(text or "a" * (4 * tokens)))

    def step(
        self, *results: int, arguments: int = 5, failed: bool = False, reasoning: int = 0, apart: bool = False
    ) -> tuple[str, list[str]]:
        """An assistant message with one call for each size in `results` (tokens), and the results."""
        calls = [f"call-{next(self._ids)}" for _ in results]
        written = json.dumps({"x": "y" * (4 * arguments)})
        thought = (Reasoning("r" * (4 * reasoning), "test", "model", signature="s"),) if reasoning else ()
        call = self.add("assistant", *thought, *(ToolCall(c, "read_file", written) for c in calls))
        parts = [
            ToolResult(c, "read_file", "t" * (4 * n), is_error=failed) for c, n in zip(calls, results, strict=True)
        ]
        if apart:
            return call, [self.add("tool", part) for part in parts]
        return call, [self.add("tool", *parts)]

    def turn(self, *, steps: Sequence[int] = (), user: int = 20, assistant: int = 40) -> None:
        self.user(user)
        for result in steps:
            self.step(result)
        self.assistant(assistant)


def problems(messages: Sequence[Message]) -> list[str]:
    """What a strict server would refuse: calls without results right behind them, results without calls, empties."""
    faults: list[str] = []
    waiting: set[str] = set()
    ids: set[str] = set()
    if messages and messages[0].role != "user":
        faults.append("the first message is not the user's")
    for message in messages:
        if not message.parts:
            faults.append(f"{message.id} is empty")
        answered = {p.call_id for p in message.parts if isinstance(p, ToolResult)}
        if message.role != "tool" and waiting:
            faults.append(f"{sorted(waiting)} unanswered before {message.id}")
            waiting = set()
        if answered - waiting:
            faults.append(f"{message.id} answers {sorted(answered - waiting)}, which nobody asked")
        waiting -= answered
        for part in message.parts:
            if isinstance(part, ToolCall):
                json.loads(part.arguments)
                if part.id in ids:
                    faults.append(f"{part.id} twice")
                ids.add(part.id)
                waiting.add(part.id)
    if waiting:
        faults.append(f"{sorted(waiting)} never answered")
    return faults


# Small, middling, and now and then a giant; few enough of those that a drawn history can still be shown.
_size = st.integers(0, 19).flatmap(
    lambda kind: (
        st.integers(15_000, 25_000) if kind == 19 else st.integers(100, 3000) if kind > 9 else st.integers(0, 60)
    )
)


@st.composite
def histories(draw: st.DrawFn, *, open_end: bool = True) -> list[Message]:
    """A history of up to 12 turns with tool steps, errors, reasoning and images; perhaps in the middle of a turn."""
    builder = HistoryBuilder()
    turns = draw(st.integers(1, 12))
    for number in range(turns):
        if draw(st.integers(0, 9)) == 0:
            builder.add("user", Text("look"), Attachment("image", "a.png", "image/png", "0" * 64, 10))
        else:
            builder.user(draw(st.integers(1, 200)))
        for _ in range(draw(st.sampled_from([0, 0, 1, 2, 5, 9]))):
            results = draw(st.lists(_size, min_size=1, max_size=3))
            builder.step(
                *results,
                arguments=draw(st.sampled_from([1, 1, 1, 2500])),
                failed=draw(st.booleans()),
                reasoning=draw(st.sampled_from([0, 0, 50])),
                apart=draw(st.booleans()),
            )
        last = number == turns - 1
        if not (last and open_end and draw(st.booleans())):
            builder.assistant(draw(_size), reasoning=draw(st.sampled_from([0, 80])))
    if open_end and builder.messages[-1].role == "assistant":
        builder.user(draw(st.integers(1, 100)))
    return builder.messages

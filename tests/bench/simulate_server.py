"""The strict fake server of the simulator: refuses what does not fit, what is not paired, what is not signed right."""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tui.context.counting.counting import attachment_tokens
from tui.context.counting.families import ESTIMATED
from tui.context.counting.tokenizers import Tokenizer, fitted_families
from tui.context.counting.words import LATIN, WordCounter, pack
from tui.context.usage.limits import ModelLimits
from tui.context.usage.usage import ContextUsage
from tui.messages import (
    Attachment,
    Message,
    Part,
    ProviderItem,
    Reasoning,
    Refusal,
    Request,
    Source,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from tui.providers.base import (
    Capabilities,
    ModelInfo,
    Provider,
    ProviderError,
    ReasoningDelta,
    ReasoningMeta,
    StreamEnd,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)

ServerKind: TypeAlias = Literal["named", "bare", "hidden", "truncating", "unknown"]
"""How it speaks: refusals that name numbers, that don't; no usage; cuts the prompt in silence; no window told."""
ReasoningKind: TypeAlias = Literal["none", "tool_loop", "bound"]
Summariser: TypeAlias = Literal["faithful", "babbling", "empty", "failing"]

BLOCK = "▒"  # one character that stands for many tokens, so that a window of a million is cheap to fill
BLOCK_TOKENS = 50
FACT = re.compile(r"F\d+:src/[a-z]+\.py")


def text_tokens(text: str) -> int:
    """The truth about a text: blocks, wide characters 1 each, anything else 4 characters a token."""
    if text.isascii():
        return len(text) // 4
    blocks = text.count(BLOCK)
    narrow = len(text.encode("ascii", "ignore"))
    return BLOCK_TOKENS * blocks + (len(text) - blocks - narrow) + narrow // 4


class SimTokenizer(Tokenizer):
    """The client's tokenizer: off by a fixed share from the truth."""

    def __init__(self, name: str, off: float) -> None:
        super().__init__(name, WordCounter, "estimated", fitted_families()[ESTIMATED].margins)
        self._factor = 1 + off

    def classes(self, text: str) -> int:
        """Tokens as the client believes, as if all text were of one class."""
        return pack({LATIN: round(text_tokens(text) * self._factor)})


def part_tokens(part: Part, model: str) -> float:
    """The truth about one part."""
    match part:
        case ToolCall(name=name, arguments=arguments):
            return 10 + text_tokens(name) + text_tokens(arguments)
        case ToolResult(text=text):
            return 4 + text_tokens(text)
        case Attachment():
            return attachment_tokens(part, model)
        case Reasoning(text=text, tokens=tokens):
            return tokens if tokens is not None else text_tokens(text)
        case Text(text=text) | Refusal(text=text) | ProviderItem(data=text):
            return text_tokens(text)
        case Source():
            return 0


def preamble_tokens(request: Request) -> int:
    """The truth about system prompt and tools."""
    system = sum(text_tokens(s.text) for s in request.system)
    tools = sum(8 + 1.1 * text_tokens(f"{t.name}\n{t.description}\n{t.parameters}") for t in request.tools)
    return round(3 + system + tools + (16 if tools else 0))


@dataclass(slots=True)
class Reply:
    """What the model is to say next. Sizes in tokens."""

    text: str
    calls: tuple[tuple[str, str], ...] = ()  # id, arguments
    reasoning: int = 0


@dataclass(slots=True)
class Faults:
    """What a strict server saw that it must never see, and what it refused."""

    knowable: int = 0  # refused for size, though the client's own upper bound said so
    surprises: int = 0  # refused for size, and the client's upper bound fitted
    unknown_window: int = 0  # those of them where nobody had told the client the window
    after_measure: int = 0  # those of them that came with a known window, after a call whose usage the client had seen
    pairing: int = 0
    signature: int = 0
    truncated: int = 0  # silently cut
    requests: int = 0
    summaries: int = 0
    samples: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Keep the first few for the report."""
        if len(self.samples) < 3:
            self.samples.append(text)


class FakeServer(Provider):
    """A `Provider` whose word is law: it knows the true size of everything."""

    name = "sim"
    dialect = "openai-chat"

    def __init__(
        self, window: int, *, kind: ServerKind, reasoning: ReasoningKind, summariser: Summariser, seed: int
    ) -> None:
        self.window = window
        self.kind = kind
        self.faults = Faults()
        self.replies: list[Reply] = []
        self.believed: Callable[[], ContextUsage | None] = lambda: None
        self.last_sent: tuple[Message, ...] = ()
        self.summary_facts: set[str] = set()
        self._reasoning = reasoning
        self._summariser = summariser
        self._random = random.Random(seed)
        self._sizes: dict[int, tuple[Message, float]] = {}
        self._signed: dict[str, tuple[int, tuple[str, ...]]] = {}  # signature -> prefix content, blocks before it
        self._measured = False
        self._serial = 0

    # -- Provider --------------------------------------------------------------------------------------------------

    def capabilities(self, model: str) -> Capabilities:
        """By the kind of reasoning."""
        match self._reasoning:
            case "none":
                return Capabilities()
            case "tool_loop":
                return Capabilities(reasoning_return="tool_loop", needs_signature=True)
            case "bound":
                return Capabilities(reasoning_return="always", needs_signature=True, prefix_bound=True)

    async def describe(self, model: str) -> ModelInfo:
        """Its window."""
        return ModelInfo(model, limits=await self.limits(model))

    async def limits(self, model: str) -> ModelLimits | None:
        """Its window, unless it is of the kind that doesn't say."""
        return None if self.kind == "unknown" else ModelLimits(self.window, source="probe")

    async def models(self) -> list[ModelInfo]:
        """One model."""
        return [ModelInfo("sim")]

    async def count_tokens(self, request: Request) -> int | None:
        """No such endpoint."""
        return None

    async def close(self) -> None:
        """Nothing to close."""

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Check, then answer with the next reply, or with a summary where one is asked for."""
        self.faults.requests += 1
        summary = bool(request.messages) and request.messages[-1].id == "summary-request"
        self._check_pairs(request.messages)
        signed = self._check_signatures(request.messages)
        size = round(sum(map(self._size, request.messages))) + preamble_tokens(request)
        size = self._check_size(request, size, summary=summary)
        if summary:
            reply = self._summarise(request)
        else:
            self.last_sent = request.messages
            reply = self.replies.pop(0)
        reply, end = self._within_window(reply, size)
        output = 0
        if reply.reasoning and self._reasoning != "none":
            self._serial += 1
            signature = f"sig-{self._serial}"
            self._signed[signature] = signed
            yield ReasoningDelta(BLOCK * max(1, reply.reasoning // BLOCK_TOKENS))
            yield ReasoningMeta(signature=signature)
            output += max(1, reply.reasoning // BLOCK_TOKENS) * BLOCK_TOKENS
        thought = output
        if reply.text:
            yield TextDelta(reply.text)
        for index, (ident, arguments) in enumerate(reply.calls):
            yield ToolCallDelta(index, ident, "read_file", arguments)
        output = min(output + _reply_tokens(reply), self.window - size)
        if self.kind != "hidden":
            self._measured = True
            yield UsageUpdate(Usage(size, output, reasoning=thought or None))
        yield StreamEnd(end, end)

    # -- size ------------------------------------------------------------------------------------------------------

    def _size(self, message: Message) -> float:
        cached = self._sizes.get(id(message))
        if cached is None or cached[0] is not message:
            tokens = 4 + sum(part_tokens(part, "sim") for part in message.parts)
            cached = self._sizes[id(message)] = (message, tokens)
        return cached[1]

    def _check_size(self, request: Request, size: int, *, summary: bool) -> int:
        """The size it reports. Raises for what doesn't fit."""
        answer = request.max_output or 0
        if size + (0 if self.kind in ("truncating", "unknown") else answer) <= self.window:
            return size
        if self.kind == "truncating" and size > self.window:
            self.faults.truncated += 1
        usage = self.believed()
        bound = usage.upper_bound if usage is not None and usage.limits.context is not None else None
        if not summary:
            if bound is not None and bound >= size:
                self.faults.knowable += 1
                self.faults.note(f"refused {size} + {answer} of {self.window}, upper bound {bound}")
            else:
                self.faults.surprises += 1
                self.faults.unknown_window += bound is None
                self.faults.after_measure += self._measured and bound is not None
                if self._measured and bound is not None:
                    self.faults.note(f"surprise {size} + {answer} of {self.window}, upper bound {bound}")
        if self.kind == "truncating":
            return min(size, self.window // 2 + 2)
        named = {"limit": self.window, "input_tokens": size} if self.kind in ("named", "unknown") else {}
        kind: Literal["overflow_input", "overflow_output"] = (
            "overflow_output" if size <= self.window and named else "overflow_input"
        )
        raise ProviderError(kind, f"{size} tokens do not fit", status=400, **named)

    def _within_window(self, reply: Reply, size: int) -> tuple[Reply, Literal["stop", "tool_calls", "length"]]:
        """`reply` cut off where the window is full."""
        room = self.window - size
        if _reply_tokens(reply) + reply.reasoning <= room:
            return reply, "tool_calls" if reply.calls else "stop"
        return Reply("Well. " + words(room - 20)), "length"

    # -- pairs and signatures --------------------------------------------------------------------------------------

    def _check_pairs(self, messages: Iterable[Message]) -> None:
        problem = pairing_problem(messages)
        if problem:
            self.faults.pairing += 1
            self.faults.note(problem)
            raise ProviderError("bad_request", problem, status=400)

    def _check_signatures(self, messages: Iterable[Message]) -> tuple[int, tuple[str, ...]]:
        """Prefix content and blocks so far. Raises for a block behind other content than it was made for."""
        if self._reasoning == "none":
            return 0, ()
        content, blocks = 0, tuple[str, ...]()
        for message in messages:
            for part in message.parts:
                if not isinstance(part, Reasoning):
                    continue
                made_for = self._signed.get(part.signature or "")
                bound = self._reasoning == "bound"
                if made_for is None or (bound and (made_for[0] != content or not _leads_to(made_for[1], blocks))):
                    self.faults.signature += 1
                    self.faults.note(f"signature of a block in {message.id}")
                    raise ProviderError("signature", "Invalid `signature` in `thinking` block", status=400)
                blocks += (part.signature or "",)
            rest = tuple(part for part in message.parts if not isinstance(part, Reasoning))
            content = hash((content, message.role, rest))
        return content, blocks

    # -- answers ---------------------------------------------------------------------------------------------------

    def _summarise(self, request: Request) -> Reply:
        self.faults.summaries += 1
        facts = [f for m in request.messages for p in m.parts for f in FACT.findall(_text(p))]
        self.summary_facts.update(facts)
        most = request.max_output or 1_000
        match self._summariser:
            case "failing" if self._random.random() < 0.6:
                raise ProviderError("server", "internal error", status=500)
            case "empty" if self._random.random() < 0.6:
                return Reply("")
            case "babbling":
                return Reply(words(most - 8))
            case _:
                named = "Facts: " + " ".join(dict.fromkeys(facts))
                return Reply(named + "\n" + words(min(most // 3, 600)))


def _reply_tokens(reply: Reply) -> int:
    calls = sum(10 + 2 + text_tokens(arguments) for _, arguments in reply.calls)
    return calls + text_tokens(reply.text) + 4


def _leads_to(before: tuple[str, ...], now: tuple[str, ...]) -> bool:
    """Whether `now` is `before` less a leading run: what a provider allows."""
    return not now or before[-len(now) :] == now


def _text(part: Part) -> str:
    match part:
        case ToolCall(arguments=text):
            return text
        case Text(text=text) | ToolResult(text=text) | Reasoning(text=text):
            return text
        case _:
            return ""


def facts_in(messages: Iterable[Message]) -> set[str]:
    """Planted facts in messages."""
    return {fact for m in messages for part in m.parts for fact in FACT.findall(_text(part))}


def words(tokens: float, wide: bool = False) -> str:
    """A text of about `tokens` tokens: blocks for the bulk of it, letters for the rest."""
    blocks, rest = divmod(max(0, int(tokens)), BLOCK_TOKENS)
    if blocks < 8:
        blocks, rest = 0, max(0, int(tokens))
    return BLOCK * blocks + ("漢" * rest if wide else "lore " * (rest * 4 // 5))


def pairing_problem(messages: Iterable[Message]) -> str:
    """What a strict server complains of; "" where there is nothing."""
    waiting: set[str] = set()
    ids: set[str] = set()
    first = True
    for message in messages:
        if first and message.role != "user":
            return "first message must use the user role"
        first = False
        if not message.parts or all(isinstance(p, Text) and not p.text.strip() for p in message.parts):
            return f"message {message.id} is empty"
        answers = {p.call_id for p in message.parts if isinstance(p, ToolResult)}
        if message.role != "tool" and waiting:
            return f"tool calls {sorted(waiting)} were found without results"
        if answers - waiting:
            return f"no tool call found for {sorted(answers - waiting)}"
        waiting -= answers
        for part in message.parts:
            if isinstance(part, ToolCall):
                json.loads(part.arguments)
                if part.id in ids:
                    return f"tool call id {part.id} twice"
                ids.add(part.id)
                waiting.add(part.id)
    return f"tool calls {sorted(waiting)} were found without results" if waiting else ""

"""Events of a session during a turn. The screen, `chatctx ask` and the tests read the same stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tui.messages import Message, ToolCall
from tui.text.numbers import plural, tokens_exact

if TYPE_CHECKING:
    from tui.context.reduction.records import CompactionRecord
    from tui.context.usage.usage import ContextUsage


@dataclass(frozen=True, slots=True)
class MessageAdded:
    """A complete message was added to the history: the person's, a tool's results, a summary."""

    message: Message


@dataclass(frozen=True, slots=True)
class ReplyStarted:
    """An assistant message began; deltas for `message_id` follow."""

    message_id: str
    provider: str
    model: str


@dataclass(frozen=True, slots=True)
class ReplyDelta:
    """A piece of the running answer. `kind` is the part of the message that grows; `name` only for tool calls."""

    message_id: str
    kind: Literal["text", "reasoning", "refusal", "tool_call"]
    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class ReplyFinished:
    """The assistant message as stored: complete, cancelled, interrupted or failed."""

    message: Message


@dataclass(frozen=True, slots=True)
class UsageChanged:
    """The numbers changed. Status bar and panel show this object only."""

    usage: ContextUsage


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a person should know: what happened, what was kept, what to do."""

    level: Literal["info", "warning", "error"]
    text: str


@dataclass(frozen=True, slots=True)
class ContextTrimmed:
    """Rolling context left `messages` messages (`tokens` tokens) out of the request."""

    messages: int
    tokens: int
    message_ids: tuple[str, ...]

    @property
    def line(self) -> str:
        """Its effect, for a person."""
        tokens = tokens_exact(self.tokens, "estimated")
        return f"Context trimmed: {plural(self.messages, 'message')}, {tokens} tokens left out"


@dataclass(frozen=True, slots=True)
class CompactionStarted:
    """A compaction began."""

    automatic: bool


@dataclass(frozen=True, slots=True)
class CompactionFinished:
    """A compaction took effect. If `summary` is None, tool results were only cleared."""

    record: CompactionRecord
    summary: Message | None

    @property
    def line(self) -> str:
        """Its effect, for a person."""
        from tui.context.reduction.compaction import compaction_report  # not before the first frame

        return compaction_report(self.record)


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """The request will be repeated in `seconds` seconds (attempt number `attempt`, from 1)."""

    seconds: float
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool call runs."""

    call_id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A short progress text of a running tool."""

    call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool call was answered, after `seconds` seconds (0.0 if it was not run)."""

    call_id: str
    name: str
    seconds: float
    is_error: bool


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """A call waits for approval: `session.tools.approve(id, decision)`.

    `arguments` are the parsed ones. `origin` is "built-in" or the MCP server's name; `description` is the tool's own,
    which may be wrong; `why` says what is special about this call, "" for nothing.
    """

    id: str
    call: ToolCall
    arguments: Mapping[str, Any]
    origin: str
    description: str
    why: str


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The turn ended without an answer. Nothing was lost; `text` says why and what to do next."""

    text: str


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The turn is over and the session accepts the next message."""


SessionEvent: TypeAlias = (
    MessageAdded
    | ReplyStarted
    | ReplyDelta
    | ReplyFinished
    | UsageChanged
    | Notice
    | ContextTrimmed
    | CompactionStarted
    | CompactionFinished
    | RetryScheduled
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | ApprovalAsked
    | TurnFailed
    | TurnFinished
)

Emit: TypeAlias = Callable[[SessionEvent], None]
"""Passes an event to the listener. Cheap; on the event loop only."""

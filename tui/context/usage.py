"""`calculate_context_usage`: the one place where the numbers are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tui.context.limits import Budget, ModelLimits

TotalSource: TypeAlias = Literal["exact", "delta", "estimated"]
CountSource: TypeAlias = Literal["measured", "derived", "counted", "estimated"]


@dataclass(frozen=True, slots=True)
class UsageItem:
    """One tool, file or message inside a row. `ref` is the message id, tool name or file name it stands for."""

    name: str
    tokens: int
    source: CountSource
    ref: str = ""


@dataclass(frozen=True, slots=True)
class UsageRow:
    """A category. Items add up to the row, rows add up to the total."""

    key: str  # "system", "memory", "tools", "user", "assistant", "reasoning", "tool_calls", "tool_results",
    #           "attachments", "summaries", "unattributed"
    name: str
    tokens: int
    source: CountSource
    items: tuple[UsageItem, ...] = ()


@dataclass(frozen=True, slots=True)
class Basis:
    """Where the total comes from (SPEC 1.1), in tokens. None is unknown (no call yet)."""

    last_input: int | None = None
    last_output: int | None = None
    last_output_sent_back: int | None = None
    new_messages: int | None = None  # tokens
    new_message_count: int = 0
    last_error_percent: float | None = None
    factor: float | None = None
    error_p95_percent: float | None = None
    measured_calls: int = 0
    compactions: int = 0
    compaction_saved: int = 0  # tokens


@dataclass(frozen=True, slots=True)
class ContextUsage:
    """What the next request costs and what the window has left, in tokens.

    Invariants: rows add up to `total`; where the window is known
    `total + output_reserve + compaction_buffer + free - over == limits.context`; nothing is negative.
    """

    session: str
    provider: str
    model: str
    limits: ModelLimits
    budget: Budget
    total: int
    upper_bound: int
    source: TotalSource
    basis: Basis
    rows: tuple[UsageRow, ...]
    output_reserve: int | None
    compaction_buffer: int | None
    free: int | None
    over: int | None
    until_compaction: int | None
    percent: float | None
    warnings: tuple[str, ...] = ()

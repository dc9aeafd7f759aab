"""The window: what a model takes, what is reserved for the answer, what is left for the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

LimitsSource: TypeAlias = Literal["setting", "learned", "probe", "table", "prices", "unknown"]


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """Window of a model in tokens: all of it, the part for input, the most it may answer. None is unknown."""

    context: int | None
    input: int | None = None
    output: int | None = None
    source: LimitsSource = "unknown"
    detail: str = ""  # for a person: which endpoint or file said so


UNKNOWN_LIMITS = ModelLimits(context=None)


@dataclass(frozen=True, slots=True)
class Budget:
    """What of the window the input may fill, in tokens. All None where the window is unknown.

    `reserved_output` is what stays free of input: window less `max_input`. `compaction_at` is the threshold, None when
    compaction is off (or rolling context acts instead).
    """

    context: int | None
    max_input: int | None
    reserved_output: int | None
    compaction_at: int | None


@dataclass(frozen=True, slots=True)
class BudgetResult:
    """The pre-send check (SPEC 4), in tokens; `within_budget` is True where the window is unknown."""

    max_input_tokens: int | None
    current_tokens: int
    available_tokens: int | None
    within_budget: bool
    utilization_percent: float | None

"""The window: what a model accepts, what is reserved for the answer, and what is left for the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

LimitsSource: TypeAlias = Literal["setting", "learned", "probe", "table", "prices", "unknown"]


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """Limits of a model in tokens: the whole window, the input, the longest answer. None is unknown."""

    context: int | None
    input: int | None = None
    output: int | None = None
    source: LimitsSource = "unknown"
    detail: str = ""  # source, for a person: which endpoint or file


UNKNOWN_LIMITS = ModelLimits(context=None)


def with_window(limits: ModelLimits, context: int, source: LimitsSource, detail: str) -> ModelLimits:
    """`limits` with another window of `context` tokens; input and output limits are kept as far as they fit."""
    input_limit = limits.input if limits.input is not None and limits.input < context else None
    output_limit = min(limits.output, context) if limits.output is not None else None
    return ModelLimits(context, input_limit, output_limit, source, detail)


@dataclass(frozen=True, slots=True)
class Percent:
    """A share of something, in percent."""

    value: float

    def of(self, whole: int) -> int:
        """This share of `whole` tokens."""
        return int(whole * self.value / 100)

    def __str__(self) -> str:
        return f"{self.value:g}%"


@dataclass(frozen=True, slots=True)
class Tokens:
    """An absolute number of tokens."""

    value: int

    def of(self, whole: int) -> int:
        """The same number for any `whole`."""
        return self.value

    def __str__(self) -> str:
        return f"{self.value:,} tokens"


DEFAULT_COMPACTION = Percent(85)  # of the input budget
DEFAULT_RESERVE = 16_000  # tokens


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """A person's settings.

    `reserve_output` is in tokens; `compaction` is the part of the input budget at which compaction starts, None for
    never. `rolling` trims instead of compacting.
    """

    reserve_output: int = DEFAULT_RESERVE
    compaction: Percent | Tokens | None = DEFAULT_COMPACTION
    rolling: bool = False


@dataclass(frozen=True, slots=True)
class Budget:
    """The part of the window that input may fill, in tokens. All None if the window is unknown.

    `reserved_output` is the window minus `max_input`. `compaction_at` is the threshold, None if compaction is off (or
    rolling context is on).
    """

    context: int | None
    max_input: int | None
    reserved_output: int | None
    compaction_at: int | None

    def fits(self, tokens: int) -> bool:
        """Whether `tokens` of input fit; True if the window is unknown."""
        return self.max_input is None or tokens <= self.max_input


def _positive(value: int | None) -> int | None:
    """`value` as a number of tokens, None if it can't be a window (0, negative, not a whole number)."""
    return value if isinstance(value, int) and value > 0 else None


def answer_reserve(limits: ModelLimits, tokens: int) -> int | None:
    """Tokens of the window that are reserved for an answer of `tokens` tokens. None if the window is unknown."""
    context = _positive(limits.context)
    return None if context is None else min(max(0, tokens), context // 4, _positive(limits.output) or context)


def make_budget(limits: ModelLimits, settings: BudgetSettings, max_output: int | None = None) -> Budget:
    """The input budget of a window, in tokens (README.md, "Budget").

    `max_input = min(limits.input, window - reserved)` with `reserved = min(setting, model's limit, a quarter of the
    window)`. `max_output`, the longest answer that this request asks for, takes the place of the setting.
    """
    context = _positive(limits.context)
    reserved = answer_reserve(limits, settings.reserve_output if max_output is None else max_output)
    if context is None or reserved is None:
        return Budget(None, None, None, None)
    max_input = context - reserved
    limit = _positive(limits.input)
    if limit is not None:
        max_input = min(max_input, limit)
    at: int | None = None
    if settings.compaction is not None and not settings.rolling:
        at = min(max(0, settings.compaction.of(max_input)), max_input)
    return Budget(context, max_input, context - max_input, at)

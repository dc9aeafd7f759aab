"""`calculate_context_usage`: the one place where the numbers of a request are computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import ceil
from operator import attrgetter
from typing import NamedTuple

from tui.context.counting.words import CLASSES, total, unpack
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.estimate.prediction import MARGIN_HEURISTIC, Situation, TotalSource
from tui.context.usage.limits import Budget, BudgetSettings, ModelLimits, make_budget
from tui.context.usage.rows import LazyItems, MessageTokens, UsageItem, UsageRow, make_rows
from tui.messages import BUILT_IN, Request
from tui.text.labels import ROW_NAMES

NAMED_SHARE = 0.05  # of a conversation's text: smaller classes are not listed


class ClassFactor(NamedTuple):
    """A class of text in the conversation: its name, its tokens before learning, and the factor applied to them."""

    name: str
    tokens: int
    factor: float


@dataclass(frozen=True, slots=True)
class Basis:
    """How the total was obtained, in tokens. None is unknown (no call yet).

    `counted`: `last_input` is the provider's count of a request, not the report of a call. `classes` are the classes of
    text in the conversation. `last_error_first`: the last prediction was not based on a measured call;
    `first_error_p95_percent` is over predictions like that, `error_p95_percent` over the others.
    """

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
    cleared: int = 0  # tokens cleared by the provider's context editing
    counted: bool = False
    classes: tuple[ClassFactor, ...] = ()
    last_error_first: bool = False
    first_error_p95_percent: float | None = None


class LeftOut(NamedTuple):
    """What rolling context leaves out of the next request: messages, whole or in part, and tokens."""

    messages: int = 0
    tokens: int = 0


NOTHING_LEFT_OUT = LeftOut()


@dataclass(frozen=True, slots=True)
class ContextUsage:
    """The tokens of the next request and what remains of the window.

    `left_out` is not part of `total`: both together are the whole conversation. Rows add up to `total`. `messages` has
    the tokens of single ones by id.
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
    warnings: tuple[str, ...] = ()
    left_out: LeftOut = NOTHING_LEFT_OUT
    rolling: bool = False  # rolling context is on: the oldest content is left out, nothing is compacted
    messages: Mapping[str, MessageTokens] = field(default_factory=dict, repr=False, compare=False)

    @property
    def space(self) -> Space:
        """What remains of the window."""
        return divide(self.total, self.budget)

    @property
    def needs_compaction(self) -> bool:
        """Whether the total is over the threshold, or so close to the limit that its error may exceed it."""
        threshold, limit = self.budget.compaction_at, self.budget.max_input
        may_not_fit = limit is not None and self.upper_bound > limit
        return threshold is not None and (self.total >= threshold or may_not_fit)

    @property
    def percent(self) -> float | None:
        """The share of the window in use; None if the window is unknown."""
        return None if self.budget.context is None else 100 * self.total / self.budget.context


@dataclass(frozen=True, slots=True)
class Space:
    """What remains of a window, in tokens (see `divide`). All None if the window is unknown."""

    reserve: int | None = None
    buffer: int | None = None
    free: int | None = None
    over: int | None = None
    until_compaction: int | None = None


def divide(total: int, budget: Budget) -> Space:
    """Divide the window: `total + reserve + buffer + free - over == window`, nothing negative.

    Below the compaction threshold, the tokens up to it are free and the rest is the buffer; between threshold and
    `max_input` the buffer shrinks; beyond `max_input` the excess is `over`. Without a threshold there is no buffer.
    """
    context, most = budget.context, budget.max_input
    if context is None or most is None:
        return Space()
    threshold = budget.compaction_at
    mark = most if threshold is None else threshold
    reserve = context - most
    until = None if threshold is None else max(0, threshold - total)
    if total > most:
        return Space(reserve, 0, 0, total - most, until)
    if total > mark:
        return Space(reserve, most - total, 0, 0, until)
    return Space(reserve, most - mark, mark - total, 0, until)


def calculate_context_usage(
    request: Request,
    *,
    estimator: HybridTokenEstimator,
    limits: ModelLimits,
    settings: BudgetSettings,
    compactions: int = 0,
    compaction_saved: int = 0,
    left_out: LeftOut = NOTHING_LEFT_OUT,
) -> ContextUsage:
    """The usage of `request`; `compactions` and `compaction_saved` are copied to the basis.

    `left_out` is what `request` lacks of the conversation.
    """
    situation = estimator.situation(request)
    estimate = situation.estimate
    budget = make_budget(limits, settings, request.max_output)
    rows, messages, warnings = make_rows(request, situation)
    return ContextUsage(
        session=request.session,
        provider=request.provider,
        model=request.model,
        limits=limits,
        budget=budget,
        total=estimate.tokens,
        upper_bound=estimate.upper_bound,
        source=estimate.source,
        basis=_basis(situation, compactions, compaction_saved),
        rows=rows,
        warnings=warnings,
        left_out=left_out,
        rolling=settings.rolling,
        messages=messages,
    )


def with_reply(usage: ContextUsage, tokens: int) -> ContextUsage:
    """`usage` while an answer streams in: plus its `tokens` (estimated), which the next request will contain."""
    arriving = UsageItem("the streaming answer", tokens, "estimated")
    by_key = {row.key: row for row in usage.rows}
    row = by_key.get("assistant") or UsageRow("assistant", ROW_NAMES["assistant"], 0, "estimated")
    items = LazyItems(lambda: (*row.items, arriving))
    by_key[row.key] = UsageRow(row.key, row.name, row.tokens + tokens, "estimated", items)
    return replace(
        usage,
        total=usage.total + tokens,
        upper_bound=usage.upper_bound + ceil(tokens * (1 + MARGIN_HEURISTIC)),
        source="delta" if usage.source == "exact" else usage.source,
        rows=tuple(by_key[key] for key in ROW_NAMES if key in by_key),
    )


def _basis(situation: Situation, compactions: int, saved: int) -> Basis:
    estimate, base, account, _, calibration = situation
    by_class, measurement = unpack(account.sums.all_classes), base.measurement
    least = max(1.0, NAMED_SHARE * total(account.sums.all_classes))
    classes = [
        ClassFactor(CLASSES[kind], round(tokens), calibration.class_factor(kind))
        for kind, tokens in by_class
        if tokens >= least
    ]
    return Basis(
        last_input=estimate.last_input,
        last_output=estimate.last_output,
        last_output_sent_back=estimate.last_output_sent_back,
        new_messages=None if measurement is None else estimate.estimated_tokens,
        new_message_count=estimate.new_message_count,
        last_error_percent=None if measurement is None else measurement.error_percent,
        last_error_first=measurement is not None and measurement.first,
        factor=calibration.factor,
        error_p95_percent=calibration.errors.p95_percent,
        first_error_p95_percent=calibration.first_errors.p95_percent,
        measured_calls=calibration.errors.calls,
        compactions=compactions,
        compaction_saved=saved,
        cleared=estimate.cleared,
        counted=estimate.counted,
        classes=tuple(sorted(classes, key=attrgetter("tokens"), reverse=True)),
    )


_BASIS_IN_JSON = (
    "last_input", "last_output", "last_output_sent_back", "new_messages", "new_message_count", "counted", "cleared",
    "compactions", "compaction_saved", "last_error_percent", "error_p95_percent", "measured_calls", "factor",
)  # fmt: skip


def usage_to_json(usage: ContextUsage) -> dict[str, object]:
    """The stable format of `chatctx context --json`; unknown is None."""
    basis, space = usage.basis, usage.space
    return {
        "session": usage.session,
        "provider": usage.provider,
        "model": usage.model,
        "window": asdict(usage.limits),
        "budget": {
            "max_input": usage.budget.max_input,
            "reserved_output": usage.budget.reserved_output,
            "compaction_at": usage.budget.compaction_at,
        },
        "rolling": usage.rolling,
        "total": usage.total,
        "upper_bound": usage.upper_bound,
        "source": usage.source,
        "percent": usage.percent,
        "basis": {name: getattr(basis, name) for name in _BASIS_IN_JSON}
        | {"classes": [item._asdict() for item in basis.classes]},
        "rows": [
            {"key": row.key, "name": row.name, "tokens": row.tokens, "source": row.source, "items": _items(row.items)}
            for row in usage.rows
        ],
        "output_reserve": space.reserve,
        "compaction_buffer": space.buffer,
        "free": space.free,
        "over": space.over,
        "until_compaction": space.until_compaction,
        "left_out": usage.left_out._asdict(),
        "warnings": list(usage.warnings),
    }


def _items(items: Sequence[UsageItem]) -> list[dict[str, object]]:
    """`server` is a tool's MCP server, None for other items and the built-in tools."""
    return [
        {
            "name": item.name,
            "tokens": item.tokens,
            "source": item.source,
            "ref": item.ref,
            "server": None if item.group in ("", BUILT_IN) else item.group,
        }
        for item in items
    ]

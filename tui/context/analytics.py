"""What all calls add up to: by provider, model and day, and how good the estimates were over time. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from statistics import median
from typing import Literal, TypeAlias

from tui.context.prediction import TotalSource
from tui.messages import Usage

CallStatus: TypeAlias = Literal["pending", "success", "failed"]


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One LLM call. `predicted` and `actual` are input tokens, `source` how it was predicted, `seconds` until the
    answer ended, `cost` in US dollars, `at` in seconds since the epoch. None is unknown, never 0.
    """

    provider: str
    model: str
    at: float
    status: CallStatus = "pending"
    predicted: int | None = None
    source: TotalSource | None = None
    usage: Usage | None = None
    seconds: float | None = None
    cost: float | None = None
    session: str = ""

    @property
    def actual(self) -> int | None:
        """The provider's own count of the input, in tokens; None where it gave none."""
        if self.usage is None or self.usage.source != "provider" or not self.usage.input_total:
            return None
        return self.usage.input_total

    @property
    def error_percent(self) -> float | None:
        """Predicted less actual, in percent of the actual number."""
        if self.predicted is None or self.actual is None:
            return None
        return 100 * (self.predicted - self.actual) / self.actual


@dataclass(frozen=True, slots=True)
class Totals:
    """What some calls add up to. Tokens; a sum leaves out what is unknown and is None where nothing is known."""

    calls: int
    pending: int
    failed: int
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    cost: float | None
    median_seconds: float | None
    median_abs_error_percent: float | None
    bias_percent: float | None


def totals(calls: Sequence[CallRecord]) -> Totals:
    """Add up `calls`."""
    usages = [call.usage for call in calls if call.usage is not None]
    errors = [error for call in calls if (error := call.error_percent) is not None]
    times = [call.seconds for call in calls if call.seconds is not None and call.status == "success"]
    return Totals(
        calls=len(calls),
        pending=sum(call.status == "pending" for call in calls),
        failed=sum(call.status == "failed" for call in calls),
        input_tokens=_sum(usage.input_total for usage in usages),
        cached_tokens=_sum(usage.input_cached for usage in usages),
        output_tokens=_sum(usage.output_total for usage in usages),
        reasoning_tokens=_sum(usage.reasoning for usage in usages),
        cost=_sum_cost(call.cost for call in calls),
        median_seconds=median(times) if times else None,
        median_abs_error_percent=median(map(abs, errors)) if errors else None,
        bias_percent=sum(errors) / len(errors) if errors else None,
    )


def by_provider(calls: Iterable[CallRecord]) -> dict[str, Totals]:
    """Totals by provider, the most calls first."""
    return _grouped(calls, lambda call: call.provider)


def by_model(calls: Iterable[CallRecord]) -> dict[str, Totals]:
    """Totals by "provider/model", the most calls first."""
    return _grouped(calls, lambda call: f"{call.provider}/{call.model}")


def by_day(calls: Iterable[CallRecord], zone: tzinfo = UTC) -> dict[str, Totals]:
    """Totals by day ("2026-11-27" in `zone`), the earliest first."""
    found = _grouped(calls, lambda call: datetime.fromtimestamp(call.at, zone).date().isoformat())
    return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Errors of the estimates up to one call: of it, and the median of the last few, in percent. `at` in seconds."""

    at: float
    error_percent: float
    median_abs_error_percent: float


def accuracy_over_time(calls: Iterable[CallRecord], window: int = 20) -> list[Accuracy]:
    """One point for each call with a known error, in order of time; the median is over the last `window` of them."""
    known = [(call.at, error) for call in calls if (error := call.error_percent) is not None]
    known.sort()
    found = []
    for index, (at, error) in enumerate(known):
        recent = [abs(other) for _, other in known[max(0, index + 1 - window) : index + 1]]
        found.append(Accuracy(at, error, median(recent)))
    return found


def _grouped(calls: Iterable[CallRecord], key: Callable[[CallRecord], str]) -> dict[str, Totals]:
    groups: dict[str, list[CallRecord]] = {}
    for call in calls:
        groups.setdefault(key(call), []).append(call)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return {name: totals(members) for name, members in ordered}


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _sum_cost(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None

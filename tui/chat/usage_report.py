"""Usage of a session, a day or all time: tokens, cost, and the accuracy of the estimates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import starmap
from typing import Any, NamedTuple

from tui.chat.store.calls import CallGroup, CallLog
from tui.text.numbers import Cost


def cost_of(groups: Iterable[CallGroup]) -> Cost:
    """The total cost of calls, for the status bar, `/usage`, JSON and exports.

    A call with tokens but without a price makes the total unknown; one without either (refused, not reached) costs
    nothing.
    """
    groups = list(groups)
    prices = [group.cost for group in groups if group.cost is not None]
    unknown = any(group.unpriced for group in groups) or bool(groups and not prices)
    return Cost(None if unknown else sum(prices), sum(prices), any(group.cost_estimated for group in groups))


class Accuracy(NamedTuple):
    """Absolute errors of predictions in percent of the measured input: median and 95th percentile over `calls`."""

    calls: int = 0
    median: float | None = None
    p95: float | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over calls, in tokens; None if no call has a figure.

    `written`, to the cache, is part of the fresh input, `reasoning` of the `output`. For `reasoning_unknown` of the
    calls with an output nobody reported the reasoning. `estimated`: the input and output of some calls are estimated,
    and so are the sums with them. `list_priced` are the terms (service tiers) that the cost leaves
    out. `estimates` are the predictions that had a measured call to go by, `first_estimates` the others.
    """

    name: str
    calls: int
    failed: int
    compactions: int
    input: int | None
    cached: int | None
    written: int | None
    output: int | None
    reasoning: int | None
    reasoning_unknown: int
    estimated: bool
    cost: Cost
    list_priced: tuple[str, ...]
    estimates: Accuracy
    first_estimates: Accuracy

    @property
    def source(self) -> str:
        """That of the sums with an input or output, which decides whether they are marked `~`."""
        return "estimated" if self.estimated else "provider"

    @property
    def fresh(self) -> int | None:
        """Input that was not read from the cache."""
        return None if self.input is None else max(0, self.input - (self.cached or 0))

    @property
    def tokens(self) -> int | None:
        """Input and output together."""
        return _sum((self.input, self.output))


_SUMMED = (
    "calls", "failed", "compactions", "input", "cached", "written", "output", "reasoning", "reasoning_unknown"
)  # fmt: skip


def totals(name: str, groups: Iterable[CallGroup]) -> Totals:
    """The totals of the calls in some groups."""
    groups = list(groups)
    sums: dict[str, Any] = {field: _sum(getattr(group, field) for group in groups) for field in _SUMMED}
    return Totals(
        name,
        **sums,
        estimated=any(group.estimated for group in groups),
        cost=cost_of(groups),
        list_priced=tuple(sorted({group.term for group in groups if group.term})),
        estimates=accuracy_of(error for group in groups for error in group.errors),
        first_estimates=accuracy_of(error for group in groups for error in group.first_errors),
    )


def totals_to_json(row: Totals) -> dict[str, object]:
    """A row for scripts; unknown is None. `input_tokens` is the sum of fresh and cached.

    `tokens_estimated` is about input, fresh, output and total.
    """
    return {
        "name": row.name,
        "calls": row.calls,
        "failed": row.failed,
        "compactions": row.compactions,
        "input_tokens": row.input,
        "fresh_tokens": row.fresh,
        "cached_tokens": row.cached,
        "cache_written_tokens": row.written,
        "output_tokens": row.output,
        "reasoning_tokens": row.reasoning,
        "reasoning_unknown_calls": row.reasoning_unknown,
        "total_tokens": row.tokens,
        "tokens_estimated": row.estimated,
        "cost": row.cost.total,
        "known_cost": row.cost.priced,
        "cost_estimated": row.cost.estimated,
        "list_price_for": list(row.list_priced),
        "estimates": _accuracy_to_json(row.estimates),
        "first_estimates": _accuracy_to_json(row.first_estimates),
    }


def _accuracy_to_json(accuracy: Accuracy) -> dict[str, object]:
    return {
        "calls": accuracy.calls,
        "median_abs_error_percent": accuracy.median,
        "p95_abs_error_percent": accuracy.p95,
    }


def _sum(values: Iterable[int | None]) -> int | None:
    """The sum of the known values; None if there are values but none is known."""
    every = list(values)
    present = [value for value in every if value is not None]
    return sum(present) if present or not every else None


def accuracy_of(errors: Iterable[float]) -> Accuracy:
    """The accuracy of predictions with these absolute errors, in percent."""
    ordered = sorted(errors)  # `statistics` would sort again, and takes 10 ms to load
    if not ordered:
        return Accuracy()
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return Accuracy(len(ordered), median, ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))])


def by_model(groups: Iterable[CallGroup]) -> list[Totals]:
    """One row for each "provider/model", the most used first."""
    return sorted(_totals_by(lambda group: f"{group.provider}/{group.model}", groups), key=_most_used)


def models_and_sum(groups: Iterable[CallGroup], whole: Totals) -> list[Totals]:
    """As `by_model`, and if there are several `whole`, which is their sum."""
    rows = by_model(groups)
    return [*rows, replace(whole, name="all models")] if len(rows) > 1 else rows


def by_provider(groups: Iterable[CallGroup]) -> list[Totals]:
    """One row for each provider, the most used first."""
    return sorted(_totals_by(lambda group: group.provider, groups), key=_most_used)


def each_day(groups: Iterable[CallGroup]) -> list[Totals]:
    """One row for each day with calls ("2026-11-27", local time), the earliest first."""
    return sorted(_totals_by(lambda group: group.day, groups), key=lambda row: row.name)


def _totals_by(name: Callable[[CallGroup], str], groups: Iterable[CallGroup]) -> Iterator[Totals]:
    by_name: dict[str, list[CallGroup]] = defaultdict(list)
    for group in groups:
        by_name[name(group)].append(group)
    return starmap(totals, by_name.items())


def _most_used(row: Totals) -> tuple[int, str]:
    return -(row.input or 0) - (row.output or 0), row.name


def by_day(groups: Iterable[CallGroup], days: int, today: date) -> list[tuple[date, Totals]]:
    """Each of the last `days` days, oldest first, days without calls included."""
    sums, none = {row.name: row for row in each_day(groups)}, totals("", ())
    dates = [date.fromordinal(today.toordinal() - back) for back in reversed(range(days))]
    return [(day, sums.get(day.isoformat(), none)) for day in dates]


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The usage of a session (None without one), of today, of the last days if asked for, and of all time.

    `before` are a fork's calls from before the fork, which count in the session that made them. `groups` are the calls
    of the last days if asked for, else all: those that `models` (and their sum), `providers` and charts break down.
    """

    session: Totals | None
    before: Totals
    today: Totals
    days: Totals | None
    all_time: Totals
    groups: Sequence[CallGroup]
    models: Sequence[Totals]
    providers: Sequence[Totals]

    @property
    def columns(self) -> list[Totals]:
        """The sums, side by side."""
        return [sums for sums in (self.session, self.today, self.days, self.all_time) if sums is not None]


def usage_report(log: CallLog, session: str | None, today: date, days: int | None = None) -> UsageReport:
    """Read and add up the calls, those of a session and of the last `days` days, too."""
    every = log.groups()
    groups = every if days is None else _since(every, first_day(today, days))
    before = log.inherited(session) if session is not None else ()
    sums = totals(f"{days} days" if days is not None else "total", groups)
    return UsageReport(
        session=totals("session", log.groups(session)) if session is not None else None,
        before=totals("inherited", before),
        today=totals("today", _since(every, today)),
        days=sums if days is not None else None,
        all_time=totals("total", every) if days is not None else sums,
        groups=groups,
        models=models_and_sum(groups, sums),
        providers=by_provider(groups),
    )


def first_day(today: date, days: int) -> date:
    """The first of the last `days` days."""
    return today - timedelta(days=days - 1)


def _since(groups: Iterable[CallGroup], first: date) -> list[CallGroup]:
    return [group for group in groups if group.day >= first.isoformat()]

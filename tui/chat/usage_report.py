"""Usage of a session, a day or all time: tokens, cost, and the accuracy of the estimates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import chain, starmap
from operator import attrgetter
from typing import Any

from tui.chat.store.calls import Accuracy, CallLog, Totals, known_sum

_SUMMED = (
    "calls", "failed", "compactions", "input", "cached", "written", "output", "reasoning", "reasoning_unknown", "priced"
)  # fmt: skip


def totals(name: str, groups: Iterable[Totals]) -> Totals:
    """The sum of some groups of calls."""
    every, values = list(groups), dict[str, Any]()
    for field in _SUMMED:
        values[field] = known_sum(map(attrgetter(field), every))
    for field in ("unpriced", "estimated", "cost_estimated"):
        values[field] = any(map(attrgetter(field), every))
    for field in ("errors", "first_errors", "terms"):
        values[field] = sorted(chain(*map(attrgetter(field), every)))
    values["terms"] = sorted(set(values["terms"]))
    return Totals(**values, provider="", model="", day="", name=name)


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
        "list_price_for": row.terms,
        "estimates": _accuracy_to_json(row.estimates),
        "first_estimates": _accuracy_to_json(row.first_estimates),
    }


def _accuracy_to_json(accuracy: Accuracy) -> dict[str, object]:
    return {
        "calls": accuracy.calls,
        "median_abs_error_percent": accuracy.median,
        "p95_abs_error_percent": accuracy.p95,
    }


def by_model(groups: Iterable[Totals]) -> list[Totals]:
    """One row for each "provider/model", the most used first."""
    return sorted(_totals_by(lambda group: f"{group.provider}/{group.model}", groups), key=_most_used)


def models_and_sum(groups: Iterable[Totals], whole: Totals) -> list[Totals]:
    """As `by_model`, and if there are several `whole`, which is their sum."""
    rows = by_model(groups)
    return [*rows, replace(whole, name="all models")] if len(rows) > 1 else rows


def by_provider(groups: Iterable[Totals]) -> list[Totals]:
    """One row for each provider, the most used first."""
    return sorted(_totals_by(lambda group: group.provider, groups), key=_most_used)


def each_day(groups: Iterable[Totals]) -> list[Totals]:
    """One row for each day with calls ("2026-11-27", local time), the earliest first."""
    return sorted(_totals_by(lambda group: group.day, groups), key=lambda row: row.name)


def _totals_by(name: Callable[[Totals], str], groups: Iterable[Totals]) -> Iterator[Totals]:
    by_name: dict[str, list[Totals]] = defaultdict(list)
    for group in groups:
        by_name[name(group)].append(group)
    return starmap(totals, by_name.items())


def _most_used(row: Totals) -> tuple[int, str]:
    return -(row.input or 0) - (row.output or 0), row.name


def by_day(groups: Iterable[Totals], days: int, today: date) -> list[tuple[date, Totals]]:
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
    groups: Sequence[Totals]
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


def _since(groups: Iterable[Totals], first: date) -> list[Totals]:
    return [group for group in groups if group.day >= first.isoformat()]

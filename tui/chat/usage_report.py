"""Usage of a session, a day or all time: tokens, cost, and the accuracy of the estimates. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from statistics import median
from typing import TypeVar

from tui.chat.store.calls import CallRow
from tui.text.numbers import Cost


def cost_of(calls: Iterable[CallRow]) -> Cost:
    """The total cost of calls, for the status bar, `/usage`, JSON and exports.

    A call with tokens but without a price makes the total unknown; one without either (refused, not reached) costs
    nothing.
    """
    done = [call for call in calls if call.status != "pending"]
    prices = [call.cost for call in done if call.cost is not None]
    unpriced = any(call.cost is None and (_input(call) or _output(call)) for call in done)
    nothing = bool(done) and not prices
    estimated = any(call.cost and call.usage_source == "estimated" for call in done)
    return Cost(None if unpriced or nothing else sum(prices), sum(prices), estimated)


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over calls, in tokens; None if no call has a figure.

    `fresh` and `cached` make up the `input`, `reasoning` is part of `output`. `cost`, `priced` and `estimated` are
    those of `Cost`, `list_priced` the terms (service tiers) that it leaves out. `error_median` and `error_p95` are
    percentages of the measured input (absolute), over `predictions` calls with a prediction and a measurement.
    """

    name: str
    calls: int = 0
    failed: int = 0
    compactions: int = 0
    input: int | None = 0
    fresh: int | None = 0
    cached: int | None = 0
    output: int | None = 0
    reasoning: int | None = 0
    cost: float | None = 0.0
    priced: float = 0.0
    estimated: bool = False
    list_priced: tuple[str, ...] = ()
    predictions: int = 0
    error_median: float | None = None
    error_p95: float | None = None


def totals(name: str, calls: Iterable[CallRow]) -> Totals:
    """The sums over calls, without running ones."""
    done = [call for call in calls if call.status != "pending"]
    answered = [call for call in done if call.status == "success"]
    errors = sorted(_errors(answered))
    cost = cost_of(done)
    read, cached = _sum(map(_input, done)), _sum(_either(call.passes_cached, call.input_cached) for call in done)
    return Totals(
        name=name,
        calls=len(done),
        failed=len(done) - len(answered),
        compactions=sum(call.kind == "compaction" for call in done),
        input=read,
        fresh=None if read is None else max(0, read - (cached or 0)),
        cached=cached,
        output=_sum(map(_output, done)),
        reasoning=_sum(call.reasoning for call in done),
        cost=cost.total,
        priced=cost.priced,
        estimated=cost.estimated,
        list_priced=tuple(sorted({call.unpriced for call in done if call.unpriced})),
        predictions=len(errors),
        error_median=median(errors) if errors else None,
        error_p95=errors[min(len(errors) - 1, int(0.95 * len(errors)))] if errors else None,
    )


def inherited(calls: Iterable[CallRow], session: str, messages: Iterable[str]) -> list[CallRow]:
    """The calls that made `messages` (ids) of a fork before it existed. They count in the original conversation."""
    wanted = set(messages)
    by_message: dict[str, list[CallRow]] = defaultdict(list)
    for call in calls:
        if call.message in wanted:
            by_message[call.message].append(call)
    inherited_calls = []
    for answers in by_message.values():
        if all(call.session != session for call in answers):  # otherwise they were made here
            inherited_calls += [call for call in answers if call.session == answers[0].session]
    return inherited_calls


def totals_to_json(row: Totals) -> dict[str, object]:
    """A row for scripts; unknown is None. `input_tokens` is the sum of fresh and cached."""
    return {
        "name": row.name,
        "calls": row.calls,
        "failed": row.failed,
        "compactions": row.compactions,
        "input_tokens": row.input,
        "fresh_tokens": row.fresh,
        "cached_tokens": row.cached,
        "output_tokens": row.output,
        "reasoning_tokens": row.reasoning,
        "cost": row.cost,
        "known_cost": row.priced,
        "cost_estimated": row.estimated,
        "list_price_for": list(row.list_priced),
        "estimates": {
            "calls": row.predictions,
            "median_abs_error_percent": row.error_median,
            "p95_abs_error_percent": row.error_p95,
        },
    }


def _input(call: CallRow) -> int | None:
    return _either(call.passes_input, call.input_total)


def _output(call: CallRow) -> int | None:
    return _either(call.passes_output, call.output_total)


def _either(passes: int | None, one: int | None) -> int | None:
    return one if passes is None else passes


def _sum(values: Iterable[int | None]) -> int | None:
    """The sum of the known values; None if there are values but none is known."""
    every = list(values)
    present = [value for value in every if value is not None]
    return sum(present) if present or not every else None


def _errors(calls: Iterable[CallRow]) -> list[float]:
    """Absolute errors of the predictions in percent, of chat calls measured by a provider."""
    return [
        100 * abs(call.predicted - call.input_total) / call.input_total
        for call in calls
        if call.kind == "chat" and call.usage_source == "provider" and call.predicted and call.input_total
    ]


Key = TypeVar("Key")


def by_model(calls: Iterable[CallRow]) -> list[Totals]:
    """One row for each "provider/model", the most used first."""
    return _by_name(calls, lambda call: f"{call.provider}/{call.billed_model}")


def by_provider(calls: Iterable[CallRow]) -> list[Totals]:
    """One row for each provider, the most used first."""
    return _by_name(calls, lambda call: call.provider)


def _by_name(calls: Iterable[CallRow], name: Callable[[CallRow], str]) -> list[Totals]:
    rows = [totals(key, group) for key, group in _grouped(calls, name).items()]
    return sorted(rows, key=lambda row: (-(row.input or 0) - (row.output or 0), row.name))


def each_day(calls: Iterable[CallRow]) -> list[Totals]:
    """One row for each day with calls ("2026-11-27", local time), the earliest first."""
    groups = _grouped(calls, lambda call: date.fromtimestamp(call.at))
    return [totals(day.isoformat(), group) for day, group in sorted(groups.items())]


def by_day(calls: Iterable[CallRow], days: int, today: date) -> list[tuple[date, int]]:
    """Tokens (input and output) of each of the last `days` days, oldest first, days without calls included."""
    groups = _grouped(calls, lambda call: date.fromtimestamp(call.at).toordinal())
    wanted = [date.fromordinal(today.toordinal() - back) for back in reversed(range(days))]
    return [
        (day, sum((_input(call) or 0) + (_output(call) or 0) for call in groups.get(day.toordinal(), ())))
        for day in wanted
    ]


def _grouped(calls: Iterable[CallRow], key: Callable[[CallRow], Key]) -> dict[Key, list[CallRow]]:
    groups: dict[Key, list[CallRow]] = defaultdict(list)
    for call in calls:
        groups[key(call)].append(call)
    return dict(groups)

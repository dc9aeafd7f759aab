"""The log of LLM calls: prediction, outcome and duration of each."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from tui.chat.store.database import Database, new_id
from tui.chat.store.store import storable
from tui.messages import Usage
from tui.text.numbers import Cost, total_of

if TYPE_CHECKING:
    from tui.context.estimate.measurements import Verdict
    from tui.context.usage.usage import ContextUsage
    from tui.messages import Request

RECENT = 500
"""Number of latest calls searched for recently used models."""

CallKind: TypeAlias = Literal["chat", "compaction", "sampling"]


@dataclass(frozen=True, slots=True)
class CallRow:
    """A stored call. Tokens, seconds; `at` is seconds since the epoch. None is unknown.

    `unpriced` are the terms of a call (a service tier) that its cost, the list price, leaves out. `passes_...` are sums
    over all passes of a call with several, None for one pass; `input_cache_write` and `reasoning` are such sums in any
    case. `verdict` says what the report of its input is worth and
    `verdict_reason` why (context/estimate/evidence.py), `window` is the model's window known at that time.
    """

    id: str
    session: str
    message: str | None
    kind: CallKind
    provider: str
    model: str
    at: float
    status: Literal["pending", "success", "failed"]
    predicted: int | None = None
    upper_bound: int | None = None
    source: str | None = None
    known: int | None = None
    estimated: int | None = None
    input_total: int | None = None
    input_cached: int | None = None
    input_cache_write: int | None = None
    output_total: int | None = None
    reasoning: int | None = None
    usage_source: str | None = None
    first_token_seconds: float | None = None
    seconds: float | None = None
    finish_reason: str | None = None
    error: str | None = None
    cost: float | None = None  # US dollars
    passes_input: int | None = None
    passes_cached: int | None = None
    passes_output: int | None = None
    unpriced: str | None = None
    verdict: str | None = None
    verdict_reason: str | None = None
    window: int | None = None
    answered_by: str | None = None
    left_out: int | None = None

    @property
    def believed(self) -> bool:
        """Whether the reported input is used: no evidence speaks against it."""
        return self.verdict not in ("doubted", "cut")


def billed_model(model: str, answered_by: str | None) -> str:
    """The model that a call is counted and priced as: the one that was asked, or another one's that answered."""
    if not answered_by:
        return model
    from tui.context.counting.families import another_family  # with the vocabularies' names: 10 ms

    return answered_by if another_family(model, answered_by) else model


_COLUMNS = tuple(CallRow.__dataclass_fields__)


class Accuracy(NamedTuple):
    """Absolute errors of predictions in percent of the measured input: median and 95th percentile over `calls`."""

    calls: int = 0
    median: float | None = None
    p95: float | None = None


def accuracy_of(errors: Iterable[float]) -> Accuracy:
    """The accuracy of predictions with these absolute errors, in percent."""
    ordered = sorted(errors)  # `statistics` would sort again, and takes 10 ms to load
    if not ordered:
        return Accuracy()
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return Accuracy(len(ordered), median, ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))])


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over calls that are over, in tokens; a sum is None where no call has the figure.

    `written`, to the cache, is part of the fresh input, `reasoning` of the `output`; for `reasoning_unknown` of the
    calls with an output nobody reported the reasoning. `priced` is the sum of the known costs in US dollars;
    `unpriced`: a call has tokens and no price. `estimated`: the input and output of some are estimated, and so are the
    sums with them; `cost_estimated`: and priced. `terms` are those that the cost leaves out of account (see
    `CallRow.unpriced`). `errors` are those of the predictions of chat calls that the provider measured: absolute, in
    percent; `first_errors` of those that had no measured call to go by.

    Those that the database adds up are of one `provider`, `model` (the one they are billed as) and `day` (local,
    "2026-11-27"); sums of such have a `name`.
    """

    calls: int
    failed: int
    compactions: int
    input: int | None
    cached: int | None
    written: int | None
    output: int | None
    reasoning: int | None
    reasoning_unknown: int
    priced: float | None
    unpriced: bool
    estimated: bool
    cost_estimated: bool
    terms: Sequence[str]
    provider: str
    model: str
    day: str
    errors: Sequence[float]
    first_errors: Sequence[float]
    name: str = ""

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
        total: int | None = known_sum((self.input, self.output))
        return total

    @property
    def cost(self) -> Cost:
        """The cost, for the status bar, `/usage`, JSON and exports.

        A call with tokens but without a price makes it unknown; one without either (refused, not reached) costs
        nothing.
        """
        return Cost(None if self.unpriced else self.priced, self.priced or 0, self.cost_estimated)

    @property
    def estimates(self) -> Accuracy:
        """Of the predictions that had a measured call to go by."""
        return accuracy_of(self.errors)

    @property
    def first_estimates(self) -> Accuracy:
        """Of the other predictions."""
        return accuracy_of(self.first_errors)


def known_sum(values: Iterable[float | None]) -> Any:
    """The sum of the known values; None if there are values but none is known."""
    every = list(values)
    present = [value for value in every if value is not None]
    return sum(present) if present or not every else None


_MEASURED = (
    "status = 'success' AND kind = 'chat' AND usage_source = 'provider' AND predicted <> 0 AND input_total <> 0"
    " AND coalesce(verdict, '') NOT IN ('doubted', 'cut')"
)
_TOKENS = "coalesce(passes_input, input_total, 0) + coalesce(passes_output, output_total, 0)"
_FIRST = "coalesce(source, '') = 'estimated'"
_ERROR = "1000000 * abs(predicted - input_total) / input_total"  # a whole number: SQLite is slow to write others
_GROUPS = f"""
SELECT provider, model, answered_by, unpriced, day, count(*), sum(status <> 'success'), sum(kind = 'compaction'),
    sum(coalesce(passes_input, input_total)), sum(coalesce(passes_cached, input_cached)),
    sum(input_cache_write), sum(coalesce(passes_output, output_total)), sum(reasoning),
    sum(reasoning IS NULL AND coalesce(passes_output, output_total, 0) <> 0), sum(cost),
    max(cost IS NULL AND {_TOKENS} <> 0), max(usage_source = 'estimated' AND {_TOKENS} <> 0),
    max(cost <> 0 AND usage_source = 'estimated'),
    group_concat({_ERROR}) FILTER (WHERE {_MEASURED} AND NOT {_FIRST}),
    group_concat({_ERROR}) FILTER (WHERE {_MEASURED} AND {_FIRST})
FROM {{calls}} WHERE status <> 'pending' {{and_where}}
GROUP BY 1, 2, 3, 4, 5
"""
_INHERITED = """(
SELECT *, first_value(session) OVER (PARTITION BY message ORDER BY at) AS origin FROM calls
WHERE message IN (SELECT id FROM messages WHERE session = :session)
    AND message NOT IN (SELECT message FROM calls WHERE session = :session AND message IS NOT NULL)
)"""


def usage_columns(usage: Usage) -> dict[str, Any]:
    """The columns of a call that its usage fills."""
    names = ("input_total", "input_cached", "input_cache_write", "output_total", "reasoning")
    columns: dict[str, Any] = {name: getattr(usage, name) for name in names}
    columns["usage_source"] = usage.source
    if usage.passes:
        columns["passes_input"] = sum(one.input_total for one in usage.passes)
        columns["passes_cached"] = sum(one.input_cached for one in usage.passes)
        columns["passes_output"] = sum(one.output_total for one in usage.passes)
        columns["input_cache_write"] = sum(one.input_cache_write for one in usage.passes)
        columns["reasoning"] = total_of(one.reasoning for one in usage.passes)
    return columns


class CallLog:
    """The `calls` table."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.finished = 0  # calls, by this program

    def begin(self, request: Request, usage: ContextUsage | None, *, message: str | None, kind: CallKind) -> str:
        """Record a call about to be made, with its prediction if there is one. Returns its id."""
        new = usage.basis.new_messages if usage else None
        total = usage.total if usage else None
        call = CallRow(
            new_id(),
            request.session,
            message,
            kind,
            request.provider,
            request.model,
            time.time(),
            "pending",
            predicted=total,
            upper_bound=usage.upper_bound if usage else None,
            source=usage.source if usage else None,
            known=total - new if total is not None and new is not None else None,
            estimated=total if new is None else new,
            window=usage.limits.context if usage else None,
            left_out=usage.left_out.tokens if usage else None,
        )
        self.add([call])
        return call.id

    def finish(
        self,
        call: str,
        *,
        usage: Usage | None,
        billed: tuple[str, str],
        seconds: float,
        first_token_seconds: float | None = None,
        finish_reason: str | None = None,
        error: str | None = None,
        verdict: Verdict | None = None,
        answered_by: str = "",
    ) -> None:
        """Complete the row: failed if `error` is given. `verdict` is on the reported input.

        `billed` are the provider and model by whose prices it costs something.
        """
        values: dict[str, Any] = {
            "status": "failed" if error else "success",
            "seconds": seconds,
            "first_token_seconds": first_token_seconds,
            "finish_reason": storable(finish_reason),
            "error": storable(error),
            "answered_by": storable(answered_by) or None,
        }
        if verdict is not None:
            values["verdict"] = "confirmed" if verdict.confirmed else verdict.kind
            values["verdict_reason"] = verdict.reason or None
        from tui.providers.catalog import price, unpriced_terms  # with asyncio: `chatctx usage` needs neither

        if usage is not None:
            values |= usage_columns(usage)
        told = usage or Usage(None, None)  # a failed call of a free model costs nothing, rather than an unknown sum
        values |= {"cost": price(told, *billed), "unpriced": unpriced_terms(told, *billed) or None}
        names = ", ".join(map("{} = ?".format, values))
        self._database.write(f"UPDATE calls SET {names} WHERE id = ?", (*values.values(), call), durable=False)
        self.finished += 1

    def add(self, calls: Iterable[CallRow]) -> None:
        """Add calls, also those that were made elsewhere."""
        sql = f"INSERT INTO calls ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
        with self._database.transaction(durable=False) as db:
            db.executemany(sql, map(attrgetter(*_COLUMNS), calls))

    def stored(self, calls: Iterable[str]) -> set[str]:
        """Which of these ids are in the log."""
        sql = "SELECT id FROM calls WHERE id IN (SELECT value FROM json_each(?))"
        return {ident for (ident,) in self._database.query(sql, (json.dumps(list(calls)),))}

    def recent_models(self) -> dict[str, float]:
        """The models of the last calls ("provider/model") and when each was last used, seconds since the epoch."""
        rows = self._database.query(
            "SELECT provider, model, max(at) FROM (SELECT provider, model, at FROM calls ORDER BY at DESC LIMIT ?)"
            " GROUP BY provider, model",
            (RECENT,),
        )
        return {f"{provider}/{model}": at for provider, model, at in rows}

    def rows(self, session: str | None = None) -> list[CallRow]:
        """Calls of a session, or of all, oldest first."""
        where = "" if session is None else "WHERE session = :session"
        sql = f"SELECT {', '.join(_COLUMNS)} FROM calls {where} ORDER BY at"
        return [CallRow(*row) for row in self._database.query(sql, {"session": session})]

    def groups(self, session: str | None = None, since: float = 0.0) -> list[Totals]:
        """The calls of a session, or of all, from `since` (seconds since the epoch) on, added up in the database."""
        conditions = ("AND session = :session " if session is not None else "") + ("AND at >= :since" if since else "")
        sql = _GROUPS.format(calls="calls", and_where=conditions)
        return [_group(*row) for row in self._database.query(sql, {"session": session, "since": since})]

    def inherited(self, session: str) -> list[Totals]:
        """A fork's calls from before the fork, added up. They count in the session that made them.

        If several sessions made a message (copies of one), the calls of the first.
        """
        sql = _GROUPS.format(calls=_INHERITED, and_where="AND session = origin")
        return [_group(*row) for row in self._database.query(sql, {"session": session})]


def _group(provider: str, model: str, answered_by: str | None, term: str | None, day: str, *row: Any) -> Totals:
    *sums, unpriced, estimated, cost_estimated, errors, first_errors = row
    marks = (bool(unpriced), bool(estimated), bool(cost_estimated), (term,) if term else ())
    about = (provider, billed_model(model, answered_by), day)
    values: tuple[Any, ...] = (*sums, *marks, *about, _errors(errors), _errors(first_errors))
    return Totals(*values)


def _errors(millionths: str | None) -> list[float]:
    """The numbers of a comma-separated list, in percent."""
    return [error / 10_000 for error in json.loads(f"[{millionths or ''}]")]

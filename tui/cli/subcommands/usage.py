"""`chatctx usage`: tokens, cost, estimate accuracy, trims and compactions, as text or JSON."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from tui.chat.conversation.history import RecordKind
from tui.chat.store.calls import CallGroup, CallLog
from tui.chat.store.store import SessionInfo, SessionStore
from tui.chat.usage_report import (
    Totals,
    by_day,
    by_model,
    by_provider,
    each_day,
    groups_of,
    inherited,
    models_and_sum,
    totals,
    totals_to_json,
)
from tui.cli import table, write
from tui.config.settings import Settings

CHART_DAYS = 30


@dataclass(frozen=True, slots=True)
class Trim:
    """A trim of rolling context: `at` in seconds since the epoch, and how much it left out."""

    session: str
    at: float
    messages: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Period:
    """The calls of a period: their sums and trims."""

    totals: Totals
    trims: Sequence[Trim]


def run(settings: Settings, *, session: str | None, days: int | None, as_json: bool, calls: bool = False) -> int:
    """Print the sums; tables for the last `days`, or a line for each of the session's `calls`. Changes nothing."""
    if calls:
        return _list_calls(settings, session, as_json=as_json)
    store = SessionStore(settings.database)
    try:
        info = _session(store, session)
        log, trims = CallLog(store), _trims(store)
        everything, here = log.groups(), log.groups(info.id) if info is not None else []
        fork_calls = log.of_messages(info.id) if info is not None and info.parent else []
    finally:
        store.close()
    before = totals("inherited", groups_of(inherited(fork_calls, info.id)) if info is not None else ())
    today = date.today()
    periods = _periods(info, here, everything, trims, today, days)
    shown = everything if days is None else _since(everything, today - timedelta(days=days - 1))
    if as_json:
        write(json.dumps(_as_json(info, before, periods, shown, days)))
    else:
        _print(info, before, periods, shown, days or CHART_DAYS, today)
    return 0


def _since(groups: Sequence[CallGroup], first: date) -> list[CallGroup]:
    """The calls of the day `first` and later ones."""
    return [group for group in groups if group.day >= first.isoformat()]


def _list_calls(settings: Settings, session: str | None, *, as_json: bool) -> int:
    from tui.views.ledger import LEDGER, NUMBERS, ledger_entry, ledger_rows

    store = SessionStore(settings.database)
    try:
        info = _session(store, session)
        rows = CallLog(store).rows(info.id)[-LEDGER:] if info is not None else []
    finally:
        store.close()
    if as_json:
        write(json.dumps([ledger_entry(row) for row in rows]))
    else:
        write(table(ledger_rows(rows), right=NUMBERS) if rows else "No calls yet. Start with: chatctx")
    return 0


def _session(store: SessionStore, ident: str | None) -> SessionInfo | None:
    """The requested session, or the last one; None if there is none."""
    return store.last_session() if ident is None else store.find(ident)


def _trims(store: SessionStore) -> list[Trim]:
    trims = []
    for session, at, text in store.query(
        "SELECT session, at, data FROM records WHERE kind = ? ORDER BY at", (RecordKind.TRIM,)
    ):
        data = json.loads(text)
        if data.get("messages"):  # a record of 0 messages restored everything
            trims.append(Trim(session, at, int(data["messages"]), int(data.get("tokens", 0))))
    return trims


def _periods(
    info: SessionInfo | None,
    here: Sequence[CallGroup],
    groups: Sequence[CallGroup],
    trims: Sequence[Trim],
    today: date,
    days: int | None,
) -> dict[str, Period]:
    """Session, today, the requested days, all time."""

    def since(name: str, first: date) -> Period:
        start = datetime(first.year, first.month, first.day).timestamp()
        return Period(totals(name, _since(groups, first)), [trim for trim in trims if trim.at >= start])

    periods: dict[str, Period] = {}
    if info is not None:
        periods["session"] = Period(totals("session", here), [trim for trim in trims if trim.session == info.id])
    periods["today"] = since("today", today)
    if days is not None:
        periods["days"] = since(f"{days} days", today - timedelta(days=days - 1))
    periods["all"] = Period(totals("all time", groups), trims)
    return periods


def _as_json(
    info: SessionInfo | None, before: Totals, periods: dict[str, Period], shown: Sequence[CallGroup], days: int | None
) -> dict[str, object]:
    def entry(period: Period) -> dict[str, object]:
        trims = period.trims
        return {
            **totals_to_json(period.totals),
            "trims": {
                "count": len(trims),
                "messages": sum(trim.messages for trim in trims),
                "tokens": sum(trim.tokens for trim in trims),
            },
        }

    session = periods.get("session")
    return {
        "session": None
        if session is None or info is None
        else {
            "id": info.id,
            "title": info.title,
            **entry(session),
            "inherited": totals_to_json(before),
        },
        "today": entry(periods["today"]),
        "days": None if days is None else {"count": days, **entry(periods["days"])},
        "all": entry(periods["all"]),
        "by_provider": [totals_to_json(row) for row in by_provider(shown)],
        "by_model": [totals_to_json(row) for row in by_model(shown)],
        "by_day": [totals_to_json(row) for row in each_day(shown)],
    }


def _print(
    info: SessionInfo | None,
    before: Totals,
    periods: dict[str, Period],
    shown: Sequence[CallGroup],
    days: int,
    today: date,
) -> None:
    from tui.text.numbers import spent, tokens_short
    from tui.views.usage_table import usage_lines

    if not periods["all"].totals.calls:
        write("No calls yet. Start with: chatctx")
        return
    width = max(40, min(112, shutil.get_terminal_size((100, 24)).columns))
    if info is not None:
        write(table([(f"session {info.id}  {info.title}"[:width],)]) + "\n")
    columns = [period.totals for period in periods.values()]
    models = models_and_sum(shown, periods["all" if "days" not in periods else "days"].totals)
    for line in usage_lines(columns, models, by_day(shown, days, today), width, before=before):
        write("".join(text for text, _ in line).rstrip())
    providers = by_provider(shown, accuracy=False)
    if len(providers) > 1:
        rows = [
            (row.name, f"{row.calls:,}", tokens_short(row.input), tokens_short(row.output),
             spent(row.cost, row.priced, estimated=row.estimated))
            for row in providers
        ]  # fmt: skip
        write("\n" + table([("by provider", "calls", "input", "output", "cost"), *rows], right=frozenset({1, 2, 3, 4})))
    for name, period in periods.items():
        if name in ("session", "all") and period.trims:
            tokens = sum(trim.tokens for trim in period.trims)
            write(f"\ntrimmed, {period.totals.name}: {len(period.trims):,} times, {tokens:,} tokens left out")

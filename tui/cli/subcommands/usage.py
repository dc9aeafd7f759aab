"""`chatctx usage`: tokens, cost, estimate accuracy, trims and compactions, as text or JSON."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date

from tui.chat.conversation.history import RecordKind
from tui.chat.store.calls import CallLog, CallRow
from tui.chat.store.store import SessionInfo, SessionStore
from tui.chat.usage_report import (
    Totals,
    UsageReport,
    by_day,
    by_model,
    each_day,
    first_day,
    totals_to_json,
    usage_report,
)
from tui.cli import table, write
from tui.config.settings import Settings


@dataclass(frozen=True, slots=True)
class Trim:
    """A trim of rolling context: when, and how much it left out."""

    session: str
    day: date
    messages: int
    tokens: int


def run(settings: Settings, *, session: str | None, days: int | None, as_json: bool, calls: bool = False) -> int:
    """Print the sums; those of the last `days` too, or a line for each of the session's `calls`. Changes nothing."""
    with closing(SessionStore(settings.database)) as store:
        info = store.last_session() if session is None else store.find(session)
        log, today = CallLog(store), date.today()
        if calls:
            rows = log.rows(info.id) if info is not None else []
            first = first_day(today, days) if days is not None else date.min
            _print_calls([row for row in rows if date.fromtimestamp(row.at) >= first], as_json=as_json)
            return 0
        trims = _trims(store)
        report = usage_report(log, info.id if info is not None else None, today, days)
    if as_json:
        write(json.dumps(_as_json(report, info, trims, today, days)))
    else:
        _print(report, info, trims, today, days)
    return 0


def _print_calls(rows: Sequence[CallRow], *, as_json: bool) -> None:
    from tui.views.context_lists import LEDGER, NUMBERS, ledger_entry, ledger_rows

    rows = rows[-LEDGER:]
    if as_json:
        write(json.dumps([ledger_entry(row) for row in rows]))
    else:
        write(table(ledger_rows(rows), right=NUMBERS) if rows else NOTHING_YET)


NOTHING_YET = "No calls yet. Start with: chatctx"


def _trims(store: SessionStore) -> list[Trim]:
    trims = []
    for session, at, text in store.query(
        "SELECT session, at, data FROM records WHERE kind = ? ORDER BY at", (RecordKind.TRIM,)
    ):
        data = json.loads(text)
        if data.get("messages"):  # a record of 0 messages restored everything
            trims.append(Trim(session, date.fromtimestamp(at), int(data["messages"]), int(data.get("tokens", 0))))
    return trims


def _as_json(
    report: UsageReport, session: SessionInfo | None, trims: Sequence[Trim], today: date, days: int | None
) -> dict[str, object]:
    def entry(sums: Totals, first: date = date.min, of: str = "") -> dict[str, object]:
        some = [trim for trim in trims if trim.day >= first and of in ("", trim.session)]
        messages, tokens = sum(trim.messages for trim in some), sum(trim.tokens for trim in some)
        return totals_to_json(sums) | {"trims": {"count": len(some), "messages": messages, "tokens": tokens}}

    of_session = of_days = None
    if session is not None and report.session is not None:
        of_session = {"id": session.id, "title": session.title, **entry(report.session, of=session.id)}
        of_session["inherited"] = totals_to_json(report.before)
    if days is not None and report.days is not None:
        of_days = {"count": days, **entry(report.days, first_day(today, days))}
    return {
        "session": of_session,
        "today": entry(report.today, today),
        "days": of_days,
        "all": entry(report.all_time),
        "by_provider": [totals_to_json(row) for row in report.providers],
        "by_model": [totals_to_json(row) for row in by_model(report.groups)],
        "by_day": [totals_to_json(row) for row in each_day(report.groups)],
    }


def _print(
    report: UsageReport, session: SessionInfo | None, trims: Sequence[Trim], today: date, days: int | None
) -> None:
    from tui.views.usage_table import DAYS, usage_lines

    if not report.all_time.calls:
        write(NOTHING_YET)
        return
    width = max(40, min(112, shutil.get_terminal_size((100, 24)).columns))
    if session is not None:
        write(table([(f"session {session.id}  {session.title}"[:width],)]) + "\n")
    for line in usage_lines(report, width, by_day(report.groups, days or DAYS, today)):
        write("".join(text for text, _ in line).rstrip())
    of_session = [trim for trim in trims if session is not None and trim.session == session.id]
    for name, some in (("session", of_session), ("total", trims)):
        if some:
            tokens = sum(trim.tokens for trim in some)
            write(f"\ntrimmed, {name}: {len(some):,} times, {tokens:,} tokens left out")

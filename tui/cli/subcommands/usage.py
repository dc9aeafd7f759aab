"""`chatctx usage`: tokens, cost, estimate accuracy, trims and compactions, as text or JSON."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from datetime import date, datetime, time

from tui.chat.conversation.history import RecordKind
from tui.chat.store.calls import CallLog, Totals
from tui.chat.store.store import SessionInfo, SessionStore
from tui.chat.usage_report import (
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
from tui.context.reduction.records import TRIM_LOG, TrimLog

NOTHING_YET = "No calls yet. Start with: chatctx"


def run(settings: Settings, *, session: str | None, days: int | None, as_json: bool, calls: bool = False) -> int:
    """Print the sums; those of the last `days` too, or a line for each of the session's `calls`. Changes nothing."""
    with closing(SessionStore(settings.database)) as store:
        info = store.last_session() if session is None else store.find(session)
        log, today = CallLog(store), date.today()
        if calls:
            from tui.views.context_lists import LEDGER, NUMBERS, ledger_entry, ledger_rows

            first = first_day(today, days) if days is not None else date.min
            every = log.rows(info.id) if info is not None else []
            rows = [row for row in every if date.fromtimestamp(row.at) >= first][-LEDGER:]
            if as_json:
                write(json.dumps([ledger_entry(row) for row in rows]))
            else:
                write(table(ledger_rows(rows), right=NUMBERS) if rows else NOTHING_YET)
            return 0
        report = usage_report(log, info.id if info is not None else None, today, days)
        if as_json:
            write(json.dumps(_as_json(report, info, store, today, days)))
        else:
            _print(report, info, store, today, days)
    return 0


def _as_json(
    report: UsageReport, session: SessionInfo | None, store: SessionStore, today: date, days: int | None
) -> dict[str, object]:
    def entry(sums: Totals, first: date | None = None, of: str = "") -> dict[str, object]:
        since = datetime.combine(first, time()).timestamp() if first and first.year > 1970 else 0.0
        count, messages, tokens = store.query(_TRIMS, (RecordKind.TRIM, since, of))[0]
        return totals_to_json(sums) | {
            "trims": {"count": count, "messages": int(messages), "estimated_tokens": int(tokens)}
        }

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


_TRIMS = """
SELECT count(*), total(json_extract(readable, '$.messages')), total(json_extract(readable, '$.tokens')) FROM
(SELECT CASE WHEN json_valid(data) THEN data END AS readable FROM records
WHERE kind = ? AND at >= ? AND ? IN ('', session)) WHERE json_extract(readable, '$.messages') > 0
"""  # a record of 0 messages restored everything


def _print(
    report: UsageReport, session: SessionInfo | None, store: SessionStore, today: date, days: int | None
) -> None:
    """Print what `/usage` shows."""
    from tui.views.usage_table import DAYS, usage_lines

    if not report.all_time.calls:
        write(NOTHING_YET)
        return
    width = max(40, min(112, shutil.get_terminal_size((100, 24)).columns))
    if session is not None:
        write(table([(f"session {session.id}  {session.title}"[:width],)]) + "\n")
    trims = TrimLog.from_json(store.state(TRIM_LOG))
    for line in usage_lines(report, width, by_day(report.groups, days or DAYS, today), trims):
        write("".join(text for text, _ in line).rstrip())

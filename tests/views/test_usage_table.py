"""What `/usage` says of rolling context."""

from __future__ import annotations

from dataclasses import replace

from tui.chat.usage_report import UsageReport, totals
from tui.context.reduction.records import KEPT_TRIMS, TrimLog
from tui.views.usage_table import usage_lines

NONE = totals("", ())
REPORT = UsageReport(None, NONE, NONE, None, NONE, (), (), ())


def shown(trims: TrimLog, width: int = 100) -> list[str]:
    return [text for line in usage_lines(REPORT, width, trims=trims) for text, _ in line]


def test_requests_trims_and_what_the_last_of_them_left_out() -> None:
    log = TrimLog()
    assert not any("rolling" in line or "left out" in line for line in shown(log))
    for _ in range(KEPT_TRIMS + 20):
        log = log.add(50.0, 1_000).add(70.0)
    log = log.add(60.0, 5_000)
    lines = shown(log)
    assert "rolling context: 121 of 241 requests trimmed, 60 % of the budget used on average" in lines
    assert "the last 100 left out ~104,000 tokens, ~5,000 the latest" in lines
    assert all(len(line) <= 30 for line in shown(log, 30))


def test_what_was_paid_before_a_fork_is_said_as_far_as_it_is_known() -> None:
    report = replace(REPORT, before=replace(NONE, calls=2, priced=0.42, unpriced=True))
    [line] = [text for line in usage_lines(report, 200) for text, _ in line if "fork" in text]
    assert "0 out, $0.42+?) count" in line

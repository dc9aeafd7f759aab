"""The ledger of requests."""

from __future__ import annotations

from dataclasses import replace

from tests.chat.test_usage_report import CALL
from tui.views.ledger import HEADS, ledger_entry, ledger_rows


def test_a_line_has_what_was_predicted_reported_and_why_it_is_not_believed() -> None:
    doubted = replace(
        CALL, verdict="doubted", verdict_reason="100 tokens again, although about 900 were added", window=64_000
    )
    heads, line = ledger_rows([doubted])
    assert heads == HEADS
    assert line[1:] == (
        *("1,010", "1,100", "1,000", "+1.0 %", "64,000", "doubted", "anthropic/x"),
        "100 tokens again, although about 900 were added",
    )
    entry = ledger_entry(doubted)
    assert (entry["predicted"], entry["reported"], entry["verdict"]) == (1_010, 1_000, "doubted")


def test_what_was_not_reported_is_unknown() -> None:
    _, line = ledger_rows([replace(CALL, usage_source="estimated", status="failed", verdict=None)])
    assert line[3:7] == ("?", "", "?", "failed")

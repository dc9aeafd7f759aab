"""The ledger: what was predicted of each request, what was reported, and what that is worth. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tui.chat.store.calls import CallRow
from tui.text.numbers import signed_percent, timestamp, tokens_exact

HEADS = ("when", "predicted", "at most", "reported", "off", "window", "report", "model", "")
NUMBERS = frozenset({1, 2, 3, 4, 5})
"""Columns that are numbers."""


def ledger_rows(rows: Sequence[CallRow]) -> list[tuple[str, ...]]:
    """A table with its heads, a line a request."""
    return [HEADS, *map(_cells, rows)]


def _cells(row: CallRow) -> tuple[str, ...]:
    reported = row.input_total if row.usage_source == "provider" else None
    off = "" if not reported or row.predicted is None else signed_percent(100 * (row.predicted - reported) / reported)
    state = row.verdict or ("" if row.status == "success" else row.status)
    sizes = (tokens_exact(row.predicted), tokens_exact(row.upper_bound), tokens_exact(reported))
    model = f"{row.provider}/{row.model}"
    return (timestamp(row.at), *sizes, off, tokens_exact(row.window), state, model, row.verdict_reason or "")


def ledger_entry(row: CallRow) -> dict[str, object]:
    """A line for scripts; unknown is None."""
    reported = row.input_total if row.usage_source == "provider" else None
    return {
        "at": row.at,
        "kind": row.kind,
        "status": row.status,
        "provider": row.provider,
        "model": row.model,
        "predicted": row.predicted,
        "upper_bound": row.upper_bound,
        "source": row.source,
        "reported": reported,
        "output": row.output_total,
        "verdict": row.verdict,
        "reason": row.verdict_reason,
        "window": row.window,
        "cost": row.cost,
        "error": row.error,
    }

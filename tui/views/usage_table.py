"""The content of `/usage` and `chatctx usage`: tokens and cost by time, by model and by provider."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, TypeAlias

from tui.chat.store.calls import Totals
from tui.chat.usage_report import UsageReport, by_day, usage_report
from tui.context.reduction.records import TRIM_LOG, TrimLog
from tui.text.cells import clip, eighths, pad, plain
from tui.text.numbers import day_text, percent, plural, spent, tokens_exact, tokens_short

if TYPE_CHECKING:
    from textual.content import Content

    from tui.chat.turn.session import ChatSession
    from tui.chat.workspace import Workspace

DAYS = 30
"""Days in the chart."""

Line: TypeAlias = Sequence[tuple[str, str]]
"""Texts with their styles. `chatctx usage` prints them without Textual, which takes longer to load than to add up."""

_WIDE = 76
"""Cells from which the table of models has all its columns."""

_NAME = 24
"""Cells for what a figure of the totals is; less if the columns would be narrower than `_CELL`."""

_CELL = 14


@dataclass(frozen=True, slots=True)
class UsageView:
    """The usage of the conversation, of today and of all conversations."""

    workspace: Workspace
    session: ChatSession
    title = "Usage"

    async def lines(self, width: int) -> Sequence[Content]:
        """Everything but the chart, read and summed now."""
        return (await self.drawing(chart=False))(width)

    async def drawing(self, *, chart: bool = True) -> Callable[[int], Sequence[Content]]:
        """Reads and sums the figures; returns a function that draws them at a width."""
        import asyncio

        from textual.content import Content

        log, today = self.workspace.services.calls, date.today()

        def read() -> tuple[UsageReport, Sequence[tuple[date, Totals]], TrimLog]:
            report = usage_report(log, self.session.id, today)
            days = by_day(report.groups, DAYS, today) if chart else ()
            return report, days, TrimLog.from_json(self.workspace.store.state(TRIM_LOG))

        report, days, trims = await asyncio.to_thread(read)
        return lambda width: [Content.assemble(*line) for line in usage_lines(report, width, days, trims)]


def usage_lines(
    report: UsageReport, width: int, days: Sequence[tuple[date, Totals]] = (), trims: TrimLog | None = None
) -> list[Line]:
    """Totals, then the effect of rolling context, then models, providers and a chart of `days`."""
    lines = _totals(report.columns, width)
    before, trims = report.before, trims or TrimLog()
    if before.calls:
        cost = spent(before.cost)
        read, written = (tokens_short(size, before.source) for size in (before.input, before.output))
        sizes = f"{read} in, {written} out"
        sizes += f", {cost}" if before.cost.total or before.cost.priced else ""
        calls = plural(before.calls, "call")
        text = f"This is a fork: {calls} before it ({sizes}) count in the conversation it came from, not here."
        lines += [(), *_sentence(text, width)]
    if terms := sorted({term for column in report.columns for term in column.terms}):
        text = f"The cost of calls under other terms ({plain(', '.join(terms))}) is the list price."
        lines += [(), *_sentence(text, width)]
    if trims.requests:
        average = trims.average_utilisation
        use = f", {percent(average)} of the budget used on average" if average is not None else ""
        text = f"rolling context: {trims.trimmed:,} of {trims.requests:,} requests trimmed{use}"
        lines += [(), *_sentence(text, width)]
    if trims.latest:
        last = f"the last {len(trims.latest)}" if len(trims.latest) > 1 else "the last one"
        tokens, latest = (tokens_exact(size, "estimated") for size in (sum(trims.latest), trims.latest[-1]))
        text = f"{last} left out {tokens} tokens, {latest} the latest"
        lines += _sentence(text, width)
    if report.models:
        lines += [(), *_table("by model", report.models, width)]
    if len(report.providers) > 1:
        lines += [(), *_table("by provider", report.providers, width)]
    if any(sums.tokens for _, sums in days):
        lines += [(), *_days(days, width)]
    return lines


def _sentence(text: str, width: int) -> list[Line]:
    return [[(line, "$text-muted")] for line in textwrap.wrap(text, width)]


def _totals(columns: Sequence[Totals], width: int) -> list[Line]:
    wide = width >= _NAME + _CELL * len(columns)
    label = _NAME if wide else 11
    cell = min(18, (width - label) // max(1, len(columns)))
    figure: Callable[..., str] = tokens_exact if wide else tokens_short

    def reasoning(sums: Totals) -> str:
        some = sums.reasoning_unknown and sums.reasoning is not None
        return f"{figure(sums.reasoning)}{'+?' if some else ''}"

    rows: list[tuple[str, Callable[[Totals], str]]] = [
        ("calls", lambda t: f"{t.calls:,}"),
        ("input, fresh" if wide else "fresh", lambda t: figure(t.fresh, t.source)),
        ("  written to the cache" if wide else "written", lambda t: figure(t.written)),
        ("input, from the cache" if wide else "cached", lambda t: figure(t.cached)),
        ("output", lambda t: figure(t.output, t.source)),
        ("  of it reasoning" if wide else "reasoning", reasoning),
        ("all tokens" if wide else "all", lambda t: figure(t.tokens, t.source)),
        ("cost", lambda t: spent(t.cost)),
        ("estimates off by" if wide else "off by", lambda t: percent(t.estimates.median, digits=1)),
        ("  95 % of them within" if wide else "95 % in", lambda t: percent(t.estimates.p95, digits=1)),
        ("first estimates off by" if wide else "first off", lambda t: percent(t.first_estimates.median, digits=1)),
        ("  95 % of them within" if wide else "95 % in", lambda t: percent(t.first_estimates.p95, digits=1)),
        ("compactions" if wide else "compacted", lambda t: f"{t.compactions:,}"),
        ("failed", lambda t: f"{t.failed:,}"),
    ]
    head = [(" " * label, ""), *((f"{clip(t.name, cell - 1):>{cell}}", "bold $foreground") for t in columns)]
    lines: list[Line] = [head]
    for name, value in rows:
        lines.append([(pad(name, label), "$text-muted"), *((f"{value(t):>{cell}}", "$foreground") for t in columns)])
    return lines


def _table(title: str, rows: Sequence[Totals], width: int) -> list[Line]:
    wide = width >= _WIDE
    names = ("calls", "fresh", "cached", "output", "cost", "off by") if wide else ("input", "output", "cost")
    cell = 9
    label = max(8, width - cell * len(names))
    heads = "".join(f"{name:>{cell}}" for name in names)
    lines: list[Line] = [[(pad(title, label), "bold $foreground"), (heads, "$text-muted")]]
    for row in rows:
        output, cost = tokens_short(row.output, row.source), spent(row.cost)
        if wide:
            values = [f"{row.calls:,}", tokens_short(row.fresh, row.source), tokens_short(row.cached), output, cost]
            values.append(percent(row.estimates.median, digits=1))
        else:
            values = [tokens_short(row.input, row.source), output, cost]
        figures = "".join(f"{value:>{cell}}" for value in values)
        lines.append([(pad(plain(row.name), label), "$primary"), (figures, "$foreground")])
    return lines


def _days(days: Sequence[tuple[date, Totals]], width: int) -> list[Line]:
    """Three lines of bars, one column per day (two cells if possible), and the maximum."""
    step = 3 if width >= 3 * len(days) else 2 if width >= 2 * len(days) else 1
    shown = days[-(width // step) :]
    most = max((sums for _, sums in shown), key=lambda sums: sums.tokens or 0)
    height, top = 3, most.tokens or 1
    heading = f"   most in a day {tokens_short(most.tokens, most.source)}"
    lines: list[Line] = [[(f"last {len(shown)} days", "bold $foreground"), (heading, "$text-muted")]]
    for level in reversed(range(height)):
        bars = ""
        for _, sums in shown:
            filled = (sums.tokens or 0) * height / top - level
            bar = eighths(max(1 / 8, filled)) if filled > 0 else " "
            bars += bar * max(1, step - 1) + " " * (step > 1)
        lines.append([(bars.rstrip(), "$primary")])
    first, last = shown[0][0], shown[-1][0]
    begin = day_text(first)
    end = day_text(last).rjust(max(8, step * len(shown) - len(begin) - 1))
    lines.append([(f"{begin} {end}", "$text-muted")])
    return lines

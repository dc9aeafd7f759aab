"""The lists of `/context`: requests with their predictions and reports, a chart of the growth, messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from textual.content import Content

from tui.chat.store.calls import accuracy_of
from tui.context.estimate.ledger import row_of
from tui.messages import Attachment, Message, Reasoning, Refusal, Text, ToolCall, ToolResult
from tui.text.cells import clip, eighths, pad, plain
from tui.text.numbers import (
    Cost,
    age,
    clock_time,
    duration,
    percent,
    plural,
    signed_percent,
    spent,
    timestamp,
    tokens_exact,
    tokens_short,
)
from tui.views.context_picture import CATEGORIES

if TYPE_CHECKING:
    from tui.chat.store.calls import CallRow
    from tui.context.counting.digests import CountSource
    from tui.context.usage.usage import ContextUsage

LEDGER = 100
"""Requests that are listed, the newest."""

CALL_HEADS = ("when", "predicted", "at most", "reported", "off", "window", "left out", "answered by", "verdict")
NUMBERS = frozenset({1, 2, 3, 4, 5, 6})
"""Columns that are numbers."""

_WIDE, _MEDIUM = 88, 50  # cells from which a line has the time and the margin; the prediction

STOPPED = "stopped by you: estimated"
_VERDICTS = {
    "confirmed": "believed",
    "believed": "believed, not confirmed yet",
    "hidden": "believed",
    "doubted": "not believed",
    "cut": "not believed",
}


def reported_tokens(row: CallRow) -> int | None:
    """The input that the provider reported; None if it reported nothing."""
    return row.input_total if row.usage_source == "provider" else None


def error_percent(row: CallRow) -> float | None:
    """How far the prediction was off, in percent of a report that is believed; None if there is no such report."""
    reported = reported_tokens(row)
    if not reported or row.predicted is None or row.kind != "chat" or not row.believed:
        return None
    return 100 * (row.predicted - reported) / reported


def verdict_text(row: CallRow) -> str:
    """Whether the report is believed and why, or why there is none."""
    if row.status == "pending":
        return "not answered yet"
    if row.kind != "chat":
        return f"{row.kind}: its own call"
    verdict = _VERDICTS.get(row.verdict or "", "")
    if verdict:
        return f"{verdict}: {row.verdict_reason}" if row.verdict_reason else verdict
    if row.error:
        return STOPPED if row.error == "cancelled" else f"failed: {row.error}"
    return "believed" if reported_tokens(row) else "nothing reported: estimated"


def ledger_rows(rows: Sequence[CallRow]) -> list[tuple[str, ...]]:
    """A table with its heads, a line a request."""
    lines: list[tuple[str, ...]] = [CALL_HEADS]
    for row in rows:
        sizes = (_predicted(row), tokens_exact(row.upper_bound), tokens_exact(reported_tokens(row)))
        left_out = tokens_exact(row.left_out, "estimated") if row.left_out else ""
        window, model = tokens_exact(row.window), f"{row.provider}/{row.answered_by or row.model}"
        lines.append((timestamp(row.at), *sizes, _off(row), window, left_out, model, verdict_text(row)))
    return lines


def _cost(row: CallRow) -> str:
    return spent(Cost(row.cost, row.cost or 0.0, row.usage_source == "estimated"))


def _predicted(row: CallRow) -> str:
    return tokens_exact(row.predicted, row.source or "estimated")


def _off(row: CallRow) -> str:
    error = error_percent(row)
    if error is None:
        return ""
    return signed_percent(error) if error < 1_000 else "> 999 %"


def request_line(number: int, row: CallRow, width: int, now: float) -> Content:
    """One request in `width` cells. Narrow, the time and the margin go first, then the prediction."""
    bounded = row.upper_bound is not None and row.predicted is not None and row.upper_bound > row.predicted
    margin = f"±{(row.upper_bound or 0) - (row.predicted or 0):,}" if bounded else ""
    when = clock_time(row.at, now)
    when = when if len(when) <= 5 else " ".join(when.split()[:2])  # the day without the time
    predicted, reported = _predicted(row), tokens_exact(reported_tokens(row))
    figures = _figures(width, f"{number}", when, predicted, margin, reported, _off(row) or "·")
    extra = [f"{tokens_exact(row.left_out, 'estimated')} left out"] if row.left_out else []
    extra += [f"{row.input_cached:,} from the cache"] if row.input_cached else []
    extra += [_cost(row)] if row.cost else []
    verdict, columns = verdict_text(row), max(1, width - len(figures))
    while extra and cell_len(plain(" · ".join([verdict, *extra]))) > columns:
        extra.pop()  # a whole figure, not half of one
    how = plain(" · ".join([verdict, *extra]))
    failed = row.error and row.error != "cancelled"
    style = "$text-warning" if not row.believed else "$text-error" if failed else "$text-muted"
    return Content.assemble((figures, "$foreground"), (clip(how, columns), style))


def request_head(width: int) -> Content:
    """The column titles of `request_line`."""
    heads = _figures(width, "#", "when", "predicted", "", "reported", "off")
    return Content.styled(clip(f"{heads}verdict", width), "$text-muted")


def _figures(width: int, number: str, when: str, predicted: str, margin: str, reported: str, off: str) -> str:
    text = f"{number:>4}"
    if width >= _WIDE:
        text += f"  {when:>6}"
    if width >= _MEDIUM:
        text += f"{predicted:>11}"
    if width >= _WIDE:
        text += f" {margin:<8}"
    return f"{text}{reported:>11}{off:>9}   "


def request_details(row: CallRow) -> str:
    """The details of a request, one a line."""
    model, seconds = f"{row.provider}/{row.model}", "?"
    if row.answered_by not in (None, row.model):
        model += f" by {row.answered_by}"
    if row.seconds is not None:
        seconds = duration(row.seconds, tenths=True)
        if row.first_token_seconds is not None:
            seconds += f", {duration(row.first_token_seconds, tenths=True)} to the first token"
    output = tokens_exact(row.output_total, row.usage_source or "estimated")
    cache = f"{tokens_exact(row.input_cached)} from the cache, {tokens_exact(row.input_cache_write)} written to it"
    facts = (
        ("when", timestamp(row.at)),
        ("model", model),
        ("window", f"{tokens_exact(row.window)} tokens"),
        ("predicted", f"{_predicted(row)} tokens, at most {tokens_exact(row.upper_bound)}"),
        ("", f"{tokens_exact(row.known)} of them measured, {tokens_exact(row.estimated, 'estimated')} estimated"),
        ("reported", f"{tokens_exact(reported_tokens(row))} tokens of input"),
        ("", cache),
        ("output", f"{output} tokens, {tokens_exact(row.reasoning)} of them reasoning"),
        ("off by", _off(row) or "?"),
        ("verdict", verdict_text(row)),
        ("left out", f"{tokens_exact(row.left_out, 'estimated') if row.left_out else 0} tokens, by rolling context"),
        ("cost", _cost(row)),
        ("time", seconds),
        ("ended", row.finish_reason or row.error or row.status),
    )
    return "\n".join(f"{name:<12}{value}" for name, value in facts)


def accuracy_line(rows: Sequence[CallRow]) -> str:
    """The errors of predictions, of first calls and of others, and how many reports are not believed."""
    following, first = list[float](), list[float]()
    for row in rows:
        if (error := error_percent(row)) is not None:
            (first if row.source == "estimated" else following).append(abs(error))
    parts = [
        f"{name} calls: 95 % within {percent(accuracy_of(errors).p95, digits=1)}"
        for name, errors in (("following", following), ("first", first))
        if errors
    ]
    doubted = sum(not row.believed for row in rows)
    parts += [f"{doubted:,} of {plural(len(rows), 'request')} not believed"] if doubted else []
    return "   ·   ".join(parts)


def ledger_entry(row: CallRow) -> dict[str, object]:
    """A line for scripts; unknown is None."""
    return {
        "at": row.at,
        "kind": row.kind,
        "status": row.status,
        "provider": row.provider,
        "model": row.model,
        "answered_by": row.answered_by,
        "predicted": row.predicted,
        "upper_bound": row.upper_bound,
        "source": row.source,
        "reported": reported_tokens(row),
        "cached": row.input_cached,
        "cache_written": row.input_cache_write,
        "output": row.output_total,
        "usage_source": row.usage_source,
        "reasoning": row.reasoning,
        "error_percent": error_percent(row),
        "verdict": row.verdict,
        "reason": row.verdict_reason,
        "window": row.window,
        "left_out": row.left_out,
        "cost": row.cost,
        "error": row.error,
    }


Event = Literal["", "compacted", "trimmed"]

DROP = 0.9
"""If a call's input is below this share of the previous one, something was left out, even without a record."""


@dataclass(frozen=True, slots=True)
class Call:
    """An answered call: tokens in the window after it, and what happened just before."""

    tokens: int
    event: Event = ""
    source: str = "exact"  # of the tokens


def calls_of(messages: Iterable[Message], requests: Iterable[CallRow] = ()) -> list[Call]:
    """The calls of a conversation, from the usage of its answers, oldest first.

    Where the report of one of `requests` is not believed, its prediction counts.
    """
    predicted = {row.message: row.predicted for row in requests if row.predicted is not None and not row.believed}
    calls: list[Call] = []
    last_input, summary = 0, False
    for message in messages:
        if message.kind == "summary":
            summary = True
            continue
        usage = message.usage
        if message.role != "assistant" or usage is None or not usage.input_total:
            continue
        read = predicted.get(message.id, usage.input_total)
        event: Event = "compacted" if summary else "trimmed" if read < DROP * last_input else ""
        source = "estimated" if message.id in predicted else usage.source
        calls.append(Call(read + (usage.output_total or 0), event, source))
        last_input, summary = read, False
    return calls


def chart_lines(calls: Sequence[Call], width: int, height: int, *, window: int | None) -> list[Content]:
    """The chart in `height` lines of at most `width` cells: scale, area, and a line with the events."""
    if not calls:
        return [Content.styled("No call has been answered yet.", "$text-muted")]
    axis = 7
    available = max(4, width - axis - 1)
    columns = _columns(calls, available)
    top = _top(max(call.tokens for call in columns), window)
    rows = max(2, height - 1)
    middle = rows - 1 - rows // 2  # the row at half the height
    lines = []
    for row in range(rows):
        level = rows - row - 1
        label = {0: tokens_short(top, strip=True), middle: tokens_short(top // 2, strip=True), rows - 1: "0"}.get(
            row, ""
        )
        cells = "".join(eighths(call.tokens * rows / top - level) for call in columns)
        lines.append(
            Content.assemble(
                (f"{label:>{axis - 1}} ", "$text-muted"), ("│" if row else "┤", "$border"), (cells, "$primary")
            )
        )
    marks = "".join({"compacted": "▼", "trimmed": "▽"}.get(call.event, "─") for call in columns)
    lines.append(
        Content.assemble(" " * axis, ("└", "$border"), (marks, "$text-accent" if marks.strip("─") else "$border"))
    )
    return lines


def legend(calls: Sequence[Call], window: int | None) -> str:
    """The legend of the chart, in one line."""
    count = len(calls)
    parts = [plural(count, "call")]
    if calls:
        now, most = calls[-1], max(calls, key=lambda call: call.tokens)
        parts.append(f"now {tokens_short(now.tokens, now.source)}, most {tokens_short(most.tokens, most.source)}")
    if window:
        parts.append(f"window {tokens_short(window, strip=True)}")
    for event, sign in (("compacted", "▼"), ("trimmed", "▽")):
        if any(call.event == event for call in calls):
            parts.append(f"{sign} {event}")
    return "   ".join(parts)


def _top(largest: int, window: int | None) -> int:
    """The upper end of the scale: the window if the conversation fills a fair part of it, else a round figure."""
    if window and largest >= 0.3 * window:
        return max(window, largest)
    size = int(10 ** max(0, len(str(max(1, largest))) - 1))
    return next(step * size for step in (1, 2, 3, 4, 5, 6, 8, 10) if step * size >= largest)


def _columns(calls: Sequence[Call], available: int) -> list[Call]:
    """One call a column, wider steps where there are few, the largest of several where there are many."""
    if len(calls) <= available:
        step = max(1, min(6, available // len(calls)))
        return [Call(call.tokens, call.event if first == 0 else "") for call in calls for first in range(step)]
    result = []
    for column in range(available):
        bucket = calls[column * len(calls) // available : (column + 1) * len(calls) // available]
        event: Event = next((call.event for call in bucket if call.event), "")
        result.append(Call(max(call.tokens for call in bucket), event))
    return result


# -- messages ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MessageLine:
    """A message in the list. `tokens` is None if it is not part of the next request (`left_out` says why)."""

    key: str  # the message's id
    category: str  # for glyph and colour
    preview: str
    created_at: float
    tokens: int | None
    source: CountSource
    left_out: str = ""
    pinned: bool = False


_NOT_SENT = {
    "set aside": "It was set aside when you went back and is not sent",
    "compacted": "A summary stands for it",
    "trimmed": "Rolling context leaves it out already",
}


def why_not(left_out: str, *, pin: bool) -> str:
    """Why a message can't be pinned, or left out; "" if it can. `left_out` says why it is not sent."""
    reason = _NOT_SENT.get(left_out)
    return "" if reason is None else f"{reason}: nothing to {'pin' if pin else 'leave out'}."


def message_lines(
    messages: Iterable[Message],
    usage: ContextUsage | None,
    *,
    not_sent: Mapping[str, str],
    pinned: AbstractSet[str] = frozenset(),
    by_size: bool = False,
) -> list[MessageLine]:
    """All messages in order, or the most expensive first."""
    counts = dict(usage.messages) if usage is not None else {}
    lines = []
    for message in messages:
        count = counts.get(message.id)
        left_out = not_sent.get(message.id, "")
        tokens = count.tokens if count is not None and left_out in ("", "trimmed") else None
        source = count.source if count is not None else "estimated"
        category, start, is_pinned = row_of(message, "text"), preview(message), message.id in pinned
        lines.append(MessageLine(message.id, category, start, message.created_at, tokens, source, left_out, is_pinned))
    if by_size:
        lines.sort(key=lambda line: -(line.tokens or 0))
    return lines


def preview(message: Message, length: int = 200) -> str:
    """The beginning of a message on one line."""
    for part in message.parts:
        match part:
            case Text(text) | Refusal(text) if text.strip():
                return _start(text, length)
            case ToolResult(name=name, text=text):
                return _start(f"{name}: {text}", length)
            case ToolCall(name=name, arguments=arguments):
                return _start(f"calls {name} {arguments}", length)
            case Attachment(name=name):
                return _start(name, length)
            case Reasoning(text=text) if len(message.parts) == 1:
                return _start(f"thought: {text}", length)
            case _:
                continue
    return f"({message.status})" if message.status != "complete" else "(empty)"


def _start(text: str, length: int) -> str:
    return plain(" ".join(text[: 4 * length].split()))[:length]


def message_line(line: MessageLine, width: int, now: float) -> Content:
    """One line: glyph, text, tokens, source of the figure, age. If narrow, without the last two."""
    look = CATEGORIES[line.category]
    wide = width >= 72
    tokens = "" if line.tokens is None else tokens_exact(line.tokens, line.source)
    state = line.left_out or (line.source if line.tokens is not None else "")
    if state == "excluded":
        state = "left out"
    available = width - 2 - 2 - 10 - ((12 + 6) if wide else 0)
    muted = "$text-muted" if line.left_out else "$foreground"
    return Content.assemble(
        (look.glyph + " ", f"$context-{look.colour}"),
        ("◆ " if line.pinned else "  ", "$text-accent"),
        (pad(plain(line.preview), max(1, available)), muted),
        (f"{tokens:>10}", muted),
        (f"  {clip(state, 10):<10}{age(line.created_at, now):>6}" if wide else "", "$text-muted"),
    )


def listed(lines: Sequence[MessageLine]) -> str:
    """A summary of the list, for its title."""
    out = sum(1 for line in lines if line.left_out)
    return f"{len(lines):,}" + (f", {out:,} not sent any more" if out else "")

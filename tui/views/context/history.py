"""The history view of `/context`: the growth of the conversation, call by call, as a stepped area. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from textual.content import Content

from tui.messages import Message
from tui.text.numbers import plural, tokens_short

Event = Literal["", "compacted", "trimmed"]

DROP = 0.9
"""If a call's input is below this share of the previous one, something was left out, even without a record."""

NOTHING: Mapping[str, int] = MappingProxyType({})

_EIGHTHS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Call:
    """An answered call: tokens in the window after it, and what happened just before."""

    tokens: int
    event: Event = ""
    measured: bool = True


def calls_of(messages: Iterable[Message], predicted: Mapping[str, int] = NOTHING) -> list[Call]:
    """The calls of a conversation, from the usage of its answers, oldest first.

    `predicted` are the tokens of input to show, by the answer's id, where what was reported is not believed.
    """
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
        measured = usage.source == "provider" and message.id not in predicted
        calls.append(Call(read + (usage.output_total or 0), event, measured))
        last_input, summary = read, False
    return calls


def chart_lines(calls: Sequence[Call], width: int, height: int, *, window: int | None) -> list[Content]:
    """The chart in `height` lines of at most `width` cells: scale, area, and a line with the events."""
    if not calls:
        return [Content.styled("No call has been answered yet.", "$text-muted")]
    axis = 7
    room = max(4, width - axis - 1)
    columns = _columns(calls, room)
    top = _top(max(call.tokens for call in columns), window)
    rows = max(2, height - 1)
    middle = rows - 1 - rows // 2  # the row at half the height
    lines = []
    for row in range(rows):
        level = rows - row - 1
        label = {0: tokens_short(top, strip=True), middle: tokens_short(top // 2, strip=True), rows - 1: "0"}.get(
            row, ""
        )
        cells = "".join(_cell(call.tokens * rows / top - level) for call in columns)
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
    """What the chart shows, in one line."""
    count = len(calls)
    parts = [plural(count, "call")]
    if calls:
        parts.append(f"now {tokens_short(calls[-1].tokens)}, most {tokens_short(max(call.tokens for call in calls))}")
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


def _columns(calls: Sequence[Call], room: int) -> list[Call]:
    """One call a column, wider steps where there are few, the largest of several where there are many."""
    if len(calls) <= room:
        step = max(1, min(6, room // len(calls)))
        return [
            Call(call.tokens, call.event if first == 0 else "", call.measured)
            for call in calls
            for first in range(step)
        ]
    result = []
    for column in range(room):
        bucket = calls[column * len(calls) // room : (column + 1) * len(calls) // room]
        event: Event = next((call.event for call in bucket if call.event), "")
        result.append(Call(max(call.tokens for call in bucket), event))
    return result


def _cell(filled: float) -> str:
    return _EIGHTHS[min(8, max(0, round(filled * 8)))]

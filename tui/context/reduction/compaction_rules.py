"""The rules of compaction: whether to compact, how long a summary may be, whether a result is accepted."""

from __future__ import annotations

from typing import Literal, TypeAlias

from tui.context.reduction.checkpoints import CompactionRecord, SummaryEdit
from tui.context.usage.limits import Budget
from tui.context.usage.usage import ContextUsage
from tui.text.names import PREAMBLE_ROWS
from tui.text.numbers import change_percent, plural

Trigger: TypeAlias = Literal["auto", "manual", "overflow"]

FIXED_ROWS = frozenset({*PREAMBLE_ROWS, "hidden", "unattributed"})  # rows that no compaction makes smaller
LEAST_SAVING = 0.05  # of the request: a compaction has to save at least this share
SUMMARY_SHARE = 8  # a summary may take one part in so many of the input budget ...
SUMMARY_MOST = 8_000  # ... but no more tokens than this
SUMMARY_LEAST = 160  # ... and no fewer: less can't hold a goal and a next step


class CompactionRefusedError(Exception):
    """A compaction is not possible or useful. `str()` tells a person why and what to do. Nothing was changed."""


def should_compact(
    usage: ContextUsage,
    *,
    trigger: Trigger = "auto",
    enabled: bool = True,
    measurement: str = "",
    compacted_at: str | None = None,
    tools_running: bool = False,
    last_message_tokens: int = 0,
) -> bool:
    """Whether to compact; every path to a compaction asks this.

    `measurement` names the latest completed call, `compacted_at` the one at which the last compaction was tried: at
    most one each. `enabled` is the person's setting; if off, an overflow does not compact either. Raises
    `CompactionRefusedError` if system prompt, tools, memory and the last message (`last_message_tokens`) leave no
    space, so that compacting again could not help, and for a manual compaction while tools run.
    """
    if trigger == "manual":
        if tools_running:
            raise CompactionRefusedError("A tool is still running. /compact again when it is done.")
    elif tools_running or not enabled or compacted_at == measurement:
        return False
    if trigger == "auto" and not _over_threshold(usage):
        return False
    check_floor(usage, last_message_tokens)
    return True


def _over_threshold(usage: ContextUsage) -> bool:
    """Whether the estimate is over the threshold, or so close to the limit that its error may exceed it."""
    threshold = usage.budget.compaction_at
    limit = usage.budget.max_input
    may_not_fit = limit is not None and usage.upper_bound > limit
    return threshold is not None and (usage.total >= threshold or may_not_fit)


def check_floor(usage: ContextUsage, last_message_tokens: int) -> None:
    """Raise `CompactionRefusedError` if the part that can't be compacted reaches the threshold already."""
    limit = usage.budget.compaction_at or usage.budget.max_input
    fixed = fixed_tokens(usage)
    if limit is None or fixed + last_message_tokens < limit:
        return
    raise CompactionRefusedError(
        f"This window cannot hold the conversation: system prompt, tools and memory take {fixed:,} tokens and the last "
        f"message {last_message_tokens:,}, of {limit:,}. Compacting would not help: use fewer tools or a shorter "
        "system prompt, or a model with a larger window (/model)."
    )


def fixed_tokens(usage: ContextUsage) -> int:
    """Tokens of the next request that a compaction can't reduce."""
    return sum(row.tokens for row in usage.rows if row.key in FIXED_ROWS)


def summary_allowance(budget: Budget) -> int:
    """The most tokens of a summary: small compared with the window, and no more than the model can answer."""
    if budget.max_input is None:
        return SUMMARY_MOST // 4
    most = min(SUMMARY_MOST, budget.reserved_output or SUMMARY_MOST)
    return max(SUMMARY_LEAST, min(most, budget.max_input // SUMMARY_SHARE))


def accept_compaction(before: int, after: int, threshold: int | None) -> None:
    """Raise `CompactionRefusedError` unless `after` is at least 5 % below `before`, and below `threshold` (tokens)."""
    if after > before * (1 - LEAST_SAVING):
        raise CompactionRefusedError(
            f"Compacting would hardly help: {before:,} -> {after:,} tokens. The conversation is left as it was."
        )
    if threshold is not None and after >= threshold:
        raise CompactionRefusedError(
            f"Compacting is not enough: {before:,} -> {after:,} tokens, and {threshold:,} is the limit. "
            "The conversation is left as it was."
        )


def accept_edit(before: int, after: int, threshold: int | None) -> None:
    """Raise `CompactionRefusedError` if an edited summary makes the next request exceed `threshold`."""
    if threshold is not None and after >= threshold and after > before:
        raise CompactionRefusedError(
            f"This summary is too long: the next request would take {after:,} tokens, and {threshold:,} is the limit."
        )


def compaction_report(record: CompactionRecord | SummaryEdit) -> str:
    """The line shown after a compaction, or after an edit of its summary."""
    match record:
        case SummaryEdit(before=before, after=after):
            return f"Edited the summary{_change(before, after)}"
        case CompactionRecord(summary="", cleared=cleared, before=before, after=after):
            return compacted_line(len(cleared), before, after, summarised=False)
        case CompactionRecord(messages=messages, before=before, after=after):
            return compacted_line(messages, before, after, summarised=True)


def compacted_line(count: int, before: int, after: int, *, summarised: bool) -> str:
    """What a compaction did to `count` messages, or to `count` tool results if nothing was summarised. In tokens."""
    subject = f"Compacted {plural(count, 'message')}" if summarised else f"Cleared {plural(count, 'old tool result')}"
    return f"{subject}{_change(before, after)}"


def _change(before: int, after: int) -> str:
    change = change_percent(before, after)
    return f": {before:,} -> {after:,} tokens{f' ({change})' if change else ''}"

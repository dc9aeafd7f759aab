"""Compaction: when to compact, what it would clear or summarise, whether the result is accepted. No model is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tui.context.reduction.groups import MIN_REPLACED, PRESERVED_TURNS, Group, group_messages, starts_turn
from tui.context.reduction.records import CompactionRecord, SummaryEdit, clear_results
from tui.context.usage.limits import Budget, Percent, Tokens
from tui.context.usage.usage import ContextUsage
from tui.errors import ExpectedError
from tui.messages import Message, ToolCall, ToolResult
from tui.text.labels import PREAMBLE_ROWS
from tui.text.numbers import change_percent, plural, source_of, tokens_exact

Trigger: TypeAlias = Literal["auto", "manual", "overflow"]

FIXED_ROWS = frozenset({*PREAMBLE_ROWS, "hidden", "unattributed"})  # rows that no compaction makes smaller
MIN_SAVING = 0.05  # of the request: a compaction has to save at least this share
TARGET = 0.5  # share of the input budget that is left: far below the threshold, so that the next one is many turns away
MIN_ARGUMENTS = 2_000  # tokens: shorter arguments of a tool call are never cleared
SUMMARY_SHARE = 8  # a summary may take one part in so many of the input budget, half as many of the threshold ...
MAX_SUMMARY = 8_000  # ... but no more tokens than this
SUMMARY_LEAST = 160  # ... and no fewer: less can't hold a goal and a next step


class CompactionRefusedError(ExpectedError):
    """A compaction is not possible or useful. `str()` tells a person why and what to do. Nothing was changed."""


def _check_floor(usage: ContextUsage, last_message_tokens: int) -> None:
    """Raise `CompactionRefusedError` if the part that can't be compacted reaches the threshold already."""
    limit = usage.budget.compaction_at or usage.budget.max_input
    fixed = fixed_tokens(usage)
    if limit is None or fixed + last_message_tokens < limit:
        return
    source = source_of(row.source for row in usage.rows if row.key in FIXED_ROWS)
    raise CompactionRefusedError(
        f"This window cannot hold the conversation: system prompt, tools and memory take {tokens_exact(fixed, source)} "
        f"tokens and the last message ~{last_message_tokens:,}, of {limit:,}. Compacting would not help: use fewer "
        "tools or a shorter system prompt, or a model with a larger window (/model)."
    )


def fixed_tokens(usage: ContextUsage) -> int:
    """Tokens of the next request that a compaction can't reduce."""
    return sum(row.tokens for row in usage.rows if row.key in FIXED_ROWS)


def summary_allowance(budget: Budget) -> int:
    """The most tokens of a summary: small compared with the window, and no more than the model can answer."""
    if budget.max_input is None:
        return MAX_SUMMARY // 4
    most = min(MAX_SUMMARY, budget.reserved_output or MAX_SUMMARY, budget.max_input // SUMMARY_SHARE)
    if budget.compaction_at is not None:  # may be early
        most = min(most, 2 * budget.compaction_at // SUMMARY_SHARE)
    return max(SUMMARY_LEAST, most)


def accept_compaction(before: int, after: int, threshold: int | None, source: str = "estimated") -> None:
    """Raise `CompactionRefusedError` unless `after` is at least 5 % below `before`, and below `threshold` (tokens).

    `source` is that of `before`.
    """
    if after > before * (1 - MIN_SAVING):
        raise CompactionRefusedError(
            f"Compacting would hardly help: {size_change(before, after, source)}. The conversation is left as it was."
        )
    if threshold is not None and after >= threshold:
        raise CompactionRefusedError(
            f"Compacting is not enough: {size_change(before, after, source)}, and {threshold:,} is the limit. "
            "The conversation is left as it was."
        )


def accept_edit(before: int, after: int, threshold: int | None) -> None:
    """Raise `CompactionRefusedError` if an edited summary makes the next request exceed `threshold`."""
    if threshold is not None and after >= threshold and after > before:
        raise CompactionRefusedError(
            f"This summary is too long: the next request would take ~{after:,} tokens, and {threshold:,} is the limit."
        )


def compaction_report(record: CompactionRecord | SummaryEdit) -> str:
    """The line shown after a compaction, or after an edit of its summary."""
    match record:
        case SummaryEdit():
            subject = "Edited the summary"
        case CompactionRecord(summary="", cleared=cleared):
            subject = f"Cleared {plural(len(cleared), 'old tool result')}"
        case CompactionRecord(messages=messages):
            subject = f"Compacted {plural(messages, 'message')}"
    if not record.before:  # made by another program
        return subject
    return f"{subject}: {size_change(record.before, record.after, record.source)}"


def size_change(before: int, after: int, source: str) -> str:
    """`121,400 -> ~18,300 tokens (-85 %)`; `source` is that of `before`, since what comes after is always estimated."""
    if before == after:
        return f"~{after:,} tokens, as before"
    return f"{tokens_exact(before, source)} -> ~{after:,} tokens ({change_percent(before, after)})"


# -- planning ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """Clear old tool results (`cleared`: message id, call id), and replace active messages by a summary of `source`.

    Without a source clearing is enough. The messages from `first` to `last` (ids) are replaced, of which those of
    `kept` are sent verbatim. `expected` is the size of the next request in tokens if the summary uses all of
    `allowance`.
    """

    cleared: tuple[tuple[str, str], ...]
    expected: int
    first: str = ""
    last: str = ""
    source: tuple[Message, ...] = ()
    kept: tuple[str, ...] = ()
    allowance: int = 0


def plan_compaction(
    messages: Sequence[Message],
    count: Callable[[Message], int],
    *,
    usage: ContextUsage,
    pinned: frozenset[str] = frozenset(),
    history: Sequence[Message] = (),
    sent: Sequence[Message] = (),
    summarise: bool = False,
    target: Percent | Tokens | None = None,
    preserve_recent_turns: int | None = None,
) -> CompactionPlan:
    """What to clear or to summarise so that the next request shrinks to the target.

    `messages` are the active ones before trimming, `count` gives the tokens of a message, `usage` is the measured next
    request, `sent` its messages if they differ. The source of the summary is taken from `history` where possible, so
    that results cleared earlier are included in full. `summarise` asks for a summary even if clearing would be enough
    (`/compact` by hand). The last `preserve_recent_turns` turns stay verbatim, fewer if they are too large by
    themselves; a running turn is cut between its steps and keeps the message that began it. `target` is the person's;
    without it `TARGET` of the input budget, or half of what the threshold leaves beside system prompt and tools if that
    is more or the threshold early. Raises `CompactionRefusedError` if there is nothing to replace, or if no cut gets
    below the threshold.
    """
    _check_floor(usage, sum(map(count, (sent or messages)[-1:])))
    fixed, ceiling = fixed_tokens(usage), usage.budget.compaction_at or usage.budget.max_input or usage.total
    goal = _goal(usage, fixed, ceiling, target)
    counted = sum(map(count, sent or messages))
    scale = (usage.total - fixed) / counted if counted else 1.0  # from counted tokens to tokens of the total

    groups = group_messages(messages)
    cleared = tuple(_old_results(messages, groups, count, pinned))
    after_clearing = clear_results(messages, cleared)
    sizes = list(map(count, after_clearing))
    if cleared and not summarise:
        changed = [(m, size) for m, s, size in zip(messages, after_clearing, sizes, strict=True) if s is not m]
        expected = usage.total - int(scale * sum(count(message) - size for message, size in changed))
        if expected <= min(goal, int(usage.total * (1 - MIN_SAVING))):
            return CompactionPlan(cleared, expected)

    turns = PRESERVED_TURNS if preserve_recent_turns is None else preserve_recent_turns
    allowance = summary_allowance(usage.budget)
    cuts = [
        (fixed + int(tokens * scale) + allowance, position)
        for position, tokens in _possible_cuts(messages, groups, sizes, pinned, turns)
    ]
    if not cuts:
        raise CompactionRefusedError("There is nothing older to summarise: the conversation is one step so far.")
    expected, position = next((cut for cut in cuts if cut[0] <= goal), min(cuts))
    if expected >= ceiling:
        raise CompactionRefusedError(
            f"Compacting would leave about {expected:,} tokens, and {ceiling:,} is the limit: what must stay is too "
            "large. Unpin messages or leave some out (/context), or choose a model with a larger window (/model)."
        )
    verbatim = _verbatim_ids(messages, groups, position, pinned)
    cleared_later = {m.id for m in messages[position:]}.union(verbatim)
    stored = {m.id: m for m in history}
    return CompactionPlan(
        first=messages[0].id,
        last=messages[position - 1].id,
        source=tuple(stored.get(m.id, m) for m in messages[:position]),
        kept=verbatim,
        cleared=tuple(pair for pair in cleared if pair[0] in cleared_later),
        allowance=allowance,
        expected=expected,
    )


def _goal(usage: ContextUsage, fixed: int, ceiling: int, target: Percent | Tokens | None) -> int:
    """The tokens to compact to, below `ceiling`: the person's `target`, or the default (see `plan_compaction`)."""
    limit = usage.budget.max_input
    if isinstance(target, Tokens) or (target is not None and limit is not None):
        return min(target.of(limit or 0), ceiling - 1)
    share, half_free = int((limit or usage.total) * TARGET), fixed + (ceiling - fixed) // 2
    return half_free if share >= ceiling else max(share, half_free)


def _old_results(
    messages: Sequence[Message], groups: Sequence[Group], count: Callable[[Message], int], pinned: frozenset[str]
) -> Iterator[tuple[str, str]]:
    """Old tool results that are not errors, and old call arguments as long as a file: message id, call id."""
    for message in (messages[i] for group in groups if group.is_old for i in group.indices):
        if message.id in pinned:
            continue
        for part in message.parts:
            match part:
                case ToolResult(call_id=call, is_error=False):
                    least = MIN_REPLACED
                case ToolCall(id=call):
                    least = MIN_ARGUMENTS
                case _:
                    continue
            if count(message if len(message.parts) == 1 else Message(message.role, (part,))) > least:
                yield message.id, call


def _possible_cuts(
    messages: Sequence[Message],
    groups: Sequence[Group],
    sizes: Sequence[int],
    pinned: frozenset[str],
    preserve_recent_turns: int,
) -> Iterator[tuple[int, int]]:
    """Indices up to which messages could be replaced, and the tokens that would stay, by `sizes`.

    The one that keeps most comes first: cuts between recent turns, then between steps of the last turn. None separates
    a call from its results, and each replaces something that is neither verbatim nor a summary already.
    """
    last_turn = max((g.turn for g in groups), default=-1)
    rest, verbatim = sum(sizes), 0  # tokens from this group on, and of pinned groups before it
    replaced = 0  # messages before it
    end = turn_start = -1  # the last message of all groups before it, and the one that began its turn if not pinned
    for group in groups:
        position, starts = group.indices[0], starts_turn(messages[group.indices[0]])
        keeps_start = turn_start >= 0 and not starts
        recent = group.turn > last_turn - preserve_recent_turns if starts else group.turn == last_turn
        if recent and end < position and replaced > keeps_start:
            yield position, rest + verbatim + (sizes[turn_start] if keeps_start else 0)
        tokens = sum(sizes[i] for i in group.indices)
        rest -= tokens
        is_pinned = any(messages[i].id in pinned for i in group.indices)
        if is_pinned:
            verbatim += tokens
        else:
            replaced += sum(messages[i].kind != "summary" for i in group.indices)
        if starts:
            turn_start = -1 if is_pinned else position
        end = max(end, group.indices[-1])


def _verbatim_ids(
    messages: Sequence[Message], groups: Sequence[Group], position: int, pinned: frozenset[str]
) -> tuple[str, ...]:
    """Ids before `position` that stay verbatim: pinned messages with their group, and the one that began a turn which
    goes on after it."""
    running = {group.turn for group in groups if group.indices[0] >= position}
    before = [group for group in groups if group.indices[0] < position]
    return tuple(
        messages[i].id
        for group in before
        if (group.turn in running and starts_turn(messages[group.indices[0]]))
        or any(messages[i].id in pinned for i in group.indices)
        for i in group.indices
    )

"""Compaction: when to compact, what it would clear or summarise, whether the result is accepted. No model is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tui.context.reduction.checkpoints import CompactionRecord, SummaryEdit, clear_results
from tui.context.reduction.groups import Group, group_messages, starts_turn
from tui.context.usage.limits import Budget
from tui.context.usage.usage import ContextUsage
from tui.messages import Message, ToolCall, ToolResult
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
    tried: bool = False,
    last_message_tokens: int = 0,
) -> bool:
    """Whether to compact; every path to a compaction asks this.

    `tried`: one was tried without being asked for since the latest completed call; it is at most one for each.
    `enabled` is the person's setting; if off, an overflow does not compact either. Raises `CompactionRefusedError` if
    system prompt, tools, memory and the last message (`last_message_tokens`) leave no space, so that compacting again
    could not help.
    """
    if trigger != "manual" and (tried or not enabled):
        return False
    if trigger == "auto" and not _over_threshold(usage):
        return False
    _check_floor(usage, last_message_tokens)
    return True


def _over_threshold(usage: ContextUsage) -> bool:
    """Whether the estimate is over the threshold, or so close to the limit that its error may exceed it."""
    threshold = usage.budget.compaction_at
    limit = usage.budget.max_input
    may_not_fit = limit is not None and usage.upper_bound > limit
    return threshold is not None and (usage.total >= threshold or may_not_fit)


def _check_floor(usage: ContextUsage, last_message_tokens: int) -> None:
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


# -- planning ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CompactionConfig:
    """The size that a compaction leaves. `target_fraction` is of the input budget, ages in steps, sizes in tokens.

    The target lies well below the threshold, so that the next compaction is many turns away. `target` is set by the
    person; None: the fraction, or half of what the threshold leaves beside system prompt and tools if that is more.
    """

    target_fraction: float = 0.5
    target: int | None = None
    preserve_recent_turns: int = 4
    tool_result_age_steps: int = 5
    min_clear_tokens: int = 100
    min_clear_arguments: int = 2_000


DEFAULT_COMPACTION = CompactionConfig()


@dataclass(frozen=True, slots=True)
class ClearResults:
    """Clearing these old tool results (message id, call id) is enough. `expected` in tokens."""

    cleared: tuple[tuple[str, str], ...]
    expected: int


@dataclass(frozen=True, slots=True)
class Summarise:
    """Replace the active messages from `first` to `last` (ids) by a summary of `source`.

    `kept` messages of the range are sent verbatim, `cleared` are old tool results to clear after it. `expected` is the
    size of the next request in tokens if the summary uses all of `allowance`.
    """

    first: str
    last: str
    source: tuple[Message, ...]
    kept: tuple[str, ...]
    cleared: tuple[tuple[str, str], ...]
    allowance: int
    expected: int


CompactionPlan: TypeAlias = ClearResults | Summarise


def plan_compaction(
    messages: Sequence[Message],
    count: Callable[[Message], int],
    *,
    usage: ContextUsage,
    pinned: frozenset[str] = frozenset(),
    history: Sequence[Message] = (),
    sent: Sequence[Message] = (),
    summarise: bool = False,
    config: CompactionConfig = DEFAULT_COMPACTION,
) -> CompactionPlan:
    """What to clear or to summarise so that the next request shrinks to the target.

    `messages` are the active ones before trimming, `count` gives the tokens of a message, `usage` is the measured next
    request, `sent` its messages if they differ. The source of the summary is taken from `history` where possible, so
    that results cleared earlier are included in full. `summarise` asks for a summary even if clearing would be enough
    (`/compact` by hand). The last `preserve_recent_turns` turns stay verbatim, fewer if they are too large by
    themselves; a running turn is cut between its steps and keeps the message that began it. Raises
    `CompactionRefusedError` if there is nothing to replace, or if no cut gets below the threshold.
    """
    plan = _Plan(messages, sent or messages, count, usage, pinned, config)
    cleared, freed = plan.old_results()
    if cleared and not summarise:
        expected = usage.total - freed
        if expected <= min(plan.target, int(usage.total * (1 - LEAST_SAVING))):
            return ClearResults(cleared, expected)
    cut = plan.cut(cleared)
    covered, tail = messages[:cut], {m.id for m in messages[cut:]}
    verbatim = plan.verbatim_ids(cut)
    stored = {m.id: m for m in history}
    return Summarise(
        first=covered[0].id,
        last=covered[-1].id,
        source=tuple(stored.get(m.id, m) for m in covered),
        kept=verbatim,
        cleared=tuple(pair for pair in cleared if pair[0] in tail or pair[0] in verbatim),
        allowance=plan.allowance,
        expected=plan.expected(cut, cleared),
    )


class _Plan:
    """Sizes of one plan: what each possible cut would leave, in tokens of the next request."""

    def __init__(
        self,
        messages: Sequence[Message],
        sent: Sequence[Message],
        count: Callable[[Message], int],
        usage: ContextUsage,
        pinned: frozenset[str],
        config: CompactionConfig,
    ) -> None:
        self.messages = messages
        self.groups = group_messages(messages)
        self.allowance = summary_allowance(usage.budget)
        self._count = count
        self._pinned = pinned
        self._config = config
        self._fixed = fixed_tokens(usage)
        counted = sum(map(count, sent))
        self._scale = (
            (usage.total - self._fixed) / counted if counted else 1.0
        )  # from counted tokens to tokens of the total
        limit = usage.budget.max_input
        self._ceiling = usage.budget.compaction_at or limit or usage.total
        half_free = self._fixed + (self._ceiling - self._fixed) // 2
        usual = max(int((limit or usage.total) * config.target_fraction), half_free)
        self.target = usual if config.target is None else config.target
        self._last_turn = max((g.turn for g in self.groups), default=-1)
        self._steps = max((g.step or 0 for g in self.groups), default=0)

    def old_results(self) -> tuple[tuple[tuple[str, str], ...], int]:
        """The tool results that are old enough to clear, and the tokens freed by that."""
        pairs: list[tuple[str, str]] = []
        freed = 0
        for group in self.groups:
            if group.step is None or self._steps - group.step <= self._config.tool_result_age_steps:
                continue
            for message in (self.messages[i] for i in group.indices):
                clearable = [] if message.id in self._pinned else self._clearable(message)
                if clearable:
                    pairs += clearable
                    freed += self._count(message) - self._count(clear_results(message, clearable))
        return tuple(pairs), int(freed * self._scale)

    def _clearable(self, message: Message) -> list[tuple[str, str]]:
        """Results of `message` that are not errors, and call arguments as long as a file."""
        clearable = []
        for part in message.parts:
            match part:
                case ToolResult(call_id=call, is_error=False):
                    least = self._config.min_clear_tokens
                case ToolCall(id=call):
                    least = self._config.min_clear_arguments
                case _:
                    continue
            alone = message if len(message.parts) == 1 else Message(message.role, (part,))
            if self._count(alone) > least:
                clearable.append((message.id, call))
        return clearable

    def cut(self, cleared: Sequence[tuple[str, str]]) -> int:
        """The index up to which messages are replaced: the earliest one that reaches the target.

        If there is none, the one that leaves least. Raises `CompactionRefusedError`.
        """
        possible = [p for p in self._positions() if self._worth(p)]
        if not possible:
            raise CompactionRefusedError("There is nothing older to summarise: the conversation is one step so far.")
        costs = [(self.expected(p, cleared), p) for p in possible]
        for expected, position in costs:
            if expected <= self.target:
                return position
        expected, position = min(costs)
        if expected >= self._ceiling:
            raise CompactionRefusedError(
                f"Compacting would leave about {expected:,} tokens, and {self._ceiling:,} is the limit: what must stay "
                "is too large. Unpin or exclude messages (/context), or choose a model with a larger window (/model)."
            )
        return position

    def _positions(self) -> list[int]:
        """Possible cuts, the one that keeps most first: between recent turns, then between steps of the last turn."""
        turns = range(self._last_turn - self._config.preserve_recent_turns + 1, self._last_turn + 1)
        firsts = [min(i for g in self.groups if g.turn == t for i in g.indices) for t in turns if t >= 0]
        running = [g.indices[0] for g in self.groups if g.turn == self._last_turn and not self._starts(g)]
        return [p for p in firsts + running if p > 0 and not self._splits(p)]

    def _starts(self, group: Group) -> bool:
        return starts_turn(self.messages[group.indices[0]])

    def _splits(self, position: int) -> bool:
        return any(g.indices[0] < position <= g.indices[-1] for g in self.groups)

    def _worth(self, position: int) -> bool:
        """Whether the cut would replace anything that is neither kept nor a summary already."""
        verbatim = set(self.verbatim_ids(position))
        return any(m.kind != "summary" and m.id not in verbatim for m in self.messages[:position])

    def verbatim_ids(self, position: int) -> tuple[str, ...]:
        """Ids before `position` that stay verbatim: pinned messages with their group, and the first one of the running
        turn."""
        ids: list[str] = []
        for group in self.groups:
            if group.indices[0] >= position:
                break
            members = [self.messages[i] for i in group.indices]
            pinned = any(m.id in self._pinned for m in members)
            if pinned or (self._starts(group) and self._runs_past(group, position)):
                ids += [m.id for m in members]
        return tuple(ids)

    def _runs_past(self, group: Group, position: int) -> bool:
        return any(g.turn == group.turn and g.indices[0] >= position for g in self.groups)

    def expected(self, position: int, cleared: Sequence[tuple[str, str]]) -> int:
        """Tokens of the next request after a cut at `position`, with a summary of full length."""
        verbatim = set(self.verbatim_ids(position))
        stays = [m for i, m in enumerate(self.messages) if i >= position or m.id in verbatim]
        size = sum(self._count(clear_results(m, cleared)) for m in stays)
        return self._fixed + int(size * self._scale) + self.allowance

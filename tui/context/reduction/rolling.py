"""Rolling context: leave out old content so that the next request fits; refuse requests that can never fit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

from tui.context.reduction.groups import Group, group_messages, open_group, starts_turn, without_reasoning
from tui.context.reduction.trimming import NO_TRIM, Cut, TrimState, apply_trim, group_dropped, shorten
from tui.context.usage.limits import Budget
from tui.messages import Message, Part, Request, ToolCall, ToolResult
from tui.text.numbers import plural

LEAST_RESULT = 50  # tokens that the last resort leaves of a running step's result, so that it stays recognisable
SURELY = 0.5  # no count is so wrong that less than this share of the omitted tokens would return
ROUNDS = 8  # trim, look again: each round frees something or is the last


@dataclass(frozen=True, slots=True)
class TruncationConfig:
    """How rolling context trims. Ages in steps, sizes in tokens, fractions of the input budget.

    `preserve_recent_turns` stay whole as long as the request fits; otherwise the number falls to `least_turns` before
    anything is refused. `untrim_fraction`: everything is restored once all of it fits within that.
    """

    tool_result_age_steps: int = 5
    min_tokens: int = 100
    old_result_cap_tokens: int = 2_000
    preserve_recent_turns: int = 4
    target_fraction: float = 0.6
    untrim_fraction: float = 0.8
    least_turns: int = 1


DEFAULT_TRUNCATION = TruncationConfig()


class ContextOverflowError(Exception):
    """The next request does not fit and nothing more may be left out. `str()` is for a person. Sizes in tokens.

    `untried`: compaction and rolling context are both switched off.
    """

    def __init__(self, current_tokens: int, max_tokens: int, *, untried: bool = False) -> None:
        subject, ways = "The next request", "/compact or /rolling-context on, then /retry;"
        if not untried:
            subject = "Even shortened as much as possible, the next request"
            ways = "Shorten the message or the system prompt, unpin or exclude messages (/context),"
        super().__init__(
            f"{subject} needs about {current_tokens:,} tokens, but only {max_tokens:,} fit. "
            f"Nothing was sent and nothing was lost. {ways} or choose a model with a larger window (/model)."
        )
        self.current_tokens = current_tokens
        self.max_tokens = max_tokens


@dataclass(frozen=True, slots=True)
class TrimResult:
    """The effect of one trim. `passes` are the numbers of those that acted (1 to 3; 4 is the last resort)."""

    state: TrimState
    freed_tokens: int
    passes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PromptResult:
    """The request to send, the state to keep, and its size compared with the budget, in tokens.

    `trimmed`: this request left out more than the one before; `untrimmed`: everything was restored. `before_tokens` is
    the size before this trim, an upper bound like `tokens`; `freed_tokens` is the estimate of what the trim left out;
    `message_ids` are the messages it shortened or dropped.
    """

    request: Request
    state: TrimState
    tokens: int
    max_tokens: int | None
    before_tokens: int
    passes: tuple[int, ...] = ()
    message_ids: tuple[str, ...] = ()
    untrimmed: bool = False
    freed_tokens: int = 0

    @property
    def trimmed(self) -> bool:
        """Whether more is left out than before."""
        return bool(self.passes)


def enforce_context_limit(
    messages: Sequence[Message],
    *,
    count: Callable[[Message], int],
    current_tokens: int,
    budget: Budget,
    state: TrimState,
    pinned: frozenset[str] = frozenset(),
    config: TruncationConfig = DEFAULT_TRUNCATION,
    prefix_bound: bool = False,
) -> TrimResult:
    """Extend `state` until `messages` shrink to `target_fraction` of the budget, if `current_tokens` exceed it.

    `messages` are the projected ones before trimming, `count` the tokens of one, `current_tokens` the whole request
    under `state`. Drops old results, all results, then old turns, each only if the previous pass was not enough; recent
    turns, pinned messages and the running step are touched (pass 4) only if the request would not fit otherwise. Does
    nothing if the window is unknown.
    """
    limit = budget.max_input
    if limit is None or current_tokens <= limit:
        return TrimResult(state, 0, ())
    goal = current_tokens - int(limit * config.target_fraction)
    work = _Trimmer(messages, count, state, pinned, config, goal=goal, prefix_bound=prefix_bound)
    over = current_tokens - limit
    passes: list[int] = []
    for number, act in (
        (1, work.old_results),
        (2, work.all_results),
        (3, lambda: work.old_turns(config.preserve_recent_turns)),
        (4, lambda: work.last_resort(limit)),
    ):
        before = work.freed
        if (number > 1 and before >= goal) or (number == 4 and before >= over):
            break
        act()
        if work.freed > before:
            passes.append(number)
    if work.freed < over:
        before = work.freed
        work.shrink_running_step(over - before)
        if work.freed > before and 4 not in passes:
            passes.append(4)
    return TrimResult(work.state(), work.freed, tuple(passes))


def build_final_prompt(
    request: Request,
    estimate: Callable[[Request], int],
    *,
    count: Callable[[Message], int],
    budget: Budget,
    state: TrimState = NO_TRIM,
    pinned: frozenset[str] = frozenset(),
    config: TruncationConfig = DEFAULT_TRUNCATION,
    prefix_bound: bool = False,
    bound: Callable[[Request], int] | None = None,
    trimmed: Request | None = None,
) -> PromptResult:
    """The request to send under rolling context.

    `request` is the projection without trims, `trimmed` that under `state` if the caller has it, `estimate` the size of
    a whole request in tokens, `bound` its upper bound where known. Trims and measures again until the bound fits; if
    that is not possible the request is sent as long as the estimate fits. Raises `ContextOverflowError` if it does not;
    the caller then keeps its state, since nothing was sent.
    """
    cautious = bound or estimate

    def under(trims: TrimState) -> Request:
        messages = apply_trim(request.messages, trims, prefix_bound=prefix_bound)
        return request if messages == request.messages else replace(request, messages=messages)

    limit = budget.max_input
    sent = trimmed = trimmed or under(state)
    tokens = cautious(sent)
    if limit is None:
        return PromptResult(sent, state, tokens, None, tokens)
    if tokens <= limit:
        back = _untrim(request, cautious, limit, state, tokens, config.untrim_fraction)
        if back is state:
            return PromptResult(sent, state, tokens, limit, tokens)
        sent = under(back)
        tokens = cautious(sent)
        return PromptResult(sent, back, tokens, limit, tokens, untrimmed=True)

    before, grown, passes = tokens, state, set[int]()
    target = int(limit * config.target_fraction)
    for _ in range(ROUNDS):
        result = enforce_context_limit(
            request.messages,
            count=count,
            current_tokens=max(tokens, limit + 1),
            budget=budget,
            state=grown,
            pinned=pinned,
            config=config,
            prefix_bound=prefix_bound,
        )
        if result.state is grown:
            break
        grown = result.state
        passes.update(result.passes)
        sent = under(grown)
        tokens = cautious(sent)
        if tokens <= (target + limit) // 2:
            break
    if tokens > limit and (tokens := estimate(sent)) > limit:
        raise ContextOverflowError(tokens, limit)
    changed = _changed(request.messages, state, grown, prefix_bound=prefix_bound)
    freed = max(0, estimate(trimmed) - estimate(sent)) if passes else 0
    return PromptResult(sent, grown, tokens, limit, before, tuple(sorted(passes)), changed, freed_tokens=freed)


def _untrim(
    request: Request, estimate: Callable[[Request], int], limit: int, state: TrimState, tokens: int, fraction: float
) -> TrimState:
    """An empty state if all of `request` fits again within `fraction` of `limit`, else `state` itself.

    `request` is the projection without trims, `tokens` its size under `state`. `fraction` lies well below 1, so that
    content does not come and go with the noise of the estimate.
    """
    if state.empty:
        return state
    most = int(limit * fraction)
    left_out = sum(state.left_out.get(message.id, 0) for message in request.messages)
    if tokens + left_out * SURELY > most or estimate(request) > most:
        return state
    return TrimState(frontier=max((m.id for m in request.messages), default=""))


def _changed(
    messages: Sequence[Message], before: TrimState, after: TrimState, *, prefix_bound: bool
) -> tuple[str, ...]:
    cuts = set(after.cuts) - set(before.cuts)
    fresh = {cut.message_id for cut in cuts} | (after.dropped - before.dropped)
    if prefix_bound:
        fresh |= {m.id for m in messages if before.frontier < m.id <= after.frontier and without_reasoning(m) is not m}
    return tuple(m.id for m in messages if m.id in fresh)


# -- one trim ----------------------------------------------------------------------------------------------------------


class _Trimmer:
    """One trim in progress. Counts what it frees until `goal` tokens are free."""

    def __init__(
        self,
        messages: Sequence[Message],
        count: Callable[[Message], int],
        state: TrimState,
        pinned: frozenset[str],
        config: TruncationConfig,
        *,
        goal: int,
        prefix_bound: bool,
    ) -> None:
        self.messages = messages
        self.groups = group_messages(messages)
        self.goal = goal
        self.freed = 0
        self._count = count
        self._config = config
        self._pinned = pinned
        self._before = state
        self._cuts = {(cut.message_id, cut.call_id): cut for cut in state.cuts}
        self._dropped_groups = {g for g in self.groups if group_dropped(messages, g, state)}
        self._open = open_group(messages, self.groups)
        self._last_turn = max((g.turn for g in self.groups), default=-1)
        self._steps = max((g.step or 0 for g in self.groups), default=0)
        self._costs: dict[int, int] = {}
        self._prefix_bound = prefix_bound
        self._unbound = False  # whether reasoning is dropped

    # -- the passes -----------------------------------------------------------------------------------------------

    def old_results(self) -> None:
        """Pass 1: results older than `tool_result_age_steps` become a marker; errors, and arguments, are capped.

        Where reasoning is bound to the prefix any trim drops all of it, so it is dropped first.
        """
        self._free_bound_reasoning()
        for group, index, part in self._tool_parts(lambda g: self._age(g) > self._config.tool_result_age_steps):
            match part:
                case ToolResult(is_error=False):
                    self._mark(group, index, part, self._config.min_tokens)
                case _:
                    self._cap(group, index, part, self._config.old_result_cap_tokens)

    def all_results(self) -> None:
        """Pass 2: every result except those the model has to answer next, oldest first."""
        for group, index, part in self._tool_parts(lambda g: g != self._open):
            if self.freed >= self.goal:
                return
            if isinstance(part, ToolResult):
                self._mark(group, index, part, self._config.min_tokens)

    def old_turns(self, preserve: int) -> None:
        """Pass 3: whole turns, oldest first, but never the last `preserve`, nothing pinned, no summary.

        A turn with a pinned message keeps the message that began it: a conversation never starts with an answer.
        """
        pinned_turns = {g.turn for g in self.groups if self._is_pinned(g)}
        for turn, groups in groupby(self.groups, key=attrgetter("turn")):
            if self.freed >= self.goal or turn > self._last_turn - preserve:
                return
            for group in groups:
                if turn in pinned_turns and starts_turn(self.messages[group.indices[0]]):
                    continue
                self._drop(group)

    def last_resort(self, limit: int) -> None:
        """Pass 4, only if the request would not fit otherwise.

        Fewer recent turns, older steps of the running turn, the summary, and results of the running step cut to what
        the window can hold (`limit`, tokens of input).
        """
        if self._open is not None and self._cost_of(self._open) > limit // 2:
            self._cap_running(limit // 2)
        for preserve in range(self._config.preserve_recent_turns - 1, self._config.least_turns - 1, -1):
            self.old_turns(preserve)
        final = self.groups[-1] if self.groups else None
        for group in self.groups:
            if self.freed >= self.goal:
                return
            if group not in (self._open, final) and not starts_turn(self.messages[group.indices[0]]):
                self._drop(group, summaries=True)

    def shrink_running_step(self, excess: int) -> None:
        """Finally: cut the running step's results by `excess` tokens, down to a few lines each."""
        if self._open is not None:
            self._cap_running(self._cost_of(self._open) - excess)

    # -- the result ------------------------------------------------------------------------------------------

    def state(self) -> TrimState:
        """The extended state; the same object if nothing was left out."""
        dropped = self._before.dropped | {self.messages[i].id for g in self._dropped_groups for i in g.indices}
        cuts = tuple(self._cuts.values())
        if set(cuts) == set(self._before.cuts) and dropped == self._before.dropped and not self._unbound:
            return self._before
        touched = dropped | {cut.message_id for cut in cuts}
        sizes = {**self._before.left_out, **self._left_out()}
        left_out = {message: tokens for message, tokens in sizes.items() if message in touched}
        return TrimState(cuts, frozenset(dropped), max((m.id for m in self.messages), default=""), left_out)

    def _left_out(self) -> dict[str, int]:
        """By how many tokens each message became shorter, of those touched by this trim."""
        dropped = {
            i for g in self._dropped_groups for i in g.indices if self.messages[i].id not in self._before.dropped
        }
        cut = {cut.message_id for cut in set(self._cuts.values()) - set(self._before.cuts)}
        return {
            m.id: self._count(m) - (0 if i in dropped else self._cost(i))
            for i, m in enumerate(self.messages)
            if i in dropped or m.id in cut
        }

    def _free_bound_reasoning(self) -> None:
        if not self._prefix_bound:
            return
        for group in self.groups:
            if group not in self._dropped_groups:
                for index in group.indices:
                    message = self.messages[index]
                    if without_reasoning(message) is not message and message.id > self._before.frontier:
                        self.freed += self._count(self._shown(index, bare=False)) - self._cost(index)
                        self._unbound = True

    # -- the parts of a message -----------------------------------------------------------------------------------

    def _tool_parts(self, wanted: Callable[[Group], bool]) -> Iterator[tuple[Group, int, ToolCall | ToolResult]]:
        for group in self.groups:
            if group.step is None or group in self._dropped_groups or not wanted(group):
                continue
            for index in group.indices:
                if not self._protected(index):
                    for part in self.messages[index].parts:
                        if isinstance(part, ToolCall | ToolResult):
                            yield group, index, part

    def _mark(self, group: Group, index: int, part: ToolResult, least: int) -> None:
        key = (self.messages[index].id, part.call_id)
        earlier = self._cuts.get(key)
        if earlier is not None and not earlier.head:
            return
        tokens = self._part_tokens(index, part)
        if tokens > least:
            self._put(index, Cut(*key, self._marker(group, tokens)))

    def _cap(self, group: Group, index: int, part: ToolCall | ToolResult, cap: int) -> None:
        key = (self.messages[index].id, _call_of(part))
        tokens = self._part_tokens(index, part)
        if key in self._cuts or tokens <= cap:
            return
        marker = self._marker(group, tokens)
        if isinstance(part, ToolCall):
            self._put(index, Cut(*key, json.dumps({"truncated": marker}, ensure_ascii=False)))
            return
        cut = _head_and_tail(key, part.text, f"\n{marker}\n", cap / tokens)
        tokens_after = self._part_tokens(index, replace(part, text=cut.shorten(part.text)))
        if tokens_after > cap:  # the middle had fewer tokens than the ends
            cut = _head_and_tail(key, part.text, f"\n{marker}\n", 0.9 * cap / tokens * cap / tokens_after)
        self._put(index, cut)

    def _cap_running(self, limit: int) -> None:
        """Cut the running step's results and arguments to a total of `limit`; never below their present cuts."""
        group = self._open
        if group is None:
            return
        parts = [(i, p, self._part_tokens(i, self._shown_part(i, p))) for g, i, p in self._tool_parts(group.__eq__)]
        size = sum(tokens for _, _, tokens in parts)
        cap = _level([tokens for _, _, tokens in parts], limit - (self._cost_of(group) - size))
        for index, part, tokens in parts:
            if tokens > cap:
                self._uncut(index, (self.messages[index].id, _call_of(part)))
                self._cap(group, index, part, cap)

    def _shown_part(self, index: int, part: ToolCall | ToolResult) -> Part:
        at = self.messages[index].parts.index(part)
        return self._shown(index, bare=False).parts[at]

    def _marker(self, group: Group, tokens: int) -> str:
        age = self._age(group)
        return f"[content truncated - {plural(age, 'step')} ago, {tokens:,} tokens]"

    def _put(self, index: int, cut: Cut) -> None:
        before = self._cost(index)
        self._cuts[cut.message_id, cut.call_id] = cut
        self._costs.pop(index, None)
        self.freed += before - self._cost(index)

    def _uncut(self, index: int, key: tuple[str, str]) -> None:
        before = self._cost(index)
        if self._cuts.pop(key, None) is not None:
            self._costs.pop(index, None)
            self.freed -= self._cost(index) - before

    def _drop(self, group: Group, *, summaries: bool = False) -> None:
        if group in self._dropped_groups or any(self._protected(i, summaries=summaries) for i in group.indices):
            return
        self._dropped_groups.add(group)
        self.freed += self._cost_of(group)

    # -- small answers --------------------------------------------------------------------------------------------

    def _age(self, group: Group) -> int:
        return self._steps - (group.step or 0)

    def _is_pinned(self, group: Group) -> bool:
        return any(self.messages[i].id in self._pinned for i in group.indices)

    def _protected(self, index: int, *, summaries: bool = False) -> bool:
        message = self.messages[index]
        return not message.id or message.id in self._pinned or (message.kind == "summary" and not summaries)

    def _shown(self, index: int, *, bare: bool) -> Message:
        message = self.messages[index]
        message = without_reasoning(message) if bare else message
        calls = [_call_of(part) for part in message.parts if isinstance(part, ToolCall | ToolResult)]
        cuts = {call: self._cuts[message.id, call] for call in calls if (message.id, call) in self._cuts}
        return shorten(message, cuts) if cuts else message

    def _cost(self, index: int) -> int:
        if index not in self._costs:
            self._costs[index] = self._count(self._shown(index, bare=self._prefix_bound))
        return self._costs[index]

    def _cost_of(self, group: Group) -> int:
        return sum(self._cost(i) for i in group.indices)

    def _part_tokens(self, index: int, part: Part) -> int:
        message = self.messages[index]
        return self._count(message if message.parts == (part,) else replace(message, parts=(part,)))


def _call_of(part: ToolCall | ToolResult) -> str:
    return part.call_id if isinstance(part, ToolResult) else part.id


def _head_and_tail(key: tuple[str, str], text: str, marker: str, share: float) -> Cut:
    keep = max(0, int(len(text) * share) - len(marker))
    return Cut(*key, marker, head=keep - keep // 2, tail=keep // 2)


def _level(sizes: Sequence[int], total: int) -> int:
    """The cap under which `sizes` add up to `total` (the small ones stay whole), at least `LEAST_RESULT`."""
    rest, left = total, len(sizes)
    for size in sorted(sizes):
        if size * left > rest:
            return max(LEAST_RESULT, rest // left)
        rest -= size
        left -= 1
    return max(LEAST_RESULT, max(sizes, default=0))

"""Rolling context: leave out old content so that the next request fits; refuse requests that can never fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tui.context.reduction.groups import without_reasoning
from tui.context.reduction.passes import DEFAULT_TRUNCATION, Trimmer, TruncationConfig
from tui.context.reduction.trimming import NO_TRIM, TrimState, apply_trim
from tui.context.usage.limits import Budget
from tui.messages import Message, Request

SURELY = 0.5  # no count is so wrong that less than this share of the omitted tokens would return
ROUNDS = 8  # trim, look again: each round frees something or is the last


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
    dropped_messages: int
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
    dropped_messages: int = 0
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
        return TrimResult(state, 0, 0, ())
    goal = current_tokens - int(limit * config.target_fraction)
    work = Trimmer(messages, count, state, pinned, config, goal=goal, prefix_bound=prefix_bound)
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
    grown = work.state()
    return TrimResult(grown, work.freed, work.newly_dropped(), tuple(passes))


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
        back = untrim(request, cautious, budget=budget, state=state, tokens=tokens, config=config)
        if back is state:
            return PromptResult(sent, state, tokens, limit, tokens)
        sent = under(back)
        tokens = cautious(sent)
        return PromptResult(sent, back, tokens, limit, tokens, untrimmed=True)

    before, grown, dropped, passes = tokens, state, 0, set[int]()
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
        grown, dropped = result.state, dropped + result.dropped_messages
        passes.update(result.passes)
        sent = under(grown)
        tokens = cautious(sent)
        if tokens <= (target + limit) // 2:
            break
    if tokens > limit and (tokens := estimate(sent)) > limit:
        raise ContextOverflowError(tokens, limit)
    changed = _changed(request.messages, state, grown, prefix_bound=prefix_bound)
    freed = max(0, estimate(trimmed) - estimate(sent)) if passes else 0
    return PromptResult(sent, grown, tokens, limit, before, dropped, tuple(sorted(passes)), changed, freed_tokens=freed)


def untrim(
    request: Request,
    estimate: Callable[[Request], int],
    *,
    budget: Budget,
    state: TrimState,
    tokens: int,
    config: TruncationConfig = DEFAULT_TRUNCATION,
) -> TrimState:
    """An empty state if all of `request` fits again with a margin, else `state` itself.

    `request` is the projection without trims, `tokens` its size under `state`. `untrim_fraction` lies well below the
    budget, so that content does not come and go with the noise of the estimate.
    """
    if state.empty or budget.max_input is None:
        return state
    room = int(budget.max_input * config.untrim_fraction)
    left_out = sum(state.left_out.get(message.id, 0) for message in request.messages)
    if tokens + left_out * SURELY > room or estimate(request) > room:
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

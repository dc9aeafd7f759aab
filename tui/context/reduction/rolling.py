"""Rolling context: leave out old content so that the next request fits; refuse requests that can never fit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Literal, TypeAlias, get_args

from tui.context.reduction.groups import (
    MIN_REPLACED,
    PRESERVED_TURNS,
    Group,
    group_messages,
    level,
    open_group,
    starts_turn,
    without_reasoning,
)
from tui.context.reduction.records import (
    NO_TRIM,
    Cut,
    TrimState,
    apply_trim,
    group_dropped,
    shorten,
    shorten_part,
    truncation_marker,
)
from tui.context.usage.limits import Budget
from tui.errors import ExpectedError
from tui.messages import Message, Part, Request, ToolCall, ToolResult

TARGET = 0.6  # share of the input budget that a trim leaves
RESTORED_BELOW = 0.8  # of the budget: everything is sent again once all of it fits within this share
OLD_RESULT_CAP = 2_000  # tokens that stay of an old error, and of the arguments of an old call
MIN_RESULT = 50  # tokens that the last resort leaves of a running step's result, so that it stays recognisable
SURELY = 0.5  # no count is so wrong that less than this share of the omitted tokens would return
ROUNDS = 8  # trim, look again: each round frees something or is the last

Pass: TypeAlias = Literal["old results", "results", "oversized turns", "old turns", "last resort"]
"""What a trim leaves out, in this order (see `Trimmer.trim`)."""


class ContextOverflowError(ExpectedError):
    """The next request does not fit and nothing more may be left out. `str()` is for a person. Sizes in tokens.

    `untried`: compaction and rolling context are both switched off.
    """

    def __init__(self, current_tokens: int, max_tokens: int, *, untried: bool = False) -> None:
        subject, ways = "The next request", "/compact or /rolling-context on, then /retry;"
        if not untried:
            subject = "Even shortened as much as possible, the next request"
            ways = "Shorten the message or the system prompt, unpin messages or leave some out (/context),"
        super().__init__(
            f"{subject} needs about {current_tokens:,} tokens, but only {max_tokens:,} fit. "
            f"Nothing was sent and nothing was lost. {ways} or choose a model with a larger window (/model)."
        )
        self.current_tokens = current_tokens
        self.max_tokens = max_tokens


@dataclass(frozen=True, slots=True)
class PromptResult:
    """The request to send, the state to keep, and its size compared with the budget, in tokens.

    `passes` are those that left out more than before; `untrimmed`: everything was restored. `freed_tokens` is the
    estimate of what the trim left out; `message_ids` are the messages it shortened or dropped.
    """

    request: Request
    state: TrimState
    tokens: int
    max_tokens: int | None
    passes: tuple[Pass, ...] = ()
    message_ids: tuple[str, ...] = ()
    untrimmed: bool = False
    freed_tokens: int = 0

    @property
    def trimmed(self) -> bool:
        """Whether more is left out than before."""
        return bool(self.passes)


def build_final_prompt(
    request: Request,
    estimate: Callable[[Request], int],
    *,
    count: Callable[[Message], int],
    budget: Budget,
    state: TrimState = NO_TRIM,
    pinned: frozenset[str] = frozenset(),
    preserve_recent_turns: int | None = None,
    prefix_bound: bool = False,
    bound: Callable[[Request], int] | None = None,
    trimmed: Request | None = None,
) -> PromptResult:
    """The request to send under rolling context.

    `request` is the projection without trims, `trimmed` that under `state` if the caller has it; `count` gives the
    tokens of a message, `estimate` those of a whole request, `bound` its upper bound where known. Trims and measures
    again until the bound fits; if that is not possible the request is sent as long as the estimate fits. Raises
    `ContextOverflowError` if it does not; the caller then keeps its state, since nothing was sent. Does nothing if the
    window is unknown.
    """
    cautious = bound or estimate

    def under(trims: TrimState) -> Request:
        messages = apply_trim(request.messages, trims, prefix_bound=prefix_bound)
        return request if messages == request.messages else replace(request, messages=messages)

    limit = budget.max_input
    if (needed := with_last_turn(request.messages, state)) is not state:
        state, trimmed = needed, None
    sent = trimmed = trimmed or under(state)
    tokens = cautious(sent)
    if limit is None:
        return PromptResult(sent, state, tokens, None)
    if tokens <= limit:
        if state.empty or not _all_fits(request, cautious, int(limit * RESTORED_BELOW), state, tokens):
            return PromptResult(sent, state, tokens, limit)
        restored = TrimState(frontier=_newest(request.messages))
        sent = under(restored)
        tokens = cautious(sent)
        return PromptResult(sent, restored, tokens, limit, untrimmed=True)

    trimmer = Trimmer(
        request.messages,
        count,
        state,
        pinned=pinned,
        preserve_recent_turns=preserve_recent_turns,
        prefix_bound=prefix_bound,
    )
    halfway = (int(limit * TARGET) + limit) // 2
    passes: set[Pass] = set()
    for _ in range(ROUNDS):
        acted = trimmer.trim(tokens, limit)
        if not acted:
            break
        passes |= acted
        state = trimmer.state()
        sent = under(state)
        tokens = cautious(sent)
        if tokens <= halfway and "oversized turns" not in acted:
            break
    if tokens > limit and (tokens := estimate(sent)) > limit:
        raise ContextOverflowError(tokens, limit)
    left = {message.id: message for message in sent.messages}
    changed = tuple(m.id for m in trimmed.messages if m.id and left.get(m.id) != m)
    freed = max(0, estimate(trimmed) - estimate(sent)) if passes else 0
    in_order = tuple(filter(passes.__contains__, get_args(Pass)))
    return PromptResult(sent, state, tokens, limit, in_order, changed, freed_tokens=freed)


def with_last_turn(messages: Sequence[Message], state: TrimState) -> TrimState:
    """`state` without the last turn, if that was dropped when later ones followed, which are left out by hand now."""
    start = next((i for i in reversed(range(len(messages))) if starts_turn(messages[i])), None)
    if start is None or messages[start].id not in state.dropped:
        return state
    turn = {message.id for message in messages[start:]}
    left_out = {name: tokens for name, tokens in state.left_out.items() if name not in turn}
    return replace(state, dropped=state.dropped - turn, left_out=left_out)


def _all_fits(request: Request, estimate: Callable[[Request], int], most: int, state: TrimState, tokens: int) -> bool:
    """Whether all of `request`, the projection without trims, has at most `most` tokens; under `state` it has `tokens`.

    `most` lies well below the limit, so that content does not come and go with the noise of the estimate.
    """
    left_out = sum(state.left_out.get(message.id, 0) for message in request.messages)
    return tokens + left_out * SURELY <= most and estimate(request) <= most


def _newest(messages: Iterable[Message]) -> str:
    return max((message.id for message in messages), default="")


class Trimmer:
    """Leaves out more and more of `messages`, the projected ones before trimming; what `state` leaves out stays out.

    `count` gives the tokens of a message. With `prefix_bound` (`Capabilities`) any trim drops all reasoning.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        count: Callable[[Message], int],
        state: TrimState,
        *,
        pinned: frozenset[str] = frozenset(),
        preserve_recent_turns: int | None = None,
        prefix_bound: bool = False,
    ) -> None:
        self._groups = group_messages(messages)
        self._open = open_group(messages, self._groups)
        self._last_turn = max((g.turn for g in self._groups), default=-1)
        self._preserve = PRESERVED_TURNS if preserve_recent_turns is None else preserve_recent_turns
        self._pinned = pinned
        self._count = count
        self._cuts = state.cuts_by_message()
        self._dropped_ids = state.dropped
        self._dropped = {g for g in self._groups if group_dropped(messages, g, state)}
        self._left_out = dict(state.left_out)
        self._messages = [without_reasoning(m) for m in messages] if prefix_bound else messages
        self._with_reasoning = [
            (index, message)
            for index, message in enumerate(messages)
            if self._messages[index] is not message and message.id > state.frontier
        ]
        self._costs: dict[int, int] = {}  # index -> tokens under the cuts so far
        self._freed = self._goal = 0  # tokens, in the present trim

    def trim(self, tokens: int, limit: int) -> set[Pass]:
        """Shrink a request of `tokens` to `TARGET` of `limit`; returns the passes that freed something.

        Leaves out old results, all results, turns that never fit, old turns, each only if the pass before was not
        enough. Recent turns and the running step are touched, as the last resort, only if the request would not fit
        otherwise. Pinned messages stay.
        """
        excess, self._goal, self._freed = tokens - limit, tokens - int(limit * TARGET), 0
        acted: set[Pass] = set()

        def run(name: Pass, act: Callable[[], None]) -> None:
            before = self._freed
            act()
            if self._freed > before:
                acted.add(name)

        run("old results", self._leave_out_old_results)
        run("results", self._leave_out_results)
        run("oversized turns", lambda: self._drop_oversized_turns(limit))
        if "oversized turns" in acted:
            return acted  # what else has to leave is seen when the rest is measured
        run("old turns", lambda: self._drop_turns(self._preserve))
        if self._freed < excess:
            run("last resort", lambda: self._drop_all_but_the_last(limit))
        if self._freed < excess:
            run("last resort", lambda: self._cap_running(self._cost_of(self._open) - excess + self._freed))
        return acted

    def state(self) -> TrimState:
        """What is left out now."""
        dropped = self._dropped_ids | {self._messages[i].id for g in self._dropped for i in g.indices}
        cuts = tuple(cut for by_call in self._cuts.values() for cut in by_call.values())
        return TrimState(cuts, dropped, _newest(self._messages), dict(self._left_out))

    # -- the passes -----------------------------------------------------------------------------------------------

    def _leave_out_old_results(self) -> None:
        """Old results become a marker; errors, and arguments, are capped. Before, prefix-bound reasoning goes."""
        gone = {index for group in self._dropped for index in group.indices}
        for index, message in self._with_reasoning:
            if index not in gone:
                self._freed += self._count(message) - self._count(self._messages[index])
        self._with_reasoning = []
        for group, index, part in self._tool_parts(g for g in self._groups if g.is_old):
            if isinstance(part, ToolResult) and not part.is_error:
                self._mark(group, index, part)
            elif _call_id(part) not in self._cuts_of(index) and self._tokens(index, part) > OLD_RESULT_CAP:
                self._cap(group, index, part, OLD_RESULT_CAP)

    def _leave_out_results(self) -> None:
        """Every result except those the model has to answer next, oldest first."""
        for group, index, part in self._tool_parts(g for g in self._groups if g != self._open):
            if self._freed >= self._goal:
                return
            if isinstance(part, ToolResult):
                self._mark(group, index, part)

    def _drop_oversized_turns(self, limit: int) -> None:
        """Earlier turns that alone exceed the window, such as a message that was refused.

        While one stays, all that is older would leave in vain.
        """
        for turn, members in groupby(self._groups, key=attrgetter("turn")):
            groups = [group for group in members if group not in self._dropped]
            if self._freed < self._goal and turn < self._last_turn and sum(map(self._cost_of, groups)) > limit:
                for group in groups:
                    self._drop(group)

    def _drop_turns(self, preserve: int) -> None:
        """Whole turns, oldest first, but never the last `preserve`, nothing pinned, no summary.

        A turn with a pinned message keeps the message that began it: a conversation never starts with an answer.
        """
        for turn, members in groupby(self._groups, key=attrgetter("turn")):
            if self._freed >= self._goal or turn > self._last_turn - preserve:
                return
            groups = list(members)
            pinned = any(self._messages[i].id in self._pinned for g in groups for i in g.indices)
            for group in groups:
                if not (pinned and self._starts_turn(group)):
                    self._drop(group)

    def _drop_all_but_the_last(self, limit: int) -> None:
        """Results of the running step cut to half of what the window can hold (`limit`, tokens of input), all
        but one of the recent turns, older steps of the running turn, the summary."""
        if self._cost_of(self._open) > limit // 2:
            self._cap_running(limit // 2)
        for preserve in range(self._preserve - 1, 0, -1):
            self._drop_turns(preserve)
        for group in self._groups[:-1]:
            if self._freed >= self._goal:
                return
            if group != self._open and not self._starts_turn(group):
                self._drop(group, summaries=True)

    def _cap_running(self, limit: int) -> None:
        """Cut results and arguments of the running step to a total of `limit` tokens, but not below `MIN_RESULT`."""
        parts = [
            (group, index, part, self._tokens(index, shorten_part(part, self._cuts_of(index))))
            for group, index, part in self._tool_parts([self._open] if self._open else [])
        ]
        sizes = [tokens for *_, tokens in parts]
        cap = level(sizes, limit - (self._cost_of(self._open) - sum(sizes)), MIN_RESULT)
        for group, index, part, tokens in parts:
            if tokens > cap:
                self._cap(group, index, part, cap)

    # -- what they do ---------------------------------------------------------------------------------------------

    def _tool_parts(self, groups: Iterable[Group]) -> Iterator[tuple[Group, int, ToolCall | ToolResult]]:
        """Calls and results that may be shortened."""
        for group in groups:
            if group.age is not None and group not in self._dropped:
                for index in group.indices:
                    if not self._is_protected(index):
                        for part in self._messages[index].parts:
                            if isinstance(part, ToolCall | ToolResult):
                                yield group, index, part

    def _mark(self, group: Group, index: int, part: ToolResult) -> None:
        """Replace a result by a marker."""
        earlier = self._cuts_of(index).get(part.call_id)
        if earlier is None or earlier.head:
            tokens = self._tokens(index, part)
            if tokens > MIN_REPLACED:
                self._cut(index, Cut(self._messages[index].id, part.call_id, truncation_marker(group, tokens)))

    def _cap(self, group: Group, index: int, part: ToolCall | ToolResult, cap: int) -> None:
        """Cut a result to its beginning and end, of `cap` tokens together; replace arguments by a marker."""
        tokens = self._tokens(index, part)
        cut = Cut(self._messages[index].id, _call_id(part), truncation_marker(group, tokens))
        if isinstance(part, ToolCall):
            self._cut(index, replace(cut, marker=json.dumps({"truncated": cut.marker}, ensure_ascii=False)))
            return
        cut = _with_ends(cut, part.text, cap / tokens)
        after = self._tokens(index, shorten_part(part, {part.call_id: cut}))
        if after > cap:  # the middle had fewer tokens than the ends
            cut = _with_ends(cut, part.text, 0.9 * cap / tokens * cap / after)
        self._cut(index, cut)

    def _cut(self, index: int, cut: Cut) -> None:
        before = self._cost(index)
        self._cuts.setdefault(cut.message_id, {})[cut.call_id] = cut
        del self._costs[index]
        self._freed += before - self._cost(index)
        self._left_out[cut.message_id] = self._count(self._messages[index]) - self._cost(index)

    def _drop(self, group: Group, *, summaries: bool = False) -> None:
        if group in self._dropped or any(self._is_protected(i, summaries=summaries) for i in group.indices):
            return
        self._dropped.add(group)
        self._freed += self._cost_of(group)
        self._left_out |= {self._messages[i].id: self._count(self._messages[i]) for i in group.indices}

    def _starts_turn(self, group: Group) -> bool:
        return starts_turn(self._messages[group.indices[0]])

    def _is_protected(self, index: int, *, summaries: bool = False) -> bool:
        message = self._messages[index]
        return not message.id or message.id in self._pinned or (message.kind == "summary" and not summaries)

    # -- sizes in tokens ------------------------------------------------------------------------------------------

    def _cuts_of(self, index: int) -> dict[str, Cut]:
        return self._cuts.get(self._messages[index].id, {})

    def _cost(self, index: int) -> int:
        if index not in self._costs:
            self._costs[index] = self._count(shorten(self._messages[index], self._cuts_of(index)))
        return self._costs[index]

    def _cost_of(self, group: Group | None) -> int:
        return sum(map(self._cost, group.indices)) if group else 0

    def _tokens(self, index: int, part: Part) -> int:
        message = self._messages[index]
        return self._count(message if message.parts == (part,) else replace(message, parts=(part,)))


def _call_id(part: ToolCall | ToolResult) -> str:
    return part.call_id if isinstance(part, ToolResult) else part.id


def _with_ends(cut: Cut, text: str, share: float) -> Cut:
    """`cut` with a share of `text` before and after its marker, which gets lines of its own."""
    line = f"\n{cut.marker.strip()}\n"
    characters = max(0, int(len(text) * share) - len(line))
    return replace(cut, marker=line, head=characters - characters // 2, tail=characters // 2)

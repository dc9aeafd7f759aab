"""The request of a history: the one place that decides what is sent.

The store is never repaired; the projection is. Messages that a rule does not change remain the same objects, so that
the accounting recognises what it has counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tui.chat.attachments import not_taken
from tui.chat.conversation.history import HistoryState
from tui.context.counting.digests import text_digest
from tui.context.reduction.groups import (
    answered_ids,
    call_ids,
    group_messages,
    opened,
    starts_turn,
    unbind,
    whole_groups,
    with_parts,
)
from tui.context.reduction.records import (
    CompactionRecord,
    CompactionUndo,
    SummaryEdit,
    TrimState,
    apply_compactions,
    leave_out,
)
from tui.messages import (
    Attachment,
    Message,
    Part,
    ProviderItem,
    Reasoning,
    Request,
    Role,
    SystemSection,
    Text,
    ToolCall,
    ToolResult,
    ToolSchema,
    is_sendable,
)
from tui.providers.base import NO_ANSWER, Capabilities
from tui.providers.wire import EMPTY_RESULT, arguments_text, tool_name

NO_RESULT = "[The tool call was interrupted; there is no result.]"


@dataclass(frozen=True, slots=True)
class Target:
    """The recipient of a request, and what is sent with every request. `max_output`: a limit that a server named."""

    provider: str
    model: str
    capabilities: Capabilities = field(default_factory=Capabilities)
    system: tuple[SystemSection, ...] = ()
    tools: tuple[ToolSchema, ...] = ()
    max_output: int | None = None
    reasoning: str | None = None
    session: str = ""


def build_request(messages: Sequence[Message], state: HistoryState, target: Target) -> Request:
    """What would be sent now, trimmed by rolling context."""
    return Projection().with_rest(messages, state, target)[1]


def active_messages(messages: Sequence[Message], state: HistoryState, target: Target) -> tuple[Message, ...]:
    """The active messages: without those set aside or excluded, and with summaries in place of what they replace.

    Trimming and compaction work on these.
    """
    prefix_bound = target.capabilities.prefix_bound
    there = [m for m in messages if m.id not in state.set_aside and m.status != "streaming"]
    active = apply_compactions(there, state.checkpoints, prefix_bound=prefix_bound)
    if state.excluded:  # after compactions, whose range may begin or end with an excluded message
        excluded = set(whole_groups(active, state.excluded))
        active = tuple(m for m in active if m.id not in excluded)
    if state.left_out:
        touched = {message for message, _ in state.left_out}
        active = tuple(
            with_parts(m, [_shortened(part, m.id, state.left_out) for part in m.parts]) if m.id in touched else m
            for m in active
        )
    return unbind(active, max(state.void, state.frontier if prefix_bound else ""))


def _shortened(part: Part, message: str, left_out: Mapping[tuple[str, str], int]) -> Part:
    """The part as it goes out where a server refused the request because of it."""
    match part:
        case Attachment(name=name, sha256=digest) if (message, digest) in left_out:
            return Text(f"[{name} was left out: the request had too many bytes]")
        case ToolCall(arguments=text) if any(
            (message, text_digest(sent)) in left_out for sent in (text, arguments_text(text))
        ):
            return replace(part, arguments=json.dumps({"left out": f"{len(text):,} characters"}))
        case ToolResult(text=text) | Text(text) if (keep := left_out.get((message, text_digest(text)))) is not None:
            cut = f"\n[... {len(text) - keep:,} characters left out: the request had too many bytes ...]\n"
            return replace(part, text=f"{text[: keep - keep // 2]}{cut}{text[len(text) - keep // 2 :]}")
    return part


def _request(messages: tuple[Message, ...], target: Target) -> Request:
    return Request(
        provider=target.provider,
        model=target.model,
        messages=messages,
        system=target.system,
        tools=target.tools,
        max_output=target.max_output,
        reasoning=target.reasoning,
        session=target.session,
        server_edits=target.capabilities.edits_context,
    )


def _outgoing(
    active: tuple[Message, ...],
    target: Target,
    call_ids_sent: set[str],
    before: Message | None = None,
    *,
    turn_over: bool = False,
) -> tuple[Message, ...]:
    """The active messages as they go out: without what the target does not accept, and what is empty on the wire.

    `call_ids_sent` are those of earlier messages, of which `before` is the last; the new ones are added. `turn_over`:
    another turn follows these messages.
    """
    reasoning_from = _reasoning_from(active, target, turn_over=turn_over)
    messages, has_tools = list[Message](), False
    for index, message in enumerate(active):
        parts = list[Part]()
        for part in message.parts:
            sent = _as_sent(part, message.role, target, with_reasoning=index >= reasoning_from)
            if sent is not None:
                parts.append(sent)
                has_tools = has_tools or isinstance(sent, ToolCall | ToolResult)
        if parts := _without_last_reasoning(parts):
            messages.append(with_parts(message, parts))
            has_tools = has_tools or message.role == "tool"
    outgoing = _paired(messages, call_ids_sent) if has_tools else tuple(messages)
    if has_tools and target.capabilities.files_after_results:
        outgoing = tuple(map(_with_named_files, outgoing))
    return tuple(bridged(outgoing, before)) if target.capabilities.bridges else outgoing


def _without_last_reasoning(parts: list[Part]) -> list[Part]:
    """`parts` without reasoning that nothing follows, as in a stopped answer: Anthropic and OpenAI refuse it.

    OpenRouter's details come at the end of its answers, and stay; but none go out alone.
    """
    end = len(parts)
    while end and isinstance(parts[end - 1], Reasoning):
        end -= 1
    last = [part for part in parts[end:] if isinstance(part, Reasoning) and part.details and part.encrypted is None]
    return [*parts[:end], *last] if end else []


def _with_named_files(message: Message) -> Message:
    """A message of results with a line before their files, for a target that gets these after all results."""
    if message.role != "tool" or not any(isinstance(part, Attachment) for part in message.parts):
        return message
    parts, name = list[Part](), ""
    for part in message.parts:
        if isinstance(part, ToolResult):
            name = part.name
        elif isinstance(part, Attachment) and not isinstance(parts[-1], Attachment):
            parts.append(Text(f"[from the result of {name}]"))
        parts.append(part)
    return replace(message, parts=tuple(parts))


def bridged(messages: Iterable[Message], before: Message | None = None) -> Iterator[Message]:
    """`messages`, which follow `before`, with a line for each missing answer between a result and a question."""
    for message in messages:
        if message.role == "user" and before is not None and before.role == "tool":
            yield Message("assistant", (Text(NO_ANSWER),), id=before.id + "-answer", created_at=before.created_at)
        yield message
        before = message


def _reasoning_from(messages: tuple[Message, ...], target: Target, *, turn_over: bool) -> int:
    """The index of the first message whose reasoning is sent.

    An answer without calls ends the open tool loop: before anything else is sent a person writes, so a model that
    accepts reasoning only inside the loop gets none of it.
    """
    able = target.capabilities
    if able.reasoning_return == "never" or (able.reasoning_needs_tools and not target.tools):
        return len(messages)
    if able.reasoning_return == "always":
        return 0
    # Results are paired with their call.
    last = next((m for m in reversed(messages) if m.parts and m.role != "tool"), None)
    if turn_over or (last is not None and last.role == "assistant" and not call_ids(last)):
        return len(messages)
    return next((i for i in range(len(messages) - 1, -1, -1) if starts_turn(messages[i])), 0)


_ROLES: Mapping[type[Part], Role] = {ToolCall: "assistant", Reasoning: "assistant", ToolResult: "tool"}
"""Parts that no dialect has in a message of another role, where a damaged or imported history may have them."""


def _as_sent(part: Part, role: Role, target: Target, *, with_reasoning: bool) -> Part | None:
    """A part of a message of this role as the target accepts it; None if it is not sent."""
    if not is_sendable(part) or _ROLES.get(type(part), role) != role:
        return None
    match part:
        case Attachment() if role == "assistant":
            return None
        case ToolCall(name=name, arguments=arguments):  # none at all are `{}` on the wire
            valid = tool_name(name), arguments_text(arguments) if arguments.strip() else arguments
            return part if valid == (name, arguments) else replace(part, name=valid[0], arguments=valid[1])
        case Attachment() if kind := not_taken(part, target.capabilities):
            return Text(f"[{part.name} is not shown: this model takes no {kind}]")
        case ProviderItem() if part.provider != target.provider:
            return None
        case Reasoning():
            if not with_reasoning or (part.provider, part.model) != (target.provider, target.model):
                return None
            signed = part.signature is not None or part.redacted is not None or part.encrypted is not None
            unsigned = not target.capabilities.needs_signature and bool(part.text or part.details)
            return part if signed or unsigned else None
    return part


def _paired(messages: Sequence[Message], used_ids: set[str]) -> tuple[Message, ...]:
    """Every call is answered directly after it, every result has its call, and call ids are unique.

    `used_ids` are the call ids of earlier messages; the new ones are added.
    """
    result: list[Message] = []
    for group in group_messages(messages):
        first = messages[group.indices[0]]
        if group.age is None:
            if first.role != "tool":
                result.append(first)
            continue
        result += _whole_group(first, [messages[i] for i in group.indices[1:]], used_ids)
    return tuple(result)


def _whole_group(call: Message, results: Sequence[Message], used_ids: set[str]) -> list[Message]:
    """A calling message and its results: duplicate ids renamed, missing answers added, stray ones dropped."""
    parts: list[Part] = []
    waiting: list[tuple[str, ToolCall]] = []  # the id in its result, and the call as it is sent
    for part in call.parts:
        if isinstance(part, ToolCall):
            sent = part
            while sent.id in used_ids:
                sent = replace(part, id=f"{sent.id}-{len(used_ids)}")
            used_ids.add(sent.id)
            waiting.append((part.id, sent))
            parts.append(sent)
        else:
            parts.append(part)
    out = [with_parts(call, parts)]
    for message in results:
        answers, answered = list[Part](), False
        for part in message.parts:
            if isinstance(part, ToolResult):
                answer = _answer(part, waiting)
                answered = answer is not None
                answers += [answer] if answer is not None else []
            elif answered:  # it belongs to the result before it
                answers.append(part)
        if answers:
            out.append(with_parts(message, answers))
    if waiting:
        missing = tuple(ToolResult(sent.id, sent.name, NO_RESULT, is_error=True) for _, sent in waiting)
        out.append(Message("tool", missing, id=call.id + "-results", created_at=call.created_at))
    return out


def _answer(part: ToolResult, waiting: list[tuple[str, ToolCall]]) -> ToolResult | None:
    """A result under its call's id as sent, never empty; None if no call waits for it."""
    for position, (named, sent) in enumerate(waiting):
        if named == part.call_id:
            del waiting[position]
            text = part.text if part.text.strip() else EMPTY_RESULT
            same = sent.id == part.call_id and text is part.text
            return part if same else replace(part, call_id=sent.id, text=text)
    return None


class Projection:
    """The requests of a history that grows.

    What stands before the last turn is projected once, and again only when a record or the target changes it: a turn
    costs the same after ten messages and after ten thousand.
    """

    def __init__(self) -> None:
        self._rules: object = None  # what the prefix was projected by
        self._in_records: frozenset[str] = frozenset()  # messages that records name
        self._clear()

    def _clear(self) -> None:
        self._length = 0  # messages of the history in the prefix
        self._end: Message | None = None  # the last of them
        self._calls: set[str] = set()  # ids of the calls in them
        self._calls_sent: set[str] = set()  # the ids these go out with
        self._prefix: tuple[Message, ...] = ()  # as it goes out
        self._trimmed: tuple[TrimState, tuple[Message, ...]] | None = None  # the prefix under this state

    def requests(self, messages: Sequence[Message], state: HistoryState, target: Target) -> tuple[Request, Request]:
        """What would be sent now, before and after trimming, of a history that holds what it held before, and more."""
        self._advance(messages, state, target)
        rest = messages[self._length :]
        if self._depends_on_prefix(rest):
            return Projection().with_rest(messages, state, target)
        return self.with_rest(rest, state, target)

    def with_rest(self, rest: Sequence[Message], state: HistoryState, target: Target) -> tuple[Request, Request]:
        """The same, of the prefix and the `rest` of the history."""
        tail = _outgoing(active_messages(rest, state, target), target, set(self._calls_sent), self._last_sent)
        tail = tail if self._prefix else opened(tail)
        whole = _request((*self._prefix, *tail), target)
        trim, bound = state.trim, target.capabilities.prefix_bound
        if self._trimmed is None or self._trimmed[0] is not trim:
            self._trimmed = trim, leave_out(self._prefix, trim, prefix_bound=bound)
        trimmed = opened((*self._trimmed[1], *leave_out(tail, trim, prefix_bound=bound)))
        if target.capabilities.bridges and not trim.empty:  # without an answer whose question before it is pinned
            trimmed = tuple(bridged(trimmed))
        return whole, whole if trimmed == whole.messages else replace(whole, messages=trimmed)

    def _advance(self, messages: Sequence[Message], state: HistoryState, target: Target) -> None:
        """Let the prefix be what stands before the last turn."""
        rules = (
            (state.checkpoints, state.set_aside, state.excluded, state.frontier, state.void, state.left_out),
            (target.provider, target.model, target.capabilities, bool(target.tools)),
        )
        grown = self._length <= len(messages) and (not self._length or messages[self._length - 1] is self._end)
        if rules != self._rules or not grown:
            self._clear()
            self._rules, self._in_records = rules, _named_in_records(state)
        start = self._last_turn(messages)
        if start <= self._length:
            return
        fresh = messages[self._length : start]
        if self._depends_on_prefix(fresh):
            self._clear()
            fresh = messages[:start]
        active = active_messages(fresh, state, target)
        outgoing = _outgoing(active, target, self._calls_sent, self._last_sent, turn_over=True)
        if self._prefix and self._trimmed is not None:
            trim, remaining = self._trimmed
            bound = target.capabilities.prefix_bound
            self._trimmed = trim, (*remaining, *leave_out(outgoing, trim, prefix_bound=bound))
        else:
            self._trimmed = None
        self._prefix = opened((*self._prefix, *outgoing))
        self._calls.update(ident for message in fresh for ident in call_ids(message))
        self._length, self._end = start, messages[start - 1]

    @property
    def _last_sent(self) -> Message | None:
        return self._prefix[-1] if self._prefix else None

    def _last_turn(self, messages: Sequence[Message]) -> int:
        """Where the last turn begins whose first message no record names."""
        for index in range(len(messages) - 1, self._length, -1):
            message = messages[index]
            if starts_turn(message) and message.parts and message.id not in self._in_records:
                return index
        return self._length

    def _depends_on_prefix(self, messages: Sequence[Message]) -> bool:
        """Whether `messages` can't be projected apart from the prefix: a record names one, or one answers its calls."""
        if not self._length:
            return False
        called: set[str] = set()
        for message in messages:
            if message.id in self._in_records or not (answered_ids(message) - called).isdisjoint(self._calls):
                return True
            if message.status != "streaming":
                called |= call_ids(message)
        return False


def _named_in_records(state: HistoryState) -> frozenset[str]:
    """The messages that records name."""
    ids: set[str] = {*state.set_aside, *state.excluded, *(ident for ident, _ in state.left_out)}
    for record in state.checkpoints:
        match record:
            case CompactionRecord():
                ids.update((record.first, record.last, record.summary, *record.kept))
                ids.update(ident for ident, _ in record.cleared)
            case SummaryEdit():
                ids.add(record.summary)
            case CompactionUndo():
                pass
    return frozenset(ids - {""})

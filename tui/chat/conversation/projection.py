"""History -> Request: the one function that decides what goes out.

The store is never repaired; the projection is. Every rule returns the same object for a message it does not touch, so
that the accounting recognises what it has counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tui.chat.attachments import not_taken
from tui.chat.conversation.history import HistoryState, text_digest
from tui.context.reduction.checkpoints import apply_compactions
from tui.context.reduction.groups import answered_ids, call_ids, group_messages, opened, starts_turn, unbind
from tui.context.reduction.trimming import apply_trim
from tui.messages import (
    Attachment,
    Message,
    Part,
    ProviderItem,
    Reasoning,
    Request,
    SystemSection,
    Text,
    ToolCall,
    ToolResult,
    ToolSchema,
    is_sendable,
)
from tui.providers.base import Capabilities

NO_RESULT = "[The tool call was interrupted; there is no result.]"
EMPTY_RESULT = "[no output]"


@dataclass(frozen=True, slots=True)
class Target:
    """Whom the request is for, and what goes with every request. `max_output` in tokens."""

    provider: str
    model: str
    capabilities: Capabilities = field(default_factory=Capabilities)
    system: tuple[SystemSection, ...] = ()
    tools: tuple[ToolSchema, ...] = ()
    max_output: int | None = None
    reasoning: str | None = None
    session: str = ""


def build_request(messages: Sequence[Message], state: HistoryState, target: Target) -> Request:
    """What would go out now, before rolling context leaves anything out (`trimmed_request`)."""
    return request_for(active_messages(messages, state, target), target)


def trimmed_request(request: Request, state: HistoryState, target: Target) -> Request:
    """`request` without what rolling context leaves out; the same object where that is nothing."""
    messages = apply_trim(request.messages, state.trim, prefix_bound=target.capabilities.prefix_bound)
    return request if messages == request.messages else replace(request, messages=messages)


def active_messages(messages: Sequence[Message], state: HistoryState, target: Target) -> tuple[Message, ...]:
    """The conversation as it stands: without what was set aside or excluded, summaries in place of what they stand for.

    This is what trimming and compaction work on.
    """
    prefix_bound = target.capabilities.prefix_bound
    there = [m for m in messages if m.id not in state.set_aside and m.status != "streaming"]
    active = _wanted(apply_compactions(there, state.checkpoints, prefix_bound=prefix_bound), state)
    return unbind(active, max(state.void, state.frontier if prefix_bound else ""))


def _wanted(active: Sequence[Message], state: HistoryState) -> list[Message]:
    """Without what is excluded, and without what a server refused for its size.

    After the compactions: an excluded message may be where the range of one begins or ends.
    """
    included = list(active)
    if state.excluded:
        excluded = {
            i
            for group in group_messages(included)
            if any(included[i].id in state.excluded for i in group.indices)
            for i in group.indices
        }
        included = [m for i, m in enumerate(included) if i not in excluded]
    if not state.left_out:
        return included
    touched = {message for message, _ in state.left_out}
    return [
        _with_parts(message, [_shortened(part, message.id, state.left_out) for part in message.parts])
        if message.id in touched
        else message
        for message in included
    ]


def _shortened(part: Part, message: str, left_out: Mapping[tuple[str, str], int]) -> Part:
    """The part as it goes out where a server refused the request because of it."""
    match part:
        case Attachment(name=name, sha256=digest) if (message, digest) in left_out:
            return Text(f"[{name} was left out: the request had too many bytes]")
        case ToolCall(arguments=text) if (message, text_digest(text)) in left_out:
            return replace(part, arguments=json.dumps({"left out": f"{len(text):,} characters"}))
        case ToolResult(text=text) | Text(text) if (keep := left_out.get((message, text_digest(text)))) is not None:
            cut = f"\n[... {len(text) - keep:,} characters left out: the request had too many bytes ...]\n"
            return replace(part, text=f"{text[: keep - keep // 2]}{cut}{text[len(text) - keep // 2 :]}")
    return part


def _without_kinds(message: Message, able: Capabilities) -> Message:
    """Pictures and documents from before a switch to a model that takes none: it is told that they were there."""
    parts = tuple(
        Text(f"[{part.name} is not shown: this model takes no {kind}]")
        if isinstance(part, Attachment) and (kind := not_taken(part, able))
        else part
        for part in message.parts
    )
    return _with_parts(message, parts)


def request_for(active: Iterable[Message], target: Target) -> Request:
    """A request from messages that are to go out: what the model takes, empty messages and pairing are seen to here."""
    able = target.capabilities
    messages = _reasoning_rules(tuple(active), target)
    if not able.images or not able.pdfs:
        messages = [_without_kinds(message, able) for message in messages]
    return Request(
        provider=target.provider,
        model=target.model,
        messages=opened(_paired(message for message in messages if message.parts)),
        system=target.system,
        tools=target.tools,
        max_output=target.max_output,
        reasoning=target.reasoning,
        session=target.session,
        server_edits=able.edits_context,
    )


def _reasoning_rules(messages: tuple[Message, ...], target: Target) -> list[Message]:
    """Leave out reasoning the target does not take back, and parts that are empty on the wire.

    An answer without calls ends the open tool loop: before anything else is sent a person writes, and a model that
    takes reasoning back only inside the loop gets none of it.
    """
    able = target.capabilities
    always = able.reasoning_return == "always"
    never = able.reasoning_return == "never" or (able.reasoning_needs_tools and not target.tools)
    loop_from = 0
    if not always:
        last = next((m for m in reversed(messages) if m.parts and m.role != "tool"), None)  # results have their call
        ended = last is not None and last.role == "assistant" and not call_ids(last)
        starts = (i for i in range(len(messages) - 1, -1, -1) if starts_turn(messages[i]))
        loop_from = len(messages) if ended else next(starts, 0)
    result = []
    for index, message in enumerate(messages):
        sends = not never and (always or index >= loop_from)
        parts = tuple(part for part in message.parts if _goes_out(part, target, sends))
        if message.role == "assistant" and all(isinstance(part, Reasoning) for part in parts):
            parts = ()  # reasoning alone says nothing, and no dialect takes it
        result.append(message if len(parts) == len(message.parts) else replace(message, parts=parts))
    return result


def _goes_out(part: Part, target: Target, sends_reasoning: bool) -> bool:
    if not is_sendable(part):
        return False
    match part:
        case ProviderItem():
            return part.provider == target.provider
        case Reasoning():
            if not sends_reasoning or (part.provider, part.model) != (target.provider, target.model):
                return False
            signed = part.signature is not None or part.redacted is not None or part.encrypted is not None
            return signed or (not target.capabilities.needs_signature and bool(part.text or part.details))
        case _:
            return True


def _paired(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Every call is answered right after it, every result has its call, and no call id stands twice."""
    source = list(messages)
    if not any(call_ids(m) or answered_ids(m) for m in source):
        return tuple(source)
    result: list[Message] = []
    seen: set[str] = set()
    for group in group_messages(source):
        first = source[group.indices[0]]
        if group.step is None:
            if first.role != "tool":
                result.append(first)
            continue
        result += _whole_group(first, [source[i] for i in group.indices[1:]], seen)
    return tuple(result)


def _whole_group(call: Message, results: Sequence[Message], seen: set[str]) -> list[Message]:
    """A calling message and its results: doubled ids renamed, missing answers filled in, stray ones left out."""
    parts: list[Part] = []
    waiting: list[tuple[str, ToolCall]] = []  # the id its result names, and the call as it goes out
    for part in call.parts:
        if isinstance(part, ToolCall):
            sent = part if part.id not in seen else replace(part, id=f"{part.id}-{len(seen)}")
            seen.add(sent.id)
            waiting.append((part.id, sent))
            parts.append(sent)
        else:
            parts.append(part)
    out = [_with_parts(call, parts)]
    for message in results:
        answers = [part for part in (_answer(part, waiting) for part in message.parts) if part is not None]
        if answers:
            out.append(_with_parts(message, answers))
    if waiting:
        missing = tuple(ToolResult(sent.id, sent.name, NO_RESULT, is_error=True) for _, sent in waiting)
        out.append(Message("tool", missing, id=call.id + "-results", created_at=call.created_at))
    return out


def _with_parts(message: Message, parts: Sequence[Part]) -> Message:
    same = len(parts) == len(message.parts) and all(a is b for a, b in zip(parts, message.parts, strict=True))
    return message if same else replace(message, parts=tuple(parts))


def _answer(part: Part, waiting: list[tuple[str, ToolCall]]) -> Part | None:
    """A result under the id its call goes out with, never empty; None where no call waits for it."""
    if not isinstance(part, ToolResult):
        return part
    for position, (named, sent) in enumerate(waiting):
        if named == part.call_id:
            del waiting[position]
            text = part.text if part.text.strip() else EMPTY_RESULT
            same = sent.id == part.call_id and text is part.text
            return part if same else replace(part, call_id=sent.id, text=text)
    return None

"""Groups of messages that may only be dropped together, and where turns and steps begin.

Trimming and compaction both work on groups, so that a tool call and its results are never separated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import is_
from typing import NamedTuple

from tui.messages import Message, Part, Reasoning, Text, ToolCall, ToolResult

PRESERVED_TURNS = 4  # the latest turns stay as they are, unless the person sets another number
OLD_STEPS = 5  # the results of a step are old when more than this many steps follow
MIN_REPLACED = 100  # tokens: shorter results are never replaced by a line that says so
NONE: frozenset[str] = frozenset()


class Group(NamedTuple):
    """Messages that are kept or dropped together: one message, or an assistant's tool calls with all their results.

    `indices` are positions in the sequence. `turn` counts user messages from 0, -1 before the first one. A step is an
    assistant message with tool calls: `age` is the number of steps that follow; None for a group without calls.
    """

    indices: tuple[int, ...]
    turn: int
    age: int | None = None

    @property
    def is_old(self) -> bool:
        """Whether its tool results are the first to leave out."""
        return self.age is not None and self.age > OLD_STEPS


OPENING = Message("user", (Text("[The beginning of the conversation is left out.]"),), kind="injected")
"""Inserted before an answer that begins a request: servers refuse those ("first message must use the user role")."""


def call_ids(message: Message) -> frozenset[str]:
    """The ids of the tool calls in `message`."""
    if message.role != "assistant":
        return NONE
    ids = [part.id for part in message.parts if isinstance(part, ToolCall)]
    return frozenset(ids) if ids else NONE


def answered_ids(message: Message) -> frozenset[str]:
    """The ids of the tool calls that `message` answers."""
    if message.role != "tool":
        return NONE
    return frozenset(part.call_id for part in message.parts if isinstance(part, ToolResult))


def starts_turn(message: Message) -> bool:
    """Whether a turn begins here: a message written by the person, not a summary and not one added by the program."""
    return message.role == "user" and message.kind == "chat"


def group_messages(messages: Sequence[Message]) -> tuple[Group, ...]:
    """Split `messages` into groups, in the order of their first message.

    A result belongs to the nearest earlier message that called for it, even with messages in between; a result without
    a call is a group by itself.
    """
    members: list[list[int]] = []  # of each group
    turns: list[int] = []
    calling: dict[str, int] = {}  # call id -> its group
    steps: list[int] = []  # the groups with calls
    turn = -1
    for index, message in enumerate(messages):
        if starts_turn(message):
            turn += 1
        answers = answered_ids(message)
        group = next((calling[call] for call in answers if call in calling), None) if answers else None
        if group is not None:
            members[group].append(index)
            continue
        if calls := call_ids(message):
            calling.update(dict.fromkeys(calls, len(members)))
            steps.append(len(members))
        members.append([index])
        turns.append(turn)
    ages = {group: age for age, group in enumerate(reversed(steps))}
    return tuple(Group(tuple(indices), turns[group], ages.get(group)) for group, indices in enumerate(members))


def whole_groups(messages: Sequence[Message], ids: frozenset[str]) -> tuple[str, ...]:
    """Ids of all messages in groups that have a message of `ids`, in order."""
    groups = [[messages[i].id for i in group.indices] for group in group_messages(messages)] if ids else []
    return tuple(ident for members in groups if ids.intersection(members) for ident in members)


def open_group(messages: Sequence[Message], groups: Sequence[Group]) -> Group | None:
    """The tool group that the model has to answer next (its results end the conversation), or None."""
    group = next((group for group in reversed(groups) if group.age is not None), None)
    later = messages[max(group.indices) + 1 :] if group is not None else ()
    return None if any(m.role == "assistant" or starts_turn(m) for m in later) else group


def opened(messages: Sequence[Message]) -> tuple[Message, ...]:
    """`messages` from the first user message on: requests begin with one."""
    return tuple(messages) if not messages or messages[0].role == "user" else (OPENING, *messages)


def with_parts(message: Message, parts: Sequence[Part]) -> Message:
    """`message` with these parts; the same object if they are its own."""
    same = len(parts) == len(message.parts) and all(map(is_, parts, message.parts))
    return message if same else replace(message, parts=tuple(parts))


def without_reasoning(message: Message) -> Message:
    """`message` without its reasoning blocks; the same object when it has none."""
    return with_parts(message, [part for part in message.parts if not isinstance(part, Reasoning)])


def unbind(messages: Sequence[Message], frontier: str) -> tuple[Message, ...]:
    """Drop the reasoning of every message up to `frontier` (a message id), and messages that held nothing else.

    For models whose reasoning signatures cover everything before them: once content is removed from the prefix the
    server refuses the blocks after it. So all leading blocks are dropped, in an open tool loop too, since a block that
    no longer matches is refused there as well. Ids are compared as text: they are time-ordered. An empty frontier
    changes nothing.
    """
    if not frontier:
        return tuple(messages)
    pairs = ((m, without_reasoning(m) if m.id <= frontier else m) for m in messages)
    return tuple(after for before, after in pairs if after.parts or not before.parts)


def level(sizes: Sequence[int], total: int, least: int) -> int:
    """The cap under which `sizes` add up to `total` (the small ones stay whole), but not below `least`."""
    rest, left = total, len(sizes)
    for size in sorted(sizes):
        if size * left > rest:
            return max(least, rest // left)
        rest -= size
        left -= 1
    return max(least, max(sizes, default=0))

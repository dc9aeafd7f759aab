"""What hangs together in a conversation."""

from __future__ import annotations

from tui.context.reduction.groups import Group, group_messages, open_group
from tui.messages import Message, MessageKind, Role, Text, ToolCall, ToolResult


def asks(*calls: str) -> Message:
    return Message("assistant", tuple(ToolCall(c, "read_file", "{}") for c in calls))


def answers(*calls: str) -> Message:
    return Message("tool", tuple(ToolResult(c, "read_file", "text") for c in calls))


def says(role: Role = "user", kind: MessageKind = "chat") -> Message:
    return Message(role, (Text("words"),), kind=kind)


def test_a_result_belongs_to_the_message_that_asked_also_when_another_one_asked_since() -> None:
    messages = [says(), asks("a"), asks("b"), answers("a"), answers("b"), says("assistant")]
    assert group_messages(messages) == (Group((0,), 0), Group((1, 3), 0, 1), Group((2, 4), 0, 0), Group((5,), 0))


def test_of_two_that_asked_by_the_same_id_the_later_one_gets_the_result() -> None:
    messages = [asks("a"), answers("a"), asks("a"), answers("a")]
    assert [group.indices for group in group_messages(messages)] == [(0, 1), (2, 3)]


def test_turns_begin_with_a_persons_message_only() -> None:
    messages = [says(kind="summary"), says("assistant"), says(), says(kind="injected"), says()]
    assert [group.turn for group in group_messages(messages)] == [-1, -1, 0, 0, 1]


def test_a_result_nobody_asked_for_stands_alone() -> None:
    assert group_messages([says(), answers("x")])[1] == Group((1,), 0)


def test_the_open_group_is_the_one_the_model_is_to_answer() -> None:
    loop = [says(), asks("a"), answers("a")]
    for rest, is_open in (
        ([], True),
        ([says(kind="injected")], True),
        ([says("assistant")], False),
        ([says()], False),
    ):
        messages = [*loop, *rest]
        assert (open_group(messages, group_messages(messages)) is not None) is is_open
    assert open_group([says()], group_messages([says()])) is None

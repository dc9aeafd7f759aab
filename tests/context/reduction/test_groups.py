"""What hangs together in a conversation."""

from __future__ import annotations

from tests.messages import assistant, tool, user
from tui.context.reduction.groups import Group, group_messages, open_group
from tui.messages import Message, ToolCall, ToolResult


def calls(*ids: str) -> Message:
    return assistant(*(ToolCall(ident, "read_file", "{}") for ident in ids))


def results(*ids: str) -> Message:
    return tool(*(ToolResult(ident, "read_file", "text") for ident in ids))


QUESTION, ANSWER, INJECTED = user("why?"), assistant("so"), user("a note", kind="injected")


def test_a_result_belongs_to_the_message_that_asked_also_when_another_one_asked_since() -> None:
    messages = [QUESTION, calls("a"), calls("b"), results("a"), results("b"), ANSWER]
    assert group_messages(messages) == (Group((0,), 0), Group((1, 3), 0, 1), Group((2, 4), 0, 0), Group((5,), 0))


def test_of_two_that_asked_by_the_same_id_the_later_one_gets_the_result() -> None:
    messages = [calls("a"), results("a"), calls("a"), results("a")]
    assert [group.indices for group in group_messages(messages)] == [(0, 1), (2, 3)]


def test_turns_begin_with_a_persons_message_only() -> None:
    messages = [user("so far", kind="summary"), ANSWER, QUESTION, INJECTED, QUESTION]
    assert [group.turn for group in group_messages(messages)] == [-1, -1, 0, 0, 1]


def test_a_result_nobody_asked_for_stands_alone() -> None:
    assert group_messages([QUESTION, results("x")])[1] == Group((1,), 0)


def test_the_open_group_is_the_one_the_model_is_to_answer() -> None:
    loop = [QUESTION, calls("a"), results("a")]
    for rest, is_open in (
        ([], True),
        ([INJECTED], True),
        ([ANSWER], False),
        ([QUESTION], False),
    ):
        messages = [*loop, *rest]
        assert (open_group(messages, group_messages(messages)) is not None) is is_open
    assert open_group([QUESTION], group_messages([QUESTION])) is None

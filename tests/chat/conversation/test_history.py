"""What each kind of record does to the state that the projection reads."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.chat.conversation.history import HistoryState, RecordKind, fold_records, readable_records
from tui.chat.conversation.projection import NO_RESULT, Projection, Target, build_request
from tui.chat.store.store import Record, SessionInfo, SessionStore
from tui.context.counting.digests import text_digest
from tui.context.reduction.groups import OPENING, answered_ids, call_ids
from tui.context.reduction.records import CompactionUndo, TrimState, checkpoint_to_json
from tui.messages import Attachment, Message, Part, Reasoning, Refusal, Role, Text, ToolCall, ToolResult, ToolSchema
from tui.providers.base import NO_ANSWER, Capabilities
from tui.providers.wire import EMPTY_RESULT

UNDO = CompactionUndo("u", 1.0, "c", "m5")


def record(number: int, kind: str, data: dict[str, Any]) -> Record:
    return Record(f"r{number}", kind, 1.0, data)


def folded(*entries: tuple[str, dict[str, Any]]) -> HistoryState:
    return fold_records(record(number, kind, data) for number, (kind, data) in enumerate(entries))


def trimmed(*ids: str) -> dict[str, Any]:
    return {"state": TrimState(dropped=frozenset(ids)).to_json()}


@pytest.mark.parametrize(
    ("entries", "state"),
    [
        ((), HistoryState()),
        ((("checkpoint", checkpoint_to_json(UNDO)),), HistoryState(checkpoints=(UNDO,))),
        ((("checkpoint", {"answer": "a", "summary": "m1"}),), HistoryState(set_aside=frozenset({"m1"}))),
        ((("trim", trimmed("m1")), ("trim", trimmed("m2"))), HistoryState(trim=TrimState(dropped=frozenset({"m2"})))),
        (
            (("set_aside", {"ids": ["m1", "m2"], "frontier": "m3"}), ("set_aside", {"ids": ["m4"], "frontier": "m4"})),
            HistoryState(set_aside=frozenset({"m1", "m2", "m4"}), frontier="m4"),
        ),
        (  # the request has changed up to there, also when it is as it was
            (("set_aside", {"ids": ["m1"], "frontier": "m3"}), ("restore", {"record": "r0"})),
            HistoryState(frontier="m3"),
        ),
        (
            (("pin", {"id": "m1", "on": True}), ("pin", {"id": "m2", "on": True}), ("pin", {"id": "m1", "on": False})),
            HistoryState(pinned=frozenset({"m2"})),
        ),
        (
            (("exclude", {"id": "m1", "on": True, "frontier": "m2"}), ("exclude", {"id": "m3", "on": True})),
            HistoryState(excluded=frozenset({"m1", "m3"}), frontier="m2"),
        ),
        ((("system", {"text": "a"}), ("system", {"text": ""})), HistoryState(system="")),
        ((("void", {"frontier": "m2"}), ("void", {"frontier": "m4"})), HistoryState(void="m4")),
        (
            (("void", {"frontier": "m2"}), ("void", {"frontier": "m4"}), ("restore", {"record": "r1"})),
            HistoryState(void="m2"),
        ),
        ((("memory", {"files": [1]}), ("memory", {"files": []})), HistoryState(memory={})),
        (
            (("memory", {"files": [{"path": "/a", "sha256": "x", "on": False}]}),),
            HistoryState(memory={"/a": ("x", False)}),
        ),
        (
            (("tools", {"name": "gh__*", "on": False}), ("tools", {"name": "gh__a", "on": True})),
            HistoryState(tools=(("gh__*", False), ("gh__a", True))),
        ),
        ((("loaded", {"names": ["b", "a"]}), ("loaded", {"names": ["a", "c"]})), HistoryState(loaded=("b", "a", "c"))),
        (
            (
                ("leave_out", {"message": "m1", "sha256": "s", "keep": 9, "frontier": "m1"}),
                ("leave_out", {"message": "m2", "sha256": "t", "frontier": "m2"}),
                ("restore", {"record": "r0"}),
            ),
            HistoryState(left_out={("m2", "t"): 0}, frontier="m2"),
        ),
        ((("of a later version", {}),), HistoryState()),
    ],
)
def test_records_fold_into_a_state(entries: tuple[tuple[str, dict[str, Any]], ...], state: HistoryState) -> None:
    assert folded(*entries) == state


def test_a_record_that_lacks_its_data_is_damage_and_the_others_are_read(tmp_path: Path) -> None:
    whole = record(0, "pin", {"id": "m1", "on": True})
    damaged = [record(number, kind, {}) for number, kind in enumerate(RecordKind, 1)]
    damaged += [
        record(90 + number, "memory", {"files": odd})
        for number, odd in enumerate((None, 5, [5], [{"path": "/a"}], "ab"))
    ]
    damaged += [record(95, "leave_out", {"message": "m1", "sha256": "x", "keep": float("inf")})]
    with closing(SessionStore(tmp_path / "chatctx.db")) as store:
        store.create_session(SessionInfo("s", "", "p", "m", 0.0, 0.0))
        store.add_records("s", [whole, *damaged])
        assert readable_records(store, "s") == [whole]
        assert store.damage.keys() == {f"s/{record.id}" for record in damaged}


KEEPS = Capabilities(reasoning_return="always")
SIGNED = Capabilities(reasoning_return="always", needs_signature=True)
LOOP = Capabilities(reasoning_return="tool_loop")


def target(able: Capabilities = KEEPS, **values: Any) -> Target:
    return replace(Target("p", "m", able), **values)


def message(role: Role, *parts: Part, ident: str = "", **values: Any) -> Message:
    return replace(Message(role, parts, id=ident), **values)


def thought(text: str = "hm", **values: Any) -> Reasoning:
    return replace(Reasoning(text, "p", "m"), **values)


def sent(*messages: Message, to: Target | None = None) -> tuple[Message, ...]:
    """What goes out, without the line before an answer that would come first."""
    out = build_request(messages, HistoryState(), to or target()).messages
    return out[1:] if out and out[0] is OPENING else out


def has_reasoning(messages: tuple[Message, ...]) -> list[bool]:
    return [any(isinstance(part, Reasoning) for part in m.parts) for m in messages]


def test_what_needs_no_change_is_the_same_object() -> None:
    history = (message("user", Text("hi")), message("assistant", thought(), Text("hello")))
    assert all(a is b for a, b in zip(sent(*history), history, strict=True))


TWO_TURNS = (
    message("user", Text("one"), ident="1"),
    message("assistant", thought(), ToolCall("c", "f", "{}"), ident="2"),
    message("tool", ToolResult("c", "f", "r"), ident="3"),
    message("assistant", thought(), Text("done"), ident="4"),
    message("user", Text("two"), ident="5"),
    message("assistant", thought(), ToolCall("d", "f", "{}"), ident="6"),
    message("tool", ToolResult("d", "f", "r"), ident="7"),
)


@pytest.mark.parametrize(
    ("able", "expected"),
    [
        (KEEPS, [False, True, False, True, False, True, False]),
        (LOOP, [False, False, False, False, False, True, False]),
        (Capabilities(reasoning_return="never"), [False] * 7),
        (Capabilities(reasoning_return="always", reasoning_needs_tools=True), [False] * 7),
    ],
)
def test_reasoning_goes_back_as_far_as_the_target_takes_it(able: Capabilities, expected: list[bool]) -> None:
    assert has_reasoning(sent(*TWO_TURNS, to=target(able))) == expected


def test_reasoning_that_needs_tools_goes_back_with_them() -> None:
    able = Capabilities(reasoning_return="always", reasoning_needs_tools=True)
    tools = (ToolSchema("f", "", "{}"),)
    assert sum(has_reasoning(sent(*TWO_TURNS, to=target(able, tools=tools)))) == 3


def test_reasoning_of_another_model_or_without_its_signature_stays_here() -> None:
    history = (
        message("user", Text("hi")),
        message("assistant", thought(signature=None), Text("unsigned")),
        message("assistant", thought(signature="s"), Text("signed")),
        message("assistant", thought("", redacted="r"), Text("redacted")),
        message("assistant", thought("", encrypted="e"), Text("encrypted")),
        message("assistant", thought(signature="s", model="other"), Text("switched")),
        message("assistant", thought(signature="s", provider="other"), Text("moved")),
    )
    assert has_reasoning(sent(*history, to=target(SIGNED))) == [False, False, True, True, True, False, False]


def test_an_answer_of_reasoning_alone_says_nothing_and_is_left_out() -> None:
    assert sent(message("user", Text("hi")), message("assistant", thought(signature="s"))) == (
        message("user", Text("hi")),
    )


def test_empty_text_and_empty_messages_do_not_go_out() -> None:
    history = (message("user", Text("  \n"), Text("hi")), message("assistant", Text("")), message("assistant"))
    assert sent(*history) == (message("user", Text("hi")),)


def test_where_needed_a_turn_without_an_answer_has_one_in_what_is_counted_and_shown() -> None:
    call = message("assistant", ToolCall("c", "f", "{}"))
    history = [message("user", Text("hi")), call, message("tool", ToolResult("c", "f", "A"), ident="3")]
    strict = target(Capabilities(bridges=True))
    assert [m.role for m in sent(*history, to=strict)] == ["user", "assistant", "tool"]  # it will answer now
    history.append(message("user", Text("Well?")))
    assert sent(*history, to=strict)[3] == message("assistant", Text("(no answer)"), ident="3-answer")
    assert [m.role for m in sent(*history)] == ["user", "assistant", "tool", "user"]


def test_an_answer_that_is_left_out_is_missing_too_where_one_is_needed() -> None:
    call, result = message("assistant", ToolCall("c", "f", "{}"), ident="2"), message("tool", ToolResult("c", "f", "A"))
    first, last = message("user", Text("hi"), ident="1"), message("user", Text("Well?"), ident="5")
    history = [first, call, replace(result, id="3"), message("assistant", Text("A."), ident="4"), last]
    state, strict = HistoryState(trim=TrimState(dropped=frozenset({"4"}))), target(Capabilities(bridges=True))
    trimmed = build_request(history, state, strict)
    assert [m.text for m in trimmed.messages[3:]] == [NO_ANSWER, "Well?"]
    assert Projection().requests(history, state, strict)[1] == trimmed


def test_a_call_without_a_result_is_answered_for() -> None:
    history = (message("user", Text("hi")), message("assistant", ToolCall("c", "f", "{}"), ident="9"))
    call, answer = sent(*history)[1:]
    assert answer == message("tool", ToolResult("c", "f", NO_RESULT, is_error=True), ident="9-results")
    assert call is history[1]


def test_a_result_without_a_call_and_a_second_one_are_left_out() -> None:
    history = (
        message("tool", ToolResult("stray", "f", "r")),
        message("assistant", ToolCall("c", "f", "{}")),
        message("tool", ToolResult("c", "f", "first"), ToolResult("c", "f", "second")),
    )
    assert [part for m in sent(*history) for part in m.parts if isinstance(part, ToolResult)] == [
        ToolResult("c", "f", "first")
    ]


def test_a_tool_message_without_a_result_is_left_out() -> None:
    history = (message("user", Text("hi")), message("tool", Text("of an import")))
    assert sent(*history) == history[:1]
    call, result = message("assistant", ToolCall("c", "f", "{}")), message("tool", ToolResult("c", "f", "r"))
    again = message("tool", Text("of an import"), ToolResult("c", "f", "r"))
    assert sent(call, result, again) == (call, result)


def test_a_result_that_came_late_stands_behind_its_call() -> None:
    history = (
        message("assistant", ToolCall("c", "f", "{}"), ident="1"),
        message("user", Text("meanwhile"), ident="2"),
        message("tool", ToolResult("c", "f", "late"), ident="3"),
    )
    assert [m.id for m in sent(*history)] == ["1", "3", "2"]


def test_ids_that_a_server_used_twice_are_told_apart() -> None:
    turn = (message("assistant", ToolCall("call_0", "f", "1")), message("tool", ToolResult("call_0", "f", "r")))
    once, answer, again, second = sent(*turn, *turn)
    assert call_ids(once) == answered_ids(answer) != call_ids(again) == answered_ids(second)


def test_an_id_is_never_given_that_another_call_has() -> None:
    ids = ("x-2", "x", "x")
    turns = [(message("assistant", ToolCall(i, "f", "1")), message("tool", ToolResult(i, "f", "r"))) for i in ids]
    calls = sent(*(one for turn in turns for one in turn))[::2]
    assert len(set().union(*map(call_ids, calls))) == 3


def test_two_calls_of_one_answer_with_the_same_id_get_their_results_in_order() -> None:
    history = (
        message("assistant", ToolCall("x", "f", "1"), ToolCall("x", "f", "2")),
        message("tool", ToolResult("x", "f", "one"), ToolResult("x", "f", "two")),
    )
    call, answer = sent(*history)
    ids = [part.id for part in call.parts if isinstance(part, ToolCall)]
    assert len(set(ids)) == 2
    assert [(p.call_id, p.text) for p in answer.parts if isinstance(p, ToolResult)] == list(
        zip(ids, ("one", "two"), strict=True)
    )


PICTURE = Attachment("image", "a.png", "image/png", "00", 9)


@pytest.mark.parametrize(
    ("able", "line"),
    [(Capabilities(), ()), (Capabilities(files_after_results=True), (Text("[from the result of f]"),))],
)
def test_files_of_a_result_are_named_where_they_follow_all_results(able: Capabilities, line: tuple[Text, ...]) -> None:
    result, note = ToolResult("c", "f", "A"), Text("a note")
    history = (
        message("assistant", ToolCall("c", "f", "{}")),
        message("tool", result, note, PICTURE, replace(PICTURE, sha256="01")),
    )
    assert sent(*history, to=target(able))[1].parts == (result, note, *line, PICTURE, replace(PICTURE, sha256="01"))


def test_what_belongs_to_no_result_that_is_sent_does_not_go_out() -> None:
    history = (
        message("assistant", ToolCall("c", "f", "{}")),
        message("tool", PICTURE, ToolResult("c", "f", "A"), ToolResult("gone", "f", "B"), Text("of B"), PICTURE),
    )
    assert sent(*history)[1].parts == (ToolResult("c", "f", "A"),)


@pytest.mark.parametrize(
    ("written", "out"),
    [
        (ToolCall("c", "f", '{"a": 1}'), ToolCall("c", "f", '{"a": 1}')),
        (ToolCall("c", "f", ""), ToolCall("c", "f", "")),
        (ToolCall("c", "multi.f", '{"a": '), ToolCall("c", "multi_f", r'{"invalid_json": "{\"a\": "}')),
    ],
)
def test_a_call_is_counted_and_shown_as_it_goes_out(written: ToolCall, out: ToolCall) -> None:
    calling = message("assistant", written, ident="1")
    (call, _) = sent(calling)
    assert call.parts == (out,)
    refused = HistoryState(left_out={("1", text_digest(out.arguments)): 0})  # as a server was told
    (short, _) = build_request([message("user", Text("hi")), calling], refused, target()).messages[1:]
    assert isinstance(part := short.parts[0], ToolCall) and "left out" in part.arguments


def test_what_no_server_takes_in_an_answer_does_not_go_out() -> None:
    """Pictures; and reasoning that nothing follows, as in a stopped answer."""
    details = thought(details="[]")  # OpenRouter's, which come at the end of an answer
    history = (
        message("assistant", thought(), Text("so"), PICTURE, details, thought()),
        message("user", Text("go on")),
    )
    able = target(Capabilities(reasoning_return="always"))
    assert sent(*history, to=able)[0].parts == (thought(), Text("so"), details)


def test_an_empty_result_is_said_to_be_one() -> None:
    history = (message("assistant", ToolCall("c", "f", "{}")), message("tool", ToolResult("c", "f", "")))
    assert sent(*history)[1].parts == (ToolResult("c", "f", EMPTY_RESULT),)


def test_set_aside_excluded_and_left_out() -> None:
    picture = Attachment("image", "a.png", "image/png", "00", 9)
    history = [
        message("user", picture, Text("look"), ident="1"),
        message("assistant", ToolCall("c", "f", "{}"), ident="2"),
        message("tool", ToolResult("c", "f", "r"), ident="3"),
        message("user", Text("gone"), ident="4"),
        message("user", Text("last"), ident="5"),
        message("assistant", Text("running"), ident="6", status="streaming"),
    ]
    state = HistoryState(set_aside=frozenset({"4"}), excluded=frozenset({"3"}), left_out={("1", "00"): 0})
    first, last = build_request(history, state, target()).messages
    assert "left out" in first.text
    assert not any(isinstance(part, Attachment) for part in first.parts)
    assert last is history[4]


def test_reasoning_a_server_refused_stays_here_and_what_came_later_goes() -> None:
    state = HistoryState(void="4")
    assert has_reasoning(build_request(TWO_TURNS, state, target()).messages) == [False] * 5 + [True, False]


PARTS: dict[Role, st.SearchStrategy[Part]] = {
    "user": st.builds(Text, st.sampled_from(["", " ", "words"])),
    "assistant": st.one_of(
        st.builds(Text, st.sampled_from(["", "words"])),
        st.builds(Refusal, st.just("no")),
        st.builds(thought, signature=st.none() | st.just("s")),
        st.builds(ToolCall, st.sampled_from("abc"), st.just("f"), st.just("{}")),
    ),
    "tool": st.builds(ToolResult, st.sampled_from("abcd"), st.just("f"), st.sampled_from(["", "r"])),
}


def of_role(role: Role) -> st.SearchStrategy[Message]:
    parts = PARTS[role] | st.one_of(*PARTS.values())  # a damaged or imported history may have any part anywhere
    return st.builds(Message, st.just(role), st.lists(parts, max_size=4).map(tuple))


MESSAGES = st.one_of(of_role("user"), of_role("assistant"), of_role("tool"))


@given(st.lists(MESSAGES, max_size=14), st.sampled_from([KEEPS, SIGNED, LOOP, Capabilities()]))
def test_whatever_the_history_holds_the_request_is_whole(history: list[Message], able: Capabilities) -> None:
    numbered = [replace(m, id=f"{n:04}") for n, m in enumerate(history)]
    before = list(numbered)
    messages = build_request(numbered, HistoryState(), target(able)).messages
    assert numbered == before
    ids_sent: set[str] = set()
    open_calls: list[str] = []
    for m in messages:
        assert m.parts
        assert m.role == "assistant" or not any(isinstance(part, ToolCall | Reasoning) for part in m.parts)
        if m.role == "tool":
            for part in m.parts:
                if isinstance(part, ToolResult):
                    assert part.text
                    open_calls.remove(part.call_id)
        else:
            assert not open_calls
            assert not any(isinstance(part, ToolResult) for part in m.parts)
            ids = [part.id for part in m.parts if isinstance(part, ToolCall)]
            assert len(set(ids)) == len(ids)
            assert not ids_sent & set(ids)
            ids_sent |= set(ids)
            open_calls = ids
    assert not open_calls
    assert build_request(messages, HistoryState(), target(able)).messages == messages


@pytest.mark.parametrize(
    ("able", "notes"),
    [
        (Capabilities(), ["", "[b.pdf is not shown: this model takes no PDFs]"]),
        (Capabilities(images=False, pdfs=True), ["[a.png is not shown: this model takes no images]", ""]),
        (Capabilities(pdfs=True), ["", ""]),
    ],
)
def test_a_model_is_told_of_attachments_it_does_not_take(able: Capabilities, notes: list[str]) -> None:
    parts = (
        Attachment("image", "a.png", "image/png", "a" * 64, 9),
        Attachment("pdf", "b.pdf", "application/pdf", "b" * 64, 9),
        Attachment("text", "c.txt", "text/plain", "c" * 64, 1, text="c"),
    )
    (out,) = sent(message("user", *parts), to=target(able))
    assert [part.text if isinstance(part, Text) else "" for part in out.parts] == [*notes, ""]


def test_a_request_never_begins_with_an_answer() -> None:
    history = (
        message("user", Text("first"), ident="1"),
        message("assistant", Text("answer"), ident="2"),
        message("user", Text("second"), ident="3"),
        message("assistant", Text("another"), ident="4"),
    )
    excluded = HistoryState(excluded=frozenset({"1"}))
    request = build_request(history, excluded, target())
    assert request.messages == (OPENING, *history[1:])
    trimmed = build_request(history, replace(excluded, trim=TrimState(dropped=frozenset({"2", "3"}))), target())
    assert trimmed.messages == (OPENING, history[3])
    later = replace(excluded, excluded=frozenset({"3"}), trim=TrimState(dropped=frozenset({"1", "2"})))
    whole, trimmed = Projection().requests(history, later, target())
    assert whole.messages[0] is history[0]
    assert trimmed.messages == (OPENING, history[3])

"""What readers share: which messages there are, what a compaction replaces, trees with a circle."""

from __future__ import annotations

from pathlib import Path

from tui.chat.conversation.history import fold_records
from tui.chat.conversation.projection import Target, build_request
from tui.chat.interchange.foreign.reading import Builder, SourceFile, ancestors, usage_apart
from tui.messages import Text, Usage


def sent(chat: Builder) -> list[str]:
    """The texts that would go out."""
    recording = chat.recording("test", "")
    request = build_request(recording.messages, fold_records(recording.records), Target("p", "m"))
    return [message.text for message in request.messages]


def test_only_an_answer_may_be_empty() -> None:
    chat = Builder()
    assert not chat.add("user", [])
    assert not chat.add("tool", [])
    assert chat.add("assistant", [])
    assert [message.role for message in chat.messages] == ["assistant"]


def test_each_compaction_replaces_what_stands_since_the_one_before() -> None:
    chat = Builder()
    chat.add("user", [Text("one")])
    chat.compact([Text("first summary")], 1.0)
    assert sent(chat) == ["first summary"]
    chat.add("user", [Text("two")])
    three = chat.add("user", [Text("three")])
    assert chat.context_from(0)[-2:] == chat.context_from(2) and chat.context_from(3) == [three]
    chat.compact([Text("second summary")], 2.0, verbatim=[three])
    chat.add("user", [Text("four")])
    assert sent(chat) == ["second summary", "three", "four"]


def test_what_stayed_beside_one_summary_may_stay_beside_the_next() -> None:
    chat = Builder()
    chat.add("user", [Text("zero")])
    one = chat.add("user", [Text("one")])
    chat.compact([Text("first summary")], 1.0, verbatim=[one])
    chat.add("user", [Text("two")])
    assert chat.messages[chat.start].id == one
    chat.compact([Text("second summary")], 2.0, verbatim=[one])
    assert sent(chat) == ["second summary", "one"]
    chat.compact([Text("third summary")], 3.0)
    assert sent(chat) == ["third summary"]


def test_an_empty_summary_replaces_the_context_too() -> None:
    chat = Builder()
    chat.add("user", [Text("one")])
    chat.compact([], 1.0)
    chat.add("user", [Text("two")])
    assert sent(chat) == ["two"]
    assert [message.kind for message in chat.messages] == ["chat", "summary", "chat"]


def test_a_circle_of_parents_ends() -> None:
    assert ancestors({"a": "b", "b": "c", "c": "a"}, "a") == ["a", "b", "c"]
    assert ancestors({"a": None}, "z") == []


def test_a_parent_that_is_no_id_is_none() -> None:
    assert ancestors({"a": "b", "b": ["c"]}, "a") == ["a", "b"]
    assert ancestors({"a": None}, ["a"]) == []


def test_a_usage_without_input_is_none() -> None:
    assert usage_apart({"in": 5, "out": 3, "read": 10}, "in", "out", "read", "write") == Usage(15, 3, 10, 0)
    assert usage_apart({"out": 3}, "in", "out", "read", "write") is None
    assert usage_apart(None, "in", "out", "read", "write") is None


def test_each_of_many_damaged_lines_is_numbered(tmp_path: Path) -> None:
    """Each took as long as all before it, since the decoder's errors count the lines up to them."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n' + '{"b": \nlog\n{x\n' * 10_000 + '{"c": 2}\n', encoding="utf-8")
    file = SourceFile(path)
    assert file.lines == ({"a": 1}, {"c": 2})
    assert file.damaged == [number for start in range(2, 30_002, 3) for number in (start, start + 2)]

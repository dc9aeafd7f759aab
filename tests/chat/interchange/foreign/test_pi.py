"""pi."""

from __future__ import annotations

from pathlib import Path

from tests.chat.interchange.foreign.files import pi_answer, pi_line, pi_message, sent, write
from tests.recordings import read_recording
from tui.chat.conversation.history import fold_records
from tui.chat.conversation.projection import Target, build_request
from tui.messages import Text, ToolCall, ToolResult, Usage


def test_pi_messages_and_usage(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        {"type": "session", "id": "x"},
        pi_message("user", [{"type": "text", "text": "hello"}]),
        pi_answer([{"type": "toolCall", "id": "c1", "name": "read", "arguments": {"a": 1}}], "toolUse"),
        pi_message("toolResult", [{"type": "text", "text": "found"}], toolCallId="c1", toolName="read", isError=True),
        pi_message("bashExecution", None, command="ls", output="a b"),
        pi_answer([{"type": "text", "text": "cut"}, {"type": "toolCall", "id": "c2", "name": "x"}], "aborted", 0),
    )
    recording = read_recording(path)
    hello, called, result, ran, cut = recording.messages
    assert (recording.source, hello.text) == ("pi", "hello")
    assert called.parts == (ToolCall("c1", "read", '{"a": 1}'),)
    assert called.usage == Usage(100, 7, 90, 0)
    assert result.parts == (ToolResult("c1", "read", "found", True),)
    assert (ran.kind, "ls" in ran.text) == ("injected", True)
    assert (cut.status, cut.parts, cut.usage) == ("cancelled", (Text("cut"),), None)


def test_pi_compactions_keep_what_they_say(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        {"type": "session", "id": "x"},
        pi_message("user", "one"),
        pi_answer([{"type": "text", "text": "two"}]),
        pi_message("user", "three"),
        pi_answer([{"type": "text", "text": "four"}]),
        {"type": "compaction", "summary": "sum A", "firstKeptEntryIndex": 3},
        pi_message("user", "five"),
        {"type": "compaction", "summary": "sum B", "firstKeptEntryIndex": 6},
        pi_message("user", "six"),
    )
    recording = read_recording(path)

    def sent(records: int) -> list[str]:
        state = fold_records(recording.records[:records])
        messages = build_request(recording.messages, state, Target("anthropic", "m")).messages
        return [message.text.rpartition("\n")[2] for message in messages if message.kind != "summary" or records]

    assert sent(1)[:3] == ["sum A", "three", "four"]
    assert sent(2) == ["sum B", "five", "six"]


def test_pi_compactions_of_later_versions_name_an_entry(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        {"type": "session", "id": "x", "version": 3},
        pi_message("user", "one") | {"id": "e1"},
        pi_message("user", "two") | {"id": "e2"},
        {"type": "compaction", "id": "e3", "summary": "sum", "firstKeptEntryId": "e2"},
    )
    recording = read_recording(path)
    messages = build_request(recording.messages, fold_records(recording.records), Target("p", "m")).messages
    assert [message.text.rpartition("\n")[2] for message in messages] == ["sum", "two"]


def test_pi_branches_that_were_left_are_set_aside(tmp_path: Path) -> None:
    path = write(
        tmp_path / "pi.jsonl",
        {"type": "session", "version": 3},
        pi_line("1", None, "user", "first"),
        pi_line("2", "1", "assistant", "left"),
        pi_line("3", "1", "assistant", "taken"),
        {"type": "custom_message", "id": "4", "parentId": "3", "content": "from an extension"},
        {"type": "custom", "id": "5", "parentId": "4", "data": {}},
        pi_line("6", "5", "user", "second"),
    )
    assert sent(read_recording(path)) == ["first", "taken", "from an extension", "second"]

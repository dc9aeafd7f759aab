from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.recordings import read_recording
from tui.chat.conversation.history import fold_records
from tui.chat.conversation.projection import Target, build_request
from tui.chat.interchange.jsonl import write_jsonl
from tui.chat.interchange.recording import RecordingError
from tui.chat.store.store import Record, SessionInfo
from tui.messages import Attachment, Message, Reasoning, Text, ToolCall, ToolResult, Usage


def write(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n", encoding="utf-8")
    return path


def claude_line(kind: str, content: Any, request_id: str = "", **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": kind, "content": content, **more.pop("message", {})}
    return {"type": kind, "sessionId": "x", "requestId": request_id or None, "message": message, **more}


def claude_answer(content: Any, request_id: str, output: int, model: str = "claude-opus-4-6", **usage: Any) -> Any:
    counts = {"input_tokens": 3, "cache_read_input_tokens": 1_000, "cache_creation_input_tokens": 20, **usage}
    counts["output_tokens"] = output
    return claude_line("assistant", content, request_id, message={"model": model, "usage": counts})


def test_claude_code_an_answer_over_several_lines_is_one_message(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        {"type": "file-history-snapshot", "snapshot": {}},
        claude_line("user", "look at it"),
        claude_answer([{"type": "thinking", "thinking": "hm", "signature": "sig"}], "r1", 1),
        claude_answer([{"type": "tool_use", "id": "c1", "name": "Read", "input": {"path": "a"}}], "r1", 1),
        claude_line("user", [{"type": "tool_result", "tool_use_id": "c1", "content": "first result"}]),
        claude_answer([{"type": "tool_use", "id": "c2", "name": "Read", "input": {}}], "r1", 77),
        claude_line("user", [{"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "2"}]}]),
        claude_answer([{"type": "text", "text": "side"}], "r9", 5) | {"isSidechain": True},
        claude_answer([{"type": "text", "text": "API Error"}], "r8", 0, model="<synthetic>"),
        claude_answer([{"type": "text", "text": "done"}], "r2", 9),
    )
    recording = read_recording(path)
    assert recording.source == "claude-code"
    assert recording.title == "look at it"
    assert recording.model == ("anthropic", "claude-opus-4-6")
    assert [message.role for message in recording.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    first = recording.messages[1]
    assert [type(part) for part in first.parts] == [Reasoning, ToolCall, ToolCall]
    assert first.usage == Usage(1_023, 77, 1_000, 20)
    results = [part for m in recording.messages[2:4] for part in m.parts]
    assert results == [ToolResult("c1", "Read", "first result"), ToolResult("c2", "Read", "2")]


def test_claude_code_a_compaction_starts_a_new_context(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        claude_line("user", "one"),
        claude_answer([{"type": "text", "text": "two"}], "r1", 9),
        claude_line("user", "what happened so far") | {"isCompactSummary": True},
        claude_line("user", "three"),
        claude_answer([{"type": "text", "text": "four"}], "r2", 9),
    )
    recording = read_recording(path)
    request = build_request(recording.messages, fold_records(recording.records), Target("anthropic", "m"))
    assert [message.text for message in request.messages] == ["what happened so far", "three", "four"]
    assert request.messages[0].kind == "summary"
    assert len(recording.messages) == 5  # nothing is lost


def test_claude_code_going_back_sets_the_other_branch_aside(tmp_path: Path) -> None:
    def at(line: dict[str, Any], uuid: str, parent: str | None) -> dict[str, Any]:
        return line | {"uuid": uuid, "parentUuid": parent}

    call = {"type": "tool_use", "id": "c", "name": "Read", "input": {}}
    path = write(
        tmp_path / "a.jsonl",
        at(claude_line("user", "one"), "1", None),
        at(claude_answer([{"type": "text", "text": "two"}], "r1", 9), "2", "1"),
        at(claude_line("user", "wrong way"), "3", "2"),
        at(claude_answer([call], "r2", 9), "4", "3"),
        at(claude_line("user", [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]), "5", "4"),
        at(claude_answer([{"type": "text", "text": "lost"}], "r3", 9), "6", "5"),
        {"type": "progress", "uuid": "7", "parentUuid": "2", "sessionId": "x"},
        at(claude_line("user", "right way"), "8", "7"),
        at(claude_answer([{"type": "text", "text": "good"}], "r4", 9), "9", "8"),
    )
    recording = read_recording(path)
    request = build_request(recording.messages, fold_records(recording.records), Target("anthropic", "m"))
    assert [message.text for message in request.messages] == ["one", "two", "right way", "good"]
    assert len(recording.messages) == 8


def test_claude_code_parallel_calls_are_no_rewind(tmp_path: Path) -> None:
    def at(line: dict[str, Any], uuid: str, parent: str | None) -> dict[str, Any]:
        return line | {"uuid": uuid, "parentUuid": parent}

    calls = [{"type": "tool_use", "id": f"c{n}", "name": "Read", "input": {}} for n in range(2)]
    results = [{"type": "tool_result", "tool_use_id": f"c{n}", "content": "x"} for n in range(2)]
    path = write(
        tmp_path / "a.jsonl",
        at(claude_line("user", "one"), "1", None),
        at(claude_answer([calls[0]], "r1", 9), "2", "1"),
        at(claude_answer([calls[1]], "r1", 9), "3", "2"),
        at(claude_line("user", [results[0]]), "4", "2"),
        at(claude_line("user", [results[1]]), "5", "3"),
        at(claude_answer([{"type": "text", "text": "done"}], "r2", 9), "6", "4"),
        at(claude_line("user", "two"), "7", "6"),
    )
    assert read_recording(path).records == ()


def test_claude_code_images_in_results_are_kept_by_hash(tmp_path: Path) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}
    path = write(
        tmp_path / "a.jsonl",
        claude_line("user", [{"type": "tool_result", "tool_use_id": "c", "content": [image]}, image]),
        claude_answer([{"type": "text", "text": "seen"}], "r1", 9),
    )
    recording = read_recording(path)
    parts = recording.messages[0].parts
    assert isinstance(parts[0], ToolResult)
    assert isinstance(parts[1], Attachment)
    assert recording.blobs[parts[1].sha256] == b"hello"


def pi_message(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message", "message": {"role": role, "content": content, **more}}


def pi_answer(content: Any, stop: str = "stop", total: int = 100) -> dict[str, Any]:
    usage = {"input": 10 if total else 0, "output": 7, "cacheRead": max(0, total - 10), "cacheWrite": 0}
    return pi_message("assistant", content, provider="anthropic", model="m", usage=usage, stopReason=stop)


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


def test_gemini_cli(tmp_path: Path) -> None:
    data = {
        "sessionId": "x",
        "messages": [
            {"type": "user", "content": "do it", "timestamp": "2026-01-01T00:00:00Z"},
            {"type": "info", "content": "update available"},
            {
                "type": "gemini",
                "content": "doing",
                "thoughts": [{"subject": "Plan", "description": "first this"}],
                "tokens": {"input": 120, "output": 10, "cached": 100, "thoughts": 30, "tool": 0, "total": 160},
                "model": "gemini-2.5-flash",
                "toolCalls": [
                    {
                        "id": "c",
                        "name": "write",
                        "args": {"path": "a"},
                        "result": [{"functionResponse": {"response": {"output": "ok"}}}],
                        "status": "success",
                    }
                ],
            },
        ],
    }
    path = tmp_path / "a.json"
    path.write_text(json.dumps(data, indent=2), encoding="utf-8")
    recording = read_recording(path)
    question, reply, tool = recording.messages
    assert (recording.source, question.text, question.created_at) == ("gemini-cli", "do it", 1_767_225_600.0)
    assert reply.usage == Usage(120, 40, 100, reasoning=30)
    assert tool.parts == (ToolResult("c", "write", "ok"),)


def test_our_own_export_loses_nothing(tmp_path: Path) -> None:
    messages = (
        Message("user", (Text("hello \ud800"),), id="1", created_at=1.0),
        Message(
            "assistant", (Reasoning("t", "p", "m", signature=""), Text("hi")), id="2", usage=Usage(5, 6), model="m"
        ),
    )
    records = (Record("3", "pin", 2.0, {"id": "1", "on": True}),)
    info = SessionInfo("s", "a title", "p", "m", 0.0, 0.0)
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(write_jsonl(info, messages, records, (), [("ff", b"data")])) + "\n", encoding="utf-8")
    recording = read_recording(path)
    assert (recording.source, recording.title) == ("chatctx", "a title")
    assert (recording.messages, recording.records, recording.blobs) == (messages, records, {"ff": b"data"})


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", claude_line("user", "one"), claude_line("user", "two"))
    path.write_text(path.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    assert [message.text for message in read_recording(path).messages] == ["one"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "not a conversation"),
        ("{}", "not a conversation"),
        ("[1, 2]", "not a conversation"),
        ("hello\nworld\n", "not a conversation"),
        ('{"type": "session"}\n', "no messages"),
        ('{"type": "session"}\n{"type": "message", "message": {"role": "toolResult"}}\n', "damaged"),
        ('{"sessionId": "x", "messages": [7]}', "damaged"),
        ('{"format": "chatctx-session"}\n{"type": "message", "message": {"role": "user"}}\n', "damaged"),
        ("\x00\x01\x02", "not a conversation"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(RecordingError, match=says) as error:
        read_recording(path)
    assert "\n" not in str(error.value)
    assert "odd.jsonl" in str(error.value)


def test_a_missing_file_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="No such file"):
        read_recording(tmp_path / "none.jsonl")
    with pytest.raises(RecordingError):
        read_recording(tmp_path)

"""What Claude Code sends beside the conversation, and what its files leave out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chat.interchange.foreign.files import claude_answer, claude_line, sent, write
from tests.recordings import read_recording
from tui.chat.conversation.history import RecordKind, fold_records
from tui.chat.conversation.projection import Target, build_request
from tui.chat.interchange.foreign import read_recordings
from tui.chat.interchange.recording import Recording
from tui.chat.interchange.replay import replay
from tui.messages import Attachment, Reasoning, ToolCall, ToolResult, Usage


def attachment(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "attachment", "sessionId": "x", "attachment": {"type": kind, **fields}}


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


def read(tmp_path: Path, *lines: dict[str, Any]) -> Recording:
    (recording,) = read_recordings(write(tmp_path / "a.jsonl", claude_line("user", "hello"), *lines))
    return recording


FILE = {"type": "text", "file": {"filePath": "/a.py", "content": "one\ntwo", "startLine": 9}}


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        (attachment("file", filename="/a.py", content=FILE), "/a.py\n9\tone\n10\ttwo"),
        (attachment("edited_text_file", filename="/a.py", snippet="3\tx = 1"), "/a.py\n3\tx = 1"),
        (attachment("nested_memory", path="/CLAUDE.md", content={"content": "be brief"}), "/CLAUDE.md\nbe brief"),
        (attachment("instructions", files=[{"path": "/CLAUDE.md", "content": "be brief"}]), "/CLAUDE.md\nbe brief"),
        (attachment("invoked_skills", skills=[{"name": "plan", "content": "think"}]), "plan\nthink"),
        (attachment("skill_listing", content="- plan", names=["plan"], skillCount=1), "- plan"),
        (attachment("deferred_tools_delta", addedNames=["A"], addedLines=["A: does a"], removedNames=["B"]),
         "A: does a\nB"),
        (attachment("deferred_tools_delta", addedNames=["A"], addedLines=[]), "A"),
        (attachment("task_reminder", content=[{"id": "1", "status": "pending", "subject": "s", "description": "d"}]),
         "#1. [pending] s"),
        (attachment("hook_additional_context", hookName="h", content=["now"]), "now"),
        (attachment("hook_success", hookEvent="SessionStart", content="hi", stdout="{}"), "hi"),
        (attachment("hook_success", hookEvent="PostToolUse", content="hi"), None),
        (attachment("hook_system_message", content="for the screen"), None),
        (attachment("already_read_file", filename="/a.py", content=FILE), None),
        (attachment("prompt_snapshot", systemPrompt=["You are"]), None),
        (attachment("a_kind_of_tomorrow", text="words"), "words"),
        (attachment("plan_mode", reminderType="sparse", planFilePath="/plan.md"), None),
    ],
)  # fmt: skip
def test_an_attachment_goes_out_as_what_the_model_reads_of_it(
    tmp_path: Path, line: dict[str, Any], sent: str | None
) -> None:
    recording = read(tmp_path, line)
    assert [m.text for m in recording.messages[1:]] == ([] if sent is None else [sent])
    assert all(m.kind == "injected" for m in recording.messages[1:])
    assert not read(tmp_path, line, claude_answer(text("hi"), "r1", 9)).unpredictable


def test_a_picture_named_with_at_is_a_picture(tmp_path: Path) -> None:
    content = {"type": "image", "file": {"base64": "aGVsbG8=", "type": "image/jpeg"}}
    recording = read(tmp_path, attachment("file", filename="/a.jpg", content=content))
    (part,) = recording.messages[1].parts
    assert isinstance(part, Attachment)
    assert (part.media_type, recording.blobs[part.sha256]) == ("image/jpeg", b"hello")


def loaded(call: str = "c") -> list[dict[str, Any]]:
    search = {"type": "tool_use", "id": call, "name": "ToolSearch", "input": {"query": "x"}}
    references = [{"type": "tool_reference", "tool_name": name} for name in ("Alpha", "Beta")]
    return [
        claude_answer([search], "r2", 9),
        claude_line("user", [{"type": "tool_result", "tool_use_id": call, "content": references}]),
    ]


@pytest.mark.parametrize(
    ("between", "what"),
    [
        (loaded(), "the schemas of tools that were loaded"),
        ([attachment("plan_mode", reminderType="full")], "the instructions of plan mode"),
        ([attachment("auto_mode")], "the instructions of auto mode"),
    ],
)
def test_a_call_with_more_than_the_file_tells_is_not_scored(
    tmp_path: Path, between: list[dict[str, Any]], what: str
) -> None:
    recording = read(
        tmp_path,
        claude_answer(text("hi"), "r1", 9),
        *between,
        claude_answer(text("there"), "r3", 9, cache_read_input_tokens=90_000),
        claude_line("user", "again"),
        claude_answer(text("done"), "r4", 9, cache_read_input_tokens=90_020),
    )
    replayed = replay(recording, "a")
    assert replayed.unpredictable == {f"the file lacks {what}": 1}
    usage = recording.messages[-1].usage
    assert usage is not None and replayed.scored[-1].actual == usage.input_total
    assert abs(replayed.scored[-1].error_percent) < 0.1


def test_a_call_whose_server_searched_the_web_is_not_scored(tmp_path: Path) -> None:
    answer = claude_answer(text("found"), "r1", 9, server_tool_use={"web_search_requests": 2})
    assert replay(read(tmp_path, answer), "a").unpredictable == {"the file lacks what the server read by itself": 1}


def test_names_of_loaded_tools_are_the_result(tmp_path: Path) -> None:
    recording = read(tmp_path, *loaded())
    assert recording.messages[-1].parts == (ToolResult("c", "ToolSearch", "Loaded: Alpha, Beta"),)


def test_results_that_it_cleared_go_out_as_a_fixed_line(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "c", "name": "Read", "input": {}}
    recording = read(
        tmp_path,
        claude_answer([call], "r1", 9),
        claude_line("user", [{"type": "tool_result", "tool_use_id": "c", "content": "long " * 500}]),
        claude_answer(text("read"), "r2", 9),
        {
            "type": "system",
            "subtype": "microcompact_boundary",
            "microcompactMetadata": {"compactedToolIds": ["c", "?"]},
        },
        claude_line("user", "next"),
    )
    request = build_request(recording.messages, fold_records(recording.records), Target("anthropic", "m"))
    (result,) = (part for m in request.messages for part in m.parts if isinstance(part, ToolResult))
    assert len(result.text) < 100
    whole = recording.messages[2].parts[0]
    assert isinstance(whole, ToolResult) and len(whole.text) == 2_500


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


def test_claude_code_keeps_what_was_typed_while_it_worked(tmp_path: Path) -> None:
    def attachment(**data: Any) -> dict[str, Any]:
        return {"type": "attachment", "sessionId": "x", "attachment": data}

    def queue(operation: str, **more: Any) -> dict[str, Any]:
        return {"type": "queue-operation", "operation": operation, "sessionId": "x", **more}

    path = write(
        tmp_path / "a.jsonl",
        claude_line("user", "start"),
        queue("enqueue", content="wait, the other one"),
        queue("enqueue", content="said later"),
        queue("enqueue", content="/model"),
        claude_answer([{"type": "text", "text": "working"}], "r1", 5),
        queue("remove"),
        queue("dequeue"),
        claude_line("user", "said later"),
        attachment(type="queued_command", prompt="and stop there", commandMode="prompt", origin={"kind": "human"}),
        attachment(type="edited_text_file", filename="a.py", snippet="1 x = 2"),
        attachment(type="hook_system_message", content="for the screen"),
        claude_answer([{"type": "text", "text": "done"}], "r2", 5),
    )
    recording = read_recording(path)
    typed = [message.text for message in recording.messages if message.role == "user" and message.kind == "chat"]
    assert typed == ["start", "wait, the other one", "said later", "and stop there"]
    injected = [message.text for message in recording.messages if message.kind == "injected"]
    assert injected == ["a.py\n1 x = 2"]


def test_claude_code_a_sub_agents_file_is_its_own_conversation(tmp_path: Path) -> None:
    side = {"isSidechain": True}
    answer = claude_answer([{"type": "text", "text": "here"}], "r1", 5)
    path = write(tmp_path / "agent-1.jsonl", claude_line("user", "find it") | side, answer | side)
    assert [message.text for message in read_recording(path).messages] == ["find it", "here"]


def test_claude_code_what_was_typed_before_a_rewind_is_still_sent(tmp_path: Path) -> None:
    def at(line: dict[str, Any], uuid: str, parent: str | None) -> dict[str, Any]:
        return line | {"uuid": uuid, "parentUuid": parent}

    path = write(
        tmp_path / "a.jsonl",
        at(claude_line("user", "one"), "1", None),
        at(claude_answer(text("two"), "r1", 9), "2", "1"),
        {"type": "queue-operation", "operation": "enqueue", "sessionId": "x", "content": "typed meanwhile"},
        {"type": "queue-operation", "operation": "dequeue", "sessionId": "x"},
        at(claude_answer(text("three"), "r2", 9), "3", "2"),
        at(claude_line("user", "wrong way"), "4", "3"),
        at(claude_answer(text("lost"), "r3", 9), "5", "4"),
        at(claude_line("user", "right way"), "6", "3"),
        at(claude_answer(text("good"), "r4", 9), "7", "6"),
    )
    assert sent(read_recording(path)) == ["one", "two", "typed meanwhile", "three", "right way", "good"]


def test_claude_code_a_rewind_is_recorded_once(tmp_path: Path) -> None:
    turns = [("wrong way", "lost"), ("right way", "good"), ("on", "well"), ("on", "done")]
    lines = []
    for number, (question, reply) in enumerate(turns):
        parent = f"a{number - 1}" if number > 1 else None
        lines += [
            claude_line("user", question) | {"uuid": f"u{number}", "parentUuid": parent or "root"},
            claude_answer(text(reply), f"r{number}", 9) | {"uuid": f"a{number}", "parentUuid": f"u{number}"},
        ]
    first = claude_line("user", "begin") | {"uuid": "begin", "parentUuid": None}
    root = claude_answer(text("yes"), "r", 9) | {"uuid": "root", "parentUuid": "begin"}
    recording = read_recording(write(tmp_path / "a.jsonl", first, root, *lines))
    assert [record.kind for record in recording.records] == [RecordKind.SET_ASIDE]
    assert sent(recording) == ["begin", "yes", "right way", "good", "on", "well", "on", "done"]

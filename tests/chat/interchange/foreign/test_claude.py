"""What Claude Code sends beside the conversation, and what its files leave out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chat.interchange.foreign.test_foreign import claude_answer, claude_line, write
from tui.chat.conversation.history import fold_records
from tui.chat.conversation.projection import Target, build_request
from tui.chat.interchange.foreign import read_recordings
from tui.chat.interchange.recording import Recording
from tui.chat.interchange.replay import replay
from tui.messages import Attachment, ToolResult


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

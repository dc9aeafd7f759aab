"""opencode: exports, and its database."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.chat.interchange.foreign.files import sent, write
from tests.recordings import read_recording
from tui.chat.conversation.history import fold_records
from tui.chat.conversation.projection import Target, build_request
from tui.chat.interchange.replay import recorded_calls
from tui.messages import ToolResult, Usage


def opencode_message(role: str, *parts: dict[str, Any], created: int = 0, **info: Any) -> dict[str, Any]:
    about = {"id": f"msg_{created}", "role": role, "time": {"created": created}, **info}
    if role == "assistant":
        about |= {"providerID": "openai", "modelID": "gpt-5.4"}
    return {"info": about, "parts": list(parts)}


def step(**tokens: Any) -> dict[str, Any]:
    return {"type": "step-finish", "reason": "stop", "tokens": tokens}


OPENCODE: dict[str, Any] = {
    "info": {"id": "ses_1", "title": "a title", "projectID": "p"},
    "messages": [
        opencode_message(
            "user", {"type": "text", "text": "look"}, {"type": "text", "text": "a reminder", "synthetic": True}
        ),
        opencode_message(
            "assistant",
            {"type": "reasoning", "text": "hm"},
            {
                "type": "tool",
                "tool": "read",
                "callID": "c1",
                "state": {
                    "status": "completed",
                    "input": {"path": "a"},
                    "output": "long",
                    "time": {"compacted": 2_500},
                },
            },
            step(input=90, output=20, reasoning=5, total=120, cache={"read": 10, "write": 0}),
            created=1_000,
        ),
        opencode_message("user", {"type": "text", "text": "and now?"}, created=2_000),
        opencode_message("user", {"type": "text", "text": "well?"}, created=3_000),
    ],
}


def test_opencode(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(OPENCODE, indent=2), encoding="utf-8")
    recording = read_recording(path)
    assert (recording.source, recording.title, recording.skipped) == ("opencode", "a title", "")
    question, reminder, answer, result, _, _ = recording.messages
    assert (question.text, reminder.text, reminder.kind) == ("look", "a reminder", "injected")
    assert answer.usage == Usage(100, 20, 10, 0, 5)  # total says that the output has the reasoning in it
    assert result.parts == (ToolResult("c1", "read", "long"),)
    state = fold_records(recording.records)
    request = build_request(recording.messages, state, Target(*recording.model))
    results = [part.text for message in request.messages for part in message.parts if isinstance(part, ToolResult)]
    assert results != ["long"]
    assert len(results) == 1  # cleared by opencode before the third message


def test_opencode_a_compaction_is_a_summary_whose_call_is_paid(tmp_path: Path) -> None:
    messages = [
        *OPENCODE["messages"][:3],
        opencode_message(
            "assistant", {"type": "text", "text": "so far: nothing"}, step(), created=2_100, summary=True,
            tokens={"input": 200, "output": 10, "reasoning": 0, "cache": {"read": 0, "write": 0}},
        ),
        opencode_message("user", {"type": "text", "text": "go on"}, created=3_000),
    ]  # fmt: skip
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**OPENCODE, "messages": messages}), encoding="utf-8")
    recording = read_recording(path)
    assert sent(recording)[-2:] == ["so far: nothing", "go on"]
    summary = recording.messages[-2]
    assert (summary.kind, summary.usage) == ("summary", Usage(200, 10, 0, 0, 0))


@pytest.mark.parametrize("honest", [False, True])
def test_opencode_what_copilot_counted_twice_is_counted_once(tmp_path: Path, honest: bool) -> None:
    """A call after tool results, in which the model thinks. What the next one reads from the cache tells."""

    def answer(input_: int, read: int, created: int) -> dict[str, Any]:
        tool = {"type": "tool", "tool": "read", "callID": f"c{created}", "state": {"output": "found"}}
        tokens = step(input=input_, output=20, reasoning=0, total=input_ + read + 20, cache={"read": read, "write": 0})
        message = opencode_message("assistant", {"type": "reasoning", "text": "hm"}, tool, tokens, created=created)
        message["info"] |= {"providerID": "github-copilot", "modelID": "claude-sonnet-4.6"}
        return message

    question = opencode_message("user", {"type": "text", "text": "look"})
    third = 1_601 if honest else 1_299
    answers = [answer(1_000, 0, 1_000), answer(601, 999, 2_000), answer(41, third, 3_000)]
    path = write(tmp_path / "a.json", OPENCODE | {"messages": [question, *answers]})
    recording = read_recording(path)
    second, last = (recording.messages[at] for at in (3, 5))
    assert second.usage is not None
    assert second.usage.input_total == 1_600  # as it was reported
    assert recording.corrected == ({} if honest else {second.id: 1_300, last.id: 1_320})
    assert recording.unpredictable.keys() == recording.corrected.keys()
    assert [call.believed.input_total for call in recorded_calls(recording)][1] == (1_600 if honest else 1_300)


def test_opencode_database(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with sqlite3.connect(path) as db:
        db.executescript(
            "CREATE TABLE session (id TEXT, title TEXT, revert TEXT);"
            "CREATE TABLE message (id TEXT, session_id TEXT, data TEXT);"
            "CREATE TABLE part (id TEXT, message_id TEXT, data TEXT)"
        )
        db.execute("INSERT INTO session VALUES ('ses_1', 'a title', NULL)")
        for entry in OPENCODE["messages"]:
            ident = entry["info"]["id"]
            db.execute("INSERT INTO message VALUES (?, 'ses_1', ?)", (ident, json.dumps(entry["info"])))
            for number, part in enumerate(entry["parts"]):
                db.execute("INSERT INTO part VALUES (?, ?, ?)", (f"prt_{ident}_{number}", ident, json.dumps(part)))
    db.close()
    recording = read_recording(path)
    assert sent(recording) == ["look", "a reminder", "", "", "and now?", "well?"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["opencode.db"]  # read without files of our own


def test_a_database_is_not_read_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.chat.interchange.foreign.reading.MAX_BYTES", 1_000)
    test_opencode_database(tmp_path)

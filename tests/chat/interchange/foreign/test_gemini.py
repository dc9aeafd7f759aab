"""Gemini CLI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.chat.interchange.foreign.files import write
from tests.recordings import read_recording
from tui.messages import ToolCall, ToolResult, Usage


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


def gemini_message(ident: str, kind: str, content: str, **more: Any) -> dict[str, Any]:
    return {"id": ident, "type": kind, "content": content, "timestamp": "2026-05-01T10:00:00Z", **more}


def test_gemini_jsonl_the_last_line_of_a_message_counts(tmp_path: Path) -> None:
    tokens = {"input": 100, "output": 7, "cached": 3, "thoughts": 2, "tool": 0, "total": 109}
    path = write(
        tmp_path / "session.jsonl",
        {"sessionId": "s", "projectHash": "h", "kind": "main"},
        gemini_message("1", "user", "first"),
        gemini_message("2", "gemini", "", model="gemini-3"),
        {"$set": {"lastUpdated": "x"}},
        gemini_message("2", "gemini", "one", model="gemini-3", tokens=tokens),
        gemini_message("3", "user", "gone"),
        {"$rewindTo": "3"},
        gemini_message("4", "user", "second"),
    )
    recording = read_recording(path)
    assert [message.text for message in recording.messages] == ["first", "one", "second"]
    assert recording.messages[1].usage == Usage(100, 9, 3, reasoning=2)


def test_gemini_a_saved_chat(tmp_path: Path) -> None:
    call = {"functionCall": {"name": "ls", "args": {}}}
    history = [
        {"role": "user", "parts": [{"text": "list"}]},
        {"role": "model", "parts": [{"text": "thinking", "thought": True}, call]},
        {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"output": "a"}}}]},
    ]
    path = tmp_path / "checkpoint-x.json"
    path.write_text(json.dumps(history), encoding="utf-8")
    recording = read_recording(path)
    assert recording.unscored
    ident = recording.messages[1].parts[1]
    assert isinstance(ident, ToolCall)
    assert recording.messages[2].parts == (ToolResult(ident.id, "ls", "a"),)

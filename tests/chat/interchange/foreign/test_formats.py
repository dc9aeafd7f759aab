"""One conversation in the form of each program that has no file of tests of its own."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.chat.interchange.foreign.files import sent, write
from tests.recordings import read_recording
from tui.chat.interchange.foreign import read_recordings
from tui.messages import Attachment, Reasoning, Text, ToolResult, Usage


def test_qwen_the_last_branch_is_the_conversation(tmp_path: Path) -> None:
    def line(uuid: str, parent: str | None, kind: str, text: str, **more: Any) -> dict[str, Any]:
        message = {"role": "model" if kind == "assistant" else "user", "parts": [{"text": text}]}
        return {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": kind, "message": message, **more}

    usage = {"promptTokenCount": 50, "candidatesTokenCount": 4, "thoughtsTokenCount": 1, "cachedContentTokenCount": 2}
    path = write(
        tmp_path / "chat.jsonl",
        line("1", None, "user", "first"),
        line("2", "1", "assistant", "left", model="qwen3"),
        line("3", "1", "assistant", "taken", model="qwen3", usageMetadata=usage, contextWindowSize=131_072),
        line("4", "3", "user", "second"),
    )
    recording = read_recording(path)
    assert (recording.source, recording.window) == ("qwen-code", 131_072)
    assert sent(recording) == ["first", "taken", "second"]
    assert recording.messages[2].usage == Usage(50, 5, 2, reasoning=1)


@pytest.mark.parametrize(("parent", "expected"), [("5", ["s", "q4", "a5", "q6"]), ("2", ["q1", "a2", "q6"])])
def test_qwen_a_compression_counts_on_its_own_branch(tmp_path: Path, parent: str, expected: list[str]) -> None:
    def line(uuid: str, parent: str | None, kind: str, text: str) -> dict[str, Any]:
        message = {"role": "model" if kind == "assistant" else "user", "parts": [{"text": text}]}
        return {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": kind, "message": message}

    history = [{"role": "user", "parts": [{"text": "s"}]}]
    payload = {"subtype": "chat_compression", "systemPayload": {"compressedHistory": history}}
    path = write(
        tmp_path / "chat.jsonl",
        line("1", None, "user", "q1"),
        line("2", "1", "assistant", "a2"),
        {"uuid": "3", "parentUuid": "2", "sessionId": "s", "type": "system", **payload},
        line("4", "3", "user", "q4"),
        line("5", "4", "assistant", "a5"),
        line("6", parent, "user", "q6"),
    )
    assert sent(read_recording(path)) == expected


def test_kimi_code_counts_a_step_once(tmp_path: Path) -> None:
    def event(**data: Any) -> dict[str, Any]:
        return {"type": "context.append_loop_event", "event": data, "time": 1_000}

    usage = {"inputOther": 10, "output": 4, "inputCacheRead": 90, "inputCacheCreation": 0}
    path = write(
        tmp_path / "wire.jsonl",
        {"type": "metadata", "protocol_version": "1.4"},
        {"type": "config.update", "modelAlias": "moonshot-ai/kimi-k3"},
        {"type": "context.append_message", "message": {"role": "user", "content": [{"type": "text", "text": "hi"}]}},
        event(type="step.begin"),
        {"type": "llm.request"},
        event(type="content.part", part={"type": "think", "think": "hm"}),
        event(type="content.part", part={"type": "text", "text": "hello"}),
        event(type="step.end", usage=usage, finishReason="end_turn"),
        {"type": "usage.record", "usage": usage},
    )
    recording = read_recording(path)
    answer = recording.messages[-1]
    assert answer.parts == (Reasoning("hm", "moonshotai", "kimi-k3"), Text("hello"))
    assert [m.usage for m in recording.messages if m.usage] == [Usage(100, 4, 90, 0)]


def test_crush(tmp_path: Path) -> None:
    path = tmp_path / "crush.db"
    with sqlite3.connect(path) as db:
        db.executescript(
            "CREATE TABLE goose_db_version (id); CREATE TABLE files (id);"
            "CREATE TABLE sessions (id, title, created_at, summary_message_id);"
            "CREATE TABLE messages (id, session_id, role, parts, model, provider, created_at);"
            "INSERT INTO sessions VALUES ('s', 'a title', 1, 'm3')"
        )
        for number, (role, text) in enumerate([("user", "one"), ("assistant", "two"), ("assistant", "sum")], 1):
            parts = json.dumps([{"type": "text", "data": {"text": text}}])
            db.execute("INSERT INTO messages VALUES (?, 's', ?, ?, 'm', 'p', ?)", (f"m{number}", role, parts, number))
    db.close()
    recording = read_recording(path)
    assert recording.unscored
    assert sent(recording)[-1] == "sum"
    assert "one" not in sent(recording)


def test_goose_file(tmp_path: Path) -> None:
    call = {"type": "toolRequest", "id": "c", "toolCall": {"value": {"name": "ls", "arguments": {}}}}
    answer = {"type": "toolResponse", "id": "c", "toolResult": {"value": [{"type": "text", "text": "a"}]}}
    path = write(
        tmp_path / "g.jsonl",
        {"working_dir": "/", "description": "a title", "message_count": 3},
        {"role": "user", "created": 5, "content": [{"type": "text", "text": "list"}]},
        {"role": "assistant", "created": 6, "content": [call]},
        {"role": "user", "created": 7, "content": [answer]},
    )
    recording = read_recording(path)
    assert recording.title == "a title"
    assert recording.messages[2].parts == (ToolResult("c", "ls", "a"),)


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}


def test_cline_task_folder(tmp_path: Path) -> None:
    history = [
        {"role": "user", "content": [{"type": "text", "text": "look"}, PICTURE]},
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
    ]
    request = {"tokensIn": 10, "tokensOut": 4, "cacheReads": 90, "cacheWrites": 0}
    shown = [{"say": "api_req_started", "text": json.dumps(request)}, {"say": "text", "text": "done"}]
    (tmp_path / "api_conversation_history.json").write_text(json.dumps(history), encoding="utf-8")
    (tmp_path / "ui_messages.json").write_text(json.dumps(shown), encoding="utf-8")
    for path in (tmp_path, tmp_path / "api_conversation_history.json"):
        question, answer = read_recording(path).messages
        assert [type(part) for part in question.parts] == [Text, Attachment]
        assert answer.usage == Usage(100, 4, 90, 0)


def test_aider_chats_are_apart(tmp_path: Path) -> None:
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(
        "# aider chat started at 2026-05-01 10:00:00\n\n> Model: gpt-5.4 with diff edit format\n\n#### fix it\n\n"
        "Done:\n```\n> quoted\n```\n\n> Tokens: 1k sent, 5 received.\n\n"
        "# aider chat started at 2026-05-02 10:00:00\n\n#### again\n\nYes.\n",
        encoding="utf-8",
    )
    first, second = read_recordings(path)
    assert [message.text for message in first.messages] == ["fix it", "Done:\n```\n> quoted\n```"]
    assert first.model == ("aider", "gpt-5.4")
    assert [message.text for message in second.messages] == ["again", "Yes."]


def test_exports_of_web_chats_follow_the_branch_in_use(tmp_path: Path) -> None:
    def node(parent: str | None, role: str, text: str) -> dict[str, Any]:
        message = {"author": {"role": role}, "content": {"parts": [text]}, "metadata": {"model_slug": "gpt-5.4"}}
        return {"parent": parent, "message": message}

    mapping = {
        "0": {"parent": None, "message": None},
        "1": node("0", "user", "hi"),
        "2": node("1", "assistant", "left"),
        "3": node("1", "assistant", "taken"),
    }
    claude = {
        "name": "b",
        "chat_messages": [
            {"uuid": "1", "sender": "human", "text": "hi", "created_at": "2026-05-01T10:00:00Z"},
            {"uuid": "2", "sender": "assistant", "text": "hello"},
        ],
    }
    messages = {
        "1": {"parentId": None, "role": "user", "content": "hi"},
        "2": {"parentId": "1", "role": "assistant", "content": "hello", "model": "m", "usage": {"prompt_tokens": 9}},
    }
    webui = {"title": "c", "chat": {"history": {"currentId": "2", "messages": messages}}}
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"title": "a", "mapping": mapping, "current_node": "3"}, claude, webui]), "utf-8")
    chatgpt, claude_ai, open_webui = read_recordings(path)
    assert sent(chatgpt) == ["hi", "taken"]
    assert sent(claude_ai) == ["hi", "hello"]
    assert open_webui.messages[-1].usage == Usage(9, None)


def test_llm_both_generations(tmp_path: Path) -> None:
    path = tmp_path / "logs.db"
    with sqlite3.connect(path) as db:
        db.executescript(
            "CREATE TABLE _llm_migrations (name); CREATE TABLE conversations (id, name);"
            "CREATE TABLE responses (id, model, resolved_model, prompt, response, conversation_id, datetime_utc,"
            " input_tokens, output_tokens, token_details);"
            "CREATE TABLE tool_calls (id, response_id, name, arguments, tool_call_id);"
            "CREATE TABLE tool_results (id, response_id, name, output, tool_call_id);"
            "CREATE TABLE threads (id, name, tip_message_hash);"
            "CREATE TABLE turns (id, thread_id, tip_message_hash, model, resolved_model, datetime_utc, input_tokens,"
            " output_tokens, token_details);"
            "CREATE TABLE messages (hash, parent_hash, role);"
            "CREATE TABLE parts (id, message_hash, position, type, tool_name, text, payload);"
            "INSERT INTO conversations VALUES ('c', 'older');"
            "INSERT INTO responses VALUES ('1', 'm', NULL, 'hi', 'hello', 'c', '2026-05-01T10:00:00', 9, 2, NULL);"
            "INSERT INTO responses VALUES ('2', 'm', NULL, 'and?', 'well', 'c', '2026-05-01T10:01:00', 15, 2, NULL);"
            "INSERT INTO threads VALUES ('t', 'newer', 'h2');"
            "INSERT INTO turns VALUES ('1', 't', 'h2', 'm', NULL, '2026-05-01T10:00:00+00:00', 8, 3, NULL);"
            "INSERT INTO messages VALUES ('h1', NULL, 'user'), ('h2', 'h1', 'assistant');"
            "INSERT INTO parts VALUES (1, 'h1', 0, 'text', NULL, 'yo', NULL), (2, 'h2', 0, 'text', NULL, 'yes', NULL)"
        )
    db.close()
    older, newer = read_recordings(path)
    assert [message.text for message in older.messages] == ["hi", "hello", "and?", "well"]
    assert [m.usage for m in older.messages if m.usage] == [Usage(9, 2), Usage(15, 2)]
    assert [message.text for message in newer.messages] == ["yo", "yes"]
    assert newer.messages[1].usage == Usage(8, 3)

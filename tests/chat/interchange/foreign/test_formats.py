"""One conversation in the form of each program; Claude Code, pi and Codex have more tests of their own."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.chat.interchange.foreign.test_foreign import claude_answer, claude_line, write
from tests.recordings import read_recording
from tui.chat.conversation.history import fold_records
from tui.chat.conversation.projection import Target, build_request
from tui.chat.interchange.foreign import read_recordings
from tui.chat.interchange.recording import Recording, RecordingError
from tui.chat.interchange.replay import recorded_calls
from tui.messages import Attachment, Reasoning, Text, ToolCall, ToolResult, Usage


def sent(recording: Recording) -> list[str]:
    """The texts that would go out."""
    provider, model = recording.model
    request = build_request(recording.messages, fold_records(recording.records), Target(provider, model))
    return [message.text for message in request.messages]


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
    monkeypatch.setattr("tui.chat.interchange.foreign.source.MAX_BYTES", 1_000)
    test_opencode_database(tmp_path)


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


def pi_line(ident: str, parent: str | None, role: str, text: str) -> dict[str, Any]:
    message = {"role": role, "content": [{"type": "text", "text": text}], "provider": "p", "model": "m"}
    return {"type": "message", "id": ident, "parentId": parent, "message": message}


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


def damaged(lines: list[str], how: str) -> str:
    match how:
        case "nuls":
            return "\n".join([lines[0], "\x00" * 40, *lines[1:]])
        case "glued":
            return lines[0] + lines[1] + "\n" + "\n".join(lines[2:])
        case "byte order mark":
            return "\ufeff" + "\n".join(lines)
        case "cut":
            return "\n".join([lines[0], lines[1][: len(lines[1]) // 2], *lines[1:]])
        case "deep":
            return "\n".join([lines[0], '{"message": ' + "[" * 100_000, *lines[1:]])
        case "no record":
            return "\n".join([lines[0], '{"type": "user", "sessionId": "x", "message": {"content": 7}}', *lines[1:]])
    raise AssertionError(how)


@pytest.mark.parametrize("how", ["nuls", "glued", "byte order mark", "cut", "deep", "no record"])
def test_damage_costs_only_itself(tmp_path: Path, how: str) -> None:
    lines = [json.dumps(claude_line("user", text)) for text in ("one", "two", "three")]
    path = tmp_path / "a.jsonl"
    path.write_text(damaged(lines, how), encoding="utf-8")
    recording = read_recording(path)
    assert [message.text for message in recording.messages] == ["one", "two", "three"]
    assert bool(recording.skipped) == (how in ("cut", "deep", "no record"))


def test_what_is_no_conversation_is_named_for_what_it_is(tmp_path: Path) -> None:
    database = tmp_path / "x.db"
    with sqlite3.connect(database) as db:
        db.execute("CREATE TABLE t (a)")
    db.close()
    with pytest.raises(RecordingError, match="a SQLite database of no program"):
        read_recording(database)
    packed = tmp_path / "rollout.jsonl.zst"
    packed.write_bytes(b"\x28\xb5\x2f\xfd rest")
    with pytest.raises(RecordingError, match=r"compressed.*zstd -d"):
        read_recording(packed)
    pretty = tmp_path / "x.json"
    pretty.write_text(json.dumps({"a": 1}, indent=2), encoding="utf-8")
    with pytest.raises(RecordingError, match="JSON, but not a conversation"):
        read_recording(pretty)

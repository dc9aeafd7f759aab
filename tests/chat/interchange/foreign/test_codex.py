from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.chat.interchange.foreign.files import sent, write
from tests.recordings import read_recording
from tui.chat.conversation.history import fold_records
from tui.chat.conversation.projection import Target, build_request
from tui.messages import Reasoning, ToolCall, ToolResult, Usage

TIME = "2026-05-01T10:00:{:02d}.000Z"


class Rollout:
    """Writes lines as Codex does, a second apart."""

    def __init__(self, **meta: Any) -> None:
        self.lines: list[dict[str, Any]] = []
        self.total = 0
        self.add("session_meta", {"id": "s", "model_provider": "openai", **meta})
        self.add("turn_context", {"model": "gpt-5.4"})

    def add(self, kind: str, payload: dict[str, Any], second: int | None = None) -> None:
        at = len(self.lines) if second is None else second
        self.lines.append({"timestamp": TIME.format(at), "type": kind, "payload": payload})

    def item(self, kind: str, second: int | None = None, **payload: Any) -> None:
        self.add("response_item", {"type": kind, **payload}, second)

    def user(self, text: str, second: int | None = None) -> None:
        self.item("message", second, role="user", content=[{"type": "input_text", "text": text}])
        self.add("event_msg", {"type": "user_message", "message": text}, second)

    def answer(self, text: str, second: int | None = None) -> None:
        self.item("message", second, role="assistant", content=[{"type": "output_text", "text": text}])

    def usage(self, input_: int, output: int, reasoning: int = 0, second: int | None = None) -> None:
        self.total += input_
        last = {"input_tokens": input_, "cached_input_tokens": 5, "output_tokens": output}
        last["reasoning_output_tokens"] = reasoning
        total = {"input_tokens": self.total, "total_tokens": self.total + output}
        info = {"last_token_usage": last, "total_token_usage": total, "model_context_window": 258_400}
        self.add("event_msg", {"type": "token_count", "info": info}, second)

    def write(self, folder: Path) -> Path:
        return write(folder / "rollout.jsonl", *self.lines)


def test_an_answer_is_what_stands_before_its_token_count(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.item("message", role="developer", content=[{"type": "input_text", "text": "be brief"}])
    rollout.user("look at it")
    rollout.item("reasoning", summary=[{"text": "hm"}], encrypted_content="abc")
    rollout.item("function_call", name="exec", arguments='{"cmd":"ls"}', call_id="c1")
    rollout.usage(1_000, 60, 40)
    rollout.item("function_call_output", call_id="c1", output="a.py")
    rollout.answer("one file")
    rollout.usage(1_080, 9)
    recording = read_recording(rollout.write(tmp_path))
    assert (recording.source, recording.title, recording.window) == ("codex", "look at it", 258_400)
    developer, user, first, result, last = recording.messages
    assert (developer.kind, user.kind) == ("injected", "chat")
    assert first.parts == (
        Reasoning("hm", "openai", "gpt-5.4", encrypted="abc", tokens=40),
        ToolCall("c1", "exec", '{"cmd":"ls"}'),
    )
    assert first.usage == Usage(1_000, 60, 5, reasoning=40)
    assert result.parts == (ToolResult("c1", "exec", "a.py"),)
    assert (last.text, last.usage) == ("one file", Usage(1_080, 9, 5, reasoning=0))


def test_a_repeated_token_count_is_no_call(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.user("hi")
    rollout.add("event_msg", {"type": "token_count", "info": None})
    rollout.answer("hello")
    rollout.usage(100, 5)
    rollout.lines.append(rollout.lines[-1])
    recording = read_recording(rollout.write(tmp_path))
    assert [m.usage for m in recording.messages if m.role == "assistant"] == [Usage(100, 5, 5, reasoning=0)]


def test_an_output_before_its_token_count_belongs_to_the_next_request(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.user("hi")
    rollout.item("custom_tool_call", name="patch", input="*** Begin", call_id="c1")
    rollout.item("custom_tool_call_output", call_id="c1", output=[{"type": "input_text", "text": "done"}])
    rollout.usage(100, 5)
    recording = read_recording(rollout.write(tmp_path))
    assert [message.role for message in recording.messages] == ["user", "assistant", "tool"]


def test_the_calls_that_a_fork_copies_are_its_parents(tmp_path: Path) -> None:
    rollout = Rollout(forked_from_id="parent")
    rollout.lines = [line | {"timestamp": TIME.format(0)} for line in rollout.lines]
    rollout.user("first", second=0)
    rollout.answer("one", second=0)
    rollout.usage(100, 5, second=0)
    rollout.user("second", second=9)
    rollout.usage(100, 5, second=9)
    rollout.lines[-1]["payload"]["info"]["total_token_usage"] = {"input_tokens": 100, "total_tokens": 105}
    rollout.answer("two", second=12)
    rollout.usage(130, 6, second=12)
    recording = read_recording(rollout.write(tmp_path))
    answers = [message for message in recording.messages if message.role == "assistant"]
    assert [answer.text for answer in answers] == ["one", "two"]
    assert [answer.usage and answer.usage.input_total for answer in answers] == [None, 130]


def test_a_compaction_replaces_the_history(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.user("first")
    rollout.answer("one")
    rollout.usage(100, 5)
    history = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "first"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "what was done: one"}]},
    ]
    rollout.add("compacted", {"message": "", "replacement_history": history})
    rollout.user("second")
    rollout.answer("two")
    rollout.usage(80, 5)
    recording = read_recording(rollout.write(tmp_path))
    request = build_request(recording.messages, fold_records(recording.records), Target("openai", "gpt-5.4"))
    assert [message.text for message in request.messages] == ["what was done: one", "first", "second", "two"]


def test_a_rollback_sets_the_last_turns_aside(tmp_path: Path) -> None:
    rollout = Rollout()
    for text in ("first", "second"):
        rollout.user(text)
        rollout.answer(f"about the {text}")
        rollout.usage(100 + len(text), 5)
    rollout.add("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    recording = read_recording(rollout.write(tmp_path))
    request = build_request(recording.messages, fold_records(recording.records), Target("openai", "gpt-5.4"))
    assert [message.text for message in request.messages] == ["first", "about the first"]


def test_a_second_rollback_goes_back_from_where_the_first_one_led(tmp_path: Path) -> None:
    rollout = Rollout()
    for text in ("first", "second", "third"):
        rollout.user(text)
        rollout.answer(f"about the {text}")
        rollout.usage(100 + len(text), 5)
    rollout.add("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    rollout.add("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    rollout.user("fourth")
    assert sent(read_recording(rollout.write(tmp_path))) == ["first", "about the first", "fourth"]


def test_what_agents_say_and_tools_that_are_loaded_are_context(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.user("look")
    rollout.item("tool_search_call", call_id="c1", arguments={"query": "x"})
    rollout.usage(1_000, 20)
    rollout.item("tool_search_output", call_id="c1", tools=[{"name": "found", "parameters": {}}])
    rollout.item("agent_message", author="/root/a", content=[{"type": "input_text", "text": "it is done"}])
    rollout.answer("good")
    rollout.usage(1_100, 9)
    sealed = {"type": "encrypted_content", "encrypted_content": "x"}
    rollout.item("agent_message", author="/root/a", content=[{"type": "input_text", "text": "and"}, sealed])
    rollout.answer("thanks")
    rollout.usage(1_200, 9)
    recording = read_recording(rollout.write(tmp_path))
    assert [(m.role, m.kind, m.text) for m in recording.messages[3:5]] == [
        ("user", "injected", "it is done"),
        ("assistant", "chat", "good"),
    ]
    assert recording.messages[2].parts == (
        ToolResult("c1", "tool_search_call", '[{"name": "found", "parameters": {}}]'),
    )
    assert recording.unpredictable == {recording.messages[-1].id: "the file lacks what agents told each other"}


def test_a_call_in_which_the_server_searched_is_not_scored(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.user("look it up")
    rollout.item("web_search_call", id="w1", status="completed")
    rollout.answer("here")
    rollout.usage(9_000, 20)
    recording = read_recording(rollout.write(tmp_path))
    assert list(recording.unpredictable.values()) == ["the file lacks what the server read by itself"]

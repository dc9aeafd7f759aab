from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.chat.interchange.foreign.files import claude_answer, claude_line, pi_answer
from tests.chat.interchange.foreign.test_codex import Rollout
from tui.chat.interchange import following
from tui.chat.interchange.following import Followed, Follower, Tail
from tui.chat.interchange.foreign import opencode, read_recordings
from tui.chat.interchange.foreign.reading import SourceFile
from tui.chat.interchange.recording import RecordingError
from tui.chat.interchange.replay import replay
from tui.cli.subcommands.watch import watch_lines


def lines(calls: int) -> list[dict[str, Any]]:
    """A conversation of Claude Code whose context grows by about 100 tokens a call."""
    entries = []
    for number in range(calls):
        entries.append(claude_line("user", f"question {number} about the parser") | {"uuid": f"u{number}"})
        answer = [{"type": "text", "text": f"answer {number}, with some words"}]
        cached = 1_000 + 100 * number
        line = claude_answer(answer, f"r{number}", 9, cache_read_input_tokens=cached, cache_creation_input_tokens=0)
        entries.append(line | {"uuid": f"a{number}"})
    return entries


NOW = 2**33  # seconds since the epoch, far from now: a file changed then is not quiet, however late it is read


def append(path: Path, *entries: Any) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(entry) + "\n" for entry in entries)
    os.utime(path, (NOW, NOW))


def state(follower: Follower, window: int | None = None) -> Followed:
    assert follower.poll()
    followed = follower.state(window)
    assert followed is not None
    return followed


def talk(calls: int) -> list[dict[str, Any]]:
    """Answers over several lines, with a tool's result between two of them."""
    entries: list[dict[str, Any]] = [{"type": "mode", "mode": "normal", "sessionId": "x"}]
    total = 1_000
    for number in range(calls):
        names = [f"c{number}a", f"c{number}b"]
        uses = [{"type": "tool_use", "id": name, "name": "Read", "input": {"path": f"file {name}"}} for name in names]
        results = [{"type": "tool_result", "tool_use_id": name, "content": f"line of {name} " * 40} for name in names]
        blocks: list[tuple[str, Any]] = [
            ("assistant", {"type": "thinking", "thinking": "hm", "signature": "s" * 300}),
            ("assistant", uses[0]),
            ("user", results[0]),
            ("assistant", uses[1]),
            ("user", results[1]),
        ]
        for at, (kind, block) in enumerate(blocks):
            answer = claude_answer([block], f"r{number}", 80, cache_read_input_tokens=total)
            line = answer if kind == "assistant" else claude_line("user", [block])
            entries.append(line | {"uuid": f"{number}-{at}"})
        total += 80 + 2 * 240
    return entries


@pytest.mark.parametrize("entries", [lines(6), talk(5)])
def test_line_by_line_the_total_before_each_call_is_what_replay_predicts(
    tmp_path: Path, entries: list[dict[str, Any]]
) -> None:
    path = tmp_path / "s.jsonl"
    path.touch()
    follower = Follower(path)
    totals: list[int] = []
    calls, total = 0, 0
    for line in entries:
        append(path, line)
        assert follower.poll()
        followed = follower.state()
        if followed is None:
            continue
        if followed.calls > calls:
            calls = followed.calls
            totals.append(total)
        total = followed.usage.total
    (recording,) = read_recordings(path)
    scored = replay(recording, "s").scored
    assert totals[1:] == [call.predicted for call in scored]
    os.utime(path, (0, 0))  # written long ago: the last answer is complete
    assert list(state(follower).forecasts) == pytest.approx([call.error_percent for call in scored])


def test_of_a_large_file_only_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "TAIL_BYTES", 4_000)
    monkeypatch.setattr(following, "BYTES_PER_TOKEN", 1)
    monkeypatch.setattr(following, "HEAD_BYTES", 1_000)
    path = tmp_path / "s.jsonl"
    append(path, *lines(60))
    followed = state(Follower(path))
    assert followed.title == "question 0 about the parser"
    assert 5 <= followed.calls < 60
    assert followed.usage.total == pytest.approx(1_000 + 100 * 59 + 9, abs=15)
    assert followed.cost_today is None  # what stands before may be of today, too
    assert any("of the file were not read" in line.plain for line in watch_lines(followed, 80))
    append(path, *lines(61)[-2:])
    assert state(Follower(path)).usage.total > followed.usage.total


def test_an_end_that_begins_with_a_sub_agents_lines_is_not_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older versions of Claude Code wrote sub-agents into the file of the session that started them."""
    path = tmp_path / "s.jsonl"
    append(path, *lines(4))
    append(path, *(line | {"isSidechain": True} for line in lines(30)))
    size = path.stat().st_size
    append(path, *lines(6)[8:])
    monkeypatch.setattr(following, "TAIL_BYTES", path.stat().st_size - size + 2_000)
    monkeypatch.setattr(following, "BYTES_PER_TOKEN", 1)
    followed = state(Follower(path))
    assert followed.skipped and (followed.calls, followed.usage.basis.last_input) == (2, 1_503)


def test_as_much_is_read_as_a_context_of_so_many_tokens_can_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "TAIL_BYTES", 500)
    monkeypatch.setattr(following, "BYTES_PER_TOKEN", 2)
    path = tmp_path / "s.jsonl"
    append(path, *lines(60))
    (recording,) = read_recordings(path)
    last = recording.messages[-1].usage
    assert last is not None
    assert last.input_total is not None
    reader = Tail()
    assert reader.appended(path)
    assert path.stat().st_size - reader.skipped == 2 * last.input_total


def test_of_a_large_file_with_branches_the_header_and_the_end_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "TAIL_BYTES", 2_000)
    path = tmp_path / "s.jsonl"
    append(path, {"type": "session", "version": 3, "id": "x"})

    def entry(number: int) -> dict[str, Any]:
        answer = pi_answer([{"type": "text", "text": f"answer {number}"}], total=1_000 + number)
        return answer | {"id": f"e{number}", "parentId": f"e{number - 1}"}

    append(path, *(entry(number) for number in range(1, 41)))
    follower = Follower(path)
    first = state(follower)
    assert 2 <= first.calls < 20
    assert first.usage.basis.last_input == 1_040
    append(path, entry(41))
    assert state(follower).calls == first.calls + 1
    assert first.cost_today is None


def test_a_session_in_opencodes_database_is_followed(tmp_path: Path) -> None:
    work, path = tmp_path / "work", tmp_path / "opencode.db"
    db = sqlite3.connect(path)
    db.executescript(
        "PRAGMA journal_mode = WAL;"
        "CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, title TEXT, revert TEXT, time_updated INTEGER);"
        "CREATE TABLE message (id TEXT, session_id TEXT, data TEXT);"
        "CREATE TABLE part (id TEXT, message_id TEXT, data TEXT)"
    )
    sessions = (("old", None, 1), ("new", None, 5), ("helper", "new", 9))
    for ident, parent, updated in sessions:
        db.execute("INSERT INTO session VALUES (?, ?, ?, ?, NULL, ?)", (ident, parent, str(work), ident, updated))

    def answer(number: int, input_: int, session: str = "new") -> None:
        tokens = {"input": input_, "output": 9, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        info = {"role": "assistant", "providerID": "openai", "modelID": "gpt-5.4", "time": {"created": 1}}
        data = json.dumps(info | {"tokens": tokens})
        db.execute("INSERT INTO message VALUES (?, ?, ?)", (f"msg_{number}", session, data))
        part = {"type": "text", "text": f"answer {number}"}
        db.execute("INSERT INTO part VALUES (?, ?, ?)", (f"prt_{number}", f"msg_{number}", json.dumps(part)))
        db.commit()

    answer(1, 1_000)
    with SourceFile(path) as source:
        assert opencode.newest_session(source, str(work)) == "new"
        assert opencode.newest_session(source, str(tmp_path / "nowhere")) == ""
    follower = Follower(path, "new")
    assert state(follower).usage.basis.last_input == 1_000
    answer(2, 1_100)
    answer(3, 500, "helper")
    followed = state(follower)
    assert (followed.usage.basis.last_input, followed.subagents, followed.subagent_tokens) == (1_100, 1, 500)
    db.execute("INSERT INTO message VALUES ('msg_4', 'new', 'damaged')")
    db.commit()
    with pytest.raises(RecordingError, match=r"opencode\.db: damaged"):
        follower.poll()
    db.execute("DELETE FROM session")
    db.commit()
    assert follower.poll() and follower.state() is None
    db.close()


def test_a_line_that_is_still_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    append(path, *lines(2))
    follower = Follower(path)
    assert state(follower).calls == 2
    text = json.dumps(lines(3)[-1])
    with path.open("a", encoding="utf-8") as file:
        file.write(text[:50])
    assert state(follower).calls == 2
    with path.open("a", encoding="utf-8") as file:
        file.write(text[50:] + "\n")
    assert state(follower).calls == 3
    assert not follower.poll()


def test_a_file_that_shrank_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    append(path, *lines(5))
    follower = Follower(path)
    assert state(follower).calls == 5
    path.write_text("", encoding="utf-8")
    append(path, *lines(2))
    assert state(follower).calls == 2


def test_how_far_it_is_to_the_compaction_and_what_came_from_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    append(path, *lines(6))
    followed = state(Follower(path), window=10_000)
    assert followed.compacts_at == 8_000
    assert followed.growth == 100
    assert followed.calls_left == (8_000 - followed.usage.total) // 100
    assert followed.cached_share == pytest.approx(1_500 / 1_503)


def test_a_claude_session_over_200k_has_the_large_window(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    append(path, *lines(1))
    append(
        path, claude_answer([{"type": "text", "text": "x"}], "big", 9, cache_read_input_tokens=250_000) | {"uuid": "b"}
    )
    assert state(Follower(path)).usage.limits.context == 1_000_000


def test_a_claude_session_that_was_compacted_below_200k_has_the_small_window(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    append(path, *lines(1))
    limits = state(Follower(path)).usage.limits
    assert (limits.context, limits.detail) == (1_000_000, "or 200k, unless it is [1m]: --window")
    boundary = {"type": "system", "subtype": "compact_boundary", "compactMetadata": {}, "sessionId": "x"}
    append(path, boundary | {"compactMetadata": {"trigger": "manual", "preTokens": 150_000}})
    assert state(Follower(path)).usage.limits.context == 1_000_000
    append(path, boundary | {"compactMetadata": {"trigger": "auto", "preTokens": 168_483}})
    assert state(Follower(path)).usage.limits.context == 200_000


def test_the_window_of_codex_is_in_its_file_and_never_is_a_subagents_context_the_main_one(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.user("hi")
    rollout.answer("hello")
    rollout.usage(1_000, 9)
    followed = state(Follower(rollout.write(tmp_path)))
    assert (followed.program, followed.usage.limits.context) == ("codex", 258_400)
    path = tmp_path / "s.jsonl"
    append(path, *lines(1))
    (tmp_path / "s" / "subagents").mkdir(parents=True)
    append(tmp_path / "s" / "subagents" / "agent-1.jsonl", *(line | {"isSidechain": True} for line in lines(3)))
    followed = state(Follower(path))
    assert (followed.subagents, followed.subagent_tokens) == (1, 1_203)
    assert followed.usage.basis.last_input == 1_003


def test_a_line_that_is_nested_too_deeply_costs_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    append(path, *lines(2))
    follower = Follower(path)
    state(follower)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"message": ' + "[" * 100_000 + "\n")
    append(path, *lines(3)[4:])
    assert state(follower).calls == 3


def test_a_message_of_another_type_costs_its_line(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    append(path, {"sessionId": "x", "uuid": "u", "message": 5}, *lines(2))
    assert state(Follower(path)).calls == 2

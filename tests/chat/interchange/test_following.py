from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.chat.interchange.foreign.test_codex import Rollout
from tests.chat.interchange.foreign.test_foreign import claude_answer, claude_line
from tui.chat.interchange.following import Followed, Follower, newest_session
from tui.chat.interchange.foreign import read_recordings
from tui.chat.interchange.replay import replay


def lines(calls: int) -> list[dict[str, Any]]:
    """A conversation of Claude Code whose context grows by about 100 tokens a call."""
    found = []
    for number in range(calls):
        found.append(claude_line("user", f"question {number} about the parser") | {"uuid": f"u{number}"})
        answer = [{"type": "text", "text": f"answer {number}, with some words"}]
        cached = 1_000 + 100 * number
        line = claude_answer(answer, f"r{number}", 9, cache_read_input_tokens=cached, cache_creation_input_tokens=0)
        found.append(line | {"uuid": f"a{number}"})
    return found


def append(path: Path, *entries: Any) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(entry) + "\n" for entry in entries)


def state(follower: Follower, window: int | None = None) -> Followed:
    assert follower.poll()
    found = follower.state(window)
    assert found is not None
    return found


@pytest.mark.slow
def test_line_by_line_the_forecasts_are_those_of_replay(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    follower = Follower(path)
    found = None
    for line in lines(8):
        append(path, line)
        follower.poll()
        found = follower.state() or found
    (recording,) = read_recordings(path)
    expected = [call.error_percent for call in replay(recording, "s").scored]
    assert found is not None
    assert list(found.forecasts) == pytest.approx(expected)
    assert found.calls == 8


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
    found = state(Follower(path), window=10_000)
    assert found.compacts_at == 8_000
    assert found.growth == 100
    assert found.calls_left == (8_000 - found.usage.total) // 100
    assert found.cached_share == pytest.approx(1_500 / 1_503)


def test_a_claude_session_over_200k_has_the_large_window(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    append(path, *lines(1))
    append(
        path, claude_answer([{"type": "text", "text": "x"}], "big", 9, cache_read_input_tokens=250_000) | {"uuid": "b"}
    )
    assert state(Follower(path)).usage.limits.context == 1_000_000


def test_the_window_of_codex_is_in_its_file_and_never_is_a_subagents_context_the_main_one(tmp_path: Path) -> None:
    rollout = Rollout()
    rollout.user("hi")
    rollout.answer("hello")
    rollout.usage(1_000, 9)
    found = state(Follower(rollout.write(tmp_path)))
    assert (found.program, found.usage.limits.context) == ("codex", 258_400)
    path = tmp_path / "s.jsonl"
    append(path, *lines(1))
    (tmp_path / "s" / "subagents").mkdir(parents=True)
    append(tmp_path / "s" / "subagents" / "agent-1.jsonl", *(line | {"isSidechain": True} for line in lines(3)))
    found = state(Follower(path))
    assert (found.subagents, found.subagent_tokens) == (1, 1_203)
    assert found.usage.basis.last_input == 1_003


def test_the_newest_session_of_the_folder_is_found(tmp_path: Path) -> None:
    work = tmp_path / "work"
    home = tmp_path / "home"
    for name, folder in (("a", work), ("b", tmp_path / "elsewhere")):
        path = home / ".claude" / "projects" / name / f"{name}.jsonl"
        path.parent.mkdir(parents=True)
        append(path, claude_line("user", "hi") | {"cwd": str(folder)})
    found = newest_session({}, home, work)
    assert found is not None
    assert found.path.name == "a.jsonl"
    assert newest_session({}, home, tmp_path / "nowhere") is None

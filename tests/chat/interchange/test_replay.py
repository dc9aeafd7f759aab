from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chat.interchange.foreign.files import claude_answer, claude_line, write
from tests.recordings import read_recording
from tui.chat.interchange.replay import Replay, Scored, replay, summary

WORDS = "the quick brown fox jumps over the lazy dog and runs away again "


def recorded(path: Path, calls: int = 30, per_call: float = 1.3) -> Path:
    """A conversation whose server counts 1.3 tokens for each that o200k_base counts."""
    lines = []
    total = 20_000.0
    for number in range(calls):
        words = 1 + number * 7 % 40
        lines.append(claude_line("user", WORDS * words))
        total += per_call * 13 * words + 3
        answer = [{"type": "text", "text": WORDS * 2}]
        lines.append(claude_answer(answer, f"r{number}", 34, cache_read_input_tokens=round(total) - 23))
        total += 34
    return write(path, *lines)


def test_every_call_after_the_first_is_predicted_before_it_is_looked_at(tmp_path: Path) -> None:
    replayed = replay(read_recording(recorded(tmp_path / "a.jsonl")), "a")
    assert (replayed.calls, len(replayed.scored)) == (30, 29)
    late = [abs(call.error_percent) for call in replayed.scored[15:]]
    assert max(late) < 0.05
    assert all(call.actual <= call.upper_bound for call in replayed.scored)


def test_learning_helps_and_can_be_left_out(tmp_path: Path) -> None:
    recording = read_recording(recorded(tmp_path / "a.jsonl", per_call=1.6))
    with_it, without = (replay(recording, "a", learn=learn).scored[-10:] for learn in (True, False))
    assert sum(abs(c.error_percent) for c in with_it) < 0.3 * sum(abs(c.error_percent) for c in without)


def test_the_naive_method_is_there_to_compare(tmp_path: Path) -> None:
    recording = read_recording(recorded(tmp_path / "a.jsonl"))
    naive, hybrid = (replay(recording, "a", method=method).scored for method in ("chars4", "hybrid"))
    assert sum(abs(c.error_percent) for c in naive) > 3 * sum(abs(c.error_percent) for c in hybrid)


def test_the_call_after_a_compaction_only_anchors(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.jsonl", 4)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lines[4:4] = [claude_line("user", "what happened") | {"isCompactSummary": True}]
    replayed = replay(read_recording(write(path, *lines)), "a")
    assert (replayed.calls, len(replayed.scored)) == (4, 2)


def test_calls_without_usage_are_no_calls(tmp_path: Path) -> None:
    recording = read_recording(recorded(tmp_path / "a.jsonl", 5))
    messages = list(recording.messages)
    messages[5] = replace(messages[5], usage=None)
    assert replay(replace(recording, messages=tuple(messages)), "a").calls == 4


def test_figures() -> None:
    scored = [Scored(1_000 + error, 1_020, 1_000) for error in (-30, -10, 0, 10, 20)]
    figures = summary(Replay("x", 6, tuple(scored)))
    assert figures["median_abs_error_percent"] == 1.0
    assert figures["bias_percent"] == pytest.approx(-0.2)
    assert figures["worst_underestimate_percent"] == 3.0
    assert figures["covered_by_upper_bound_percent"] == 100.0
    nothing = summary(Replay("x", 1, ()))
    assert nothing["median_abs_error_percent"] is None

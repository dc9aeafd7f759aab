"""Every recorded file of another program is imported or refused with the right reason; what its calls sum up to."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from statistics import median

import pytest

from tests.corpus import corpus_root
from tui.chat.interchange.foreign import read_recordings
from tui.chat.interchange.recording import Recording, RecordingError
from tui.chat.interchange.replay import replay

REFUSED = {
    "codex/fixture-0.50-legacy.jsonl": "no messages in it",
    "crush/crush-2026-schema-empty.db": "no messages in it",
    "others/copilot-cli.jsonl": "JSON, but not a conversation",
    "others/cursor.jsonl": "JSON, but not a conversation",
}


@cache
def files() -> dict[str, Path]:
    root = corpus_root() / "foreign"
    about = {"README.md", "MANIFEST.json", "EXPECTED.json"}
    return {str(p.relative_to(root)): p for p in sorted(root.rglob("*")) if p.is_file() and p.name not in about}


@cache
def recordings(name: str) -> list[Recording]:
    return list(read_recordings(files()[name]))


def test_every_file_is_read_or_refused_for_the_right_reason() -> None:
    refused = {}
    for name in files():
        try:
            assert recordings(name)
        except RecordingError as error:
            refused[name] = str(error)
    assert refused.keys() == REFUSED.keys()
    for name, reason in REFUSED.items():
        assert reason in refused[name]


def test_calls_and_token_sums_are_those_of_the_files() -> None:
    for name, expected in json.loads((corpus_root() / "foreign" / "EXPECTED.json").read_text("utf-8")).items():
        (recording,) = recordings(name)
        usages = [m.usage for m in recording.messages if m.role == "assistant" and m.usage and m.usage.input_total]
        inputs = [usage.input_total or 0 for usage in usages]
        sums = {
            "calls": len(usages),
            "input_sum": sum(inputs),
            "cached_sum": sum(usage.input_cached or 0 for usage in usages),
            "output_sum": sum(usage.output_total or 0 for usage in usages),
            "first_input": inputs[0],
            "last_input": inputs[-1],
            "largest_input": max(inputs),
        }
        assert sums == {key: expected[key] for key in sums}, name
        if "windows" in expected:
            assert recording.window in expected["windows"], name


@pytest.mark.parametrize(
    ("program", "middle", "p95", "p99"),
    [
        ("codex", 0.01, 0.15, 0.8),
        ("gemini-cli", 0.008, 0.4, 1.0),
        ("claude-code-2026", 0.05, 0.4, 0.7),
        ("opencode", 0.005, 0.5, 0.8),
    ],
)
def test_recorded_calls_are_predicted(program: str, middle: float, p95: float, p99: float) -> None:
    scored = [
        call
        for name in files()
        if name.startswith(f"{program}/") and name not in REFUSED
        for recording in recordings(name)
        for call in replay(recording, name).scored
    ]
    errors = sorted(abs(call.error_percent) for call in scored)
    assert min(call.error_percent for call in scored) >= -3  # the worst under-prediction
    covered = sum(call.actual <= call.upper_bound for call in scored) / len(scored)
    assert 0.94 <= covered <= 0.98
    assert median((call.upper_bound - call.predicted) / call.predicted for call in scored) <= 0.005
    assert median(errors) <= middle
    assert errors[int(0.95 * len(errors))] <= p95
    assert errors[int(0.99 * len(errors))] <= p99

"""The estimator on real conversations with the provider's own counts: the figures that have to be reached."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from tests.corpus import corpus_root
from tests.recordings import read_recording
from tui.chat.interchange.replay import Replay, replay, summary, together

pytestmark = [pytest.mark.corpus, pytest.mark.timeout(600)]


def sessions(*kinds: str) -> list[Path]:
    return sorted(path for kind in kinds for path in (corpus_root() / "sessions" / kind).glob("*.jsonl"))


@pytest.fixture(scope="module")
def replays() -> list[Replay]:
    return [replay(read_recording(path), path.name) for path in sessions("claude-code", "pi")]


def figures(replays: list[Replay]) -> dict[str, float]:
    return {name: value for name, value in summary(together(replays)).items() if isinstance(value, int | float)}


def test_no_predictable_call_is_skipped(replays: list[Replay]) -> None:
    numbers = figures(replays)
    # 18 files and 4 compactions begin a context whose system prompt nobody wrote down.
    assert (numbers["calls"], numbers["predicted"]) == (1_684, 1_662)


def test_errors_of_all_calls(replays: list[Replay]) -> None:
    numbers = figures(replays)
    assert numbers["median_abs_error_percent"] <= 0.01
    assert numbers["p95_abs_error_percent"] <= 0.3
    assert numbers["p99_abs_error_percent"] <= 0.8
    assert abs(numbers["bias_percent"]) <= 0.05


def test_the_upper_bound_covers_what_it_says_and_is_narrow(replays: list[Replay]) -> None:
    numbers = figures(replays)
    assert 94 <= numbers["covered_by_upper_bound_percent"] <= 98
    assert numbers["median_upper_bound_width_percent"] <= 1.0


def test_errors_of_the_first_five_calls_of_each_file(replays: list[Replay]) -> None:
    errors = sorted(abs(call.error_percent) for result in replays for call in result.scored[:5])
    assert len(errors) == 90
    assert median(errors) <= 0.1
    assert errors[int(0.95 * (len(errors) - 1))] <= 0.7


def test_learning_and_measuring_beat_the_naive_method(replays: list[Replay]) -> None:
    paths = sessions("claude-code")
    recordings = [read_recording(path) for path in paths]
    naive = figures([replay(recording, "", method="chars4") for recording in recordings])
    frozen = figures([replay(recording, "", learn=False) for recording in recordings])
    learned = figures([result for result in replays if result.name in {path.name for path in paths}])
    assert naive["median_abs_error_percent"] > 0.1
    assert naive["p95_abs_error_percent"] > 3 * learned["p95_abs_error_percent"]
    assert frozen["median_abs_error_percent"] >= learned["median_abs_error_percent"]


@pytest.mark.parametrize("kind", ["claude-code", "pi", "gemini-cli"])
def test_every_recording_can_be_read(kind: str) -> None:
    for path in sessions(kind):
        recording = read_recording(path)
        assert recording.source == kind
        assert recording.model[1]
        assert (
            kind != "gemini-cli" or replay(recording, path.name).calls >= 1
        )  # of the others all calls are counted above

"""What a refused request teaches the estimates."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.context.conversations import HistoryBuilder
from tests.messages import assistant, user
from tui.context.counting.counting import TokenCounter
from tui.context.estimate.calibration import FACTOR_HIGH, Calibration, CalibrationBook
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.estimate.measurements import ConversationStateTracker
from tui.messages import Request, SystemSection, Usage


@pytest.fixture
def estimator() -> HybridTokenEstimator:
    return HybridTokenEstimator(TokenCounter(), ConversationStateTracker(), CalibrationBook())


def conversation() -> Request:
    builder = HistoryBuilder()
    for number in range(40):
        builder.user(text=f"question {number}, " + "what does the parser do with the last token of a line? " * 20)
        builder.assistant(text=f"answer {number}, " + "it keeps it, and the next line begins where it ended. " * 20)
    return Request("test", "some-model", tuple(builder.messages), session="s")


def test_a_refusal_without_numbers_raises_the_estimate_a_little_each_time(estimator: HybridTokenEstimator) -> None:
    request = conversation()
    sizes = [estimator.estimate(request).tokens]
    for _ in range(4):
        estimator.note_refusal(request, None, at=1.0)
        sizes.append(estimator.estimate(request).tokens)
    assert sizes == sorted(set(sizes))
    assert 1.04 < sizes[1] / sizes[0] < 1.12
    assert 1.1 < sizes[4] / sizes[0] < 1.5


def test_where_nothing_was_measured_each_refusal_adds_to_the_one_before(estimator: HybridTokenEstimator) -> None:
    """A server that hides usage: four refusals make up for an estimate that is a third too low."""
    request = replace(conversation(), system=(SystemSection("system", "system prompt", "Be brief. " * 2_000),))
    first = estimator.estimate(request).tokens
    for _ in range(4):
        estimator.note_refusal(request, None, at=1.0)
    assert estimator.estimate(request).tokens / first == pytest.approx(1.1**4, rel=0.04)
    learned = estimator.calibrations.get("test", "some-model")
    assert Calibration.from_json(json.loads(json.dumps(learned.to_json()))) == learned
    for _ in range(20):
        estimator.note_refusal(request, None, at=1.0)
    assert estimator.calibrations.get("test", "some-model").factor == FACTOR_HIGH
    assert learned.note(100, 90, 5).floor == 0.0  # a measured call says it better


def test_what_was_measured_is_not_outdone_by_refusals(estimator: HybridTokenEstimator) -> None:
    request = conversation()
    reply = assistant("Yes.", id="z1")
    size = estimator.estimate(request).tokens
    for at in (1.0, 2.0):
        estimator.record(request, reply, Usage(size, 3), learn=True, at=at)
        request = replace(request, messages=(*request.messages, reply, user("And?", id=f"z{at}")))
        size += 12
        reply = replace(reply, id=f"y{at}")
    estimator.note_refusal(request, None, at=3.0)
    assert estimator.calibrations.get("test", "some-model").floor == 0.0


def test_a_refusal_that_names_its_size_is_a_measurement(estimator: HybridTokenEstimator) -> None:
    request = conversation()
    named = int(estimator.estimate(request).tokens * 1.3)
    estimator.note_refusal(request, named, at=1.0)
    after = estimator.estimate(request)
    assert (after.tokens, after.source) == (named, "exact")
    assert estimator.calibrations.get("test", "some-model").factor > 1.15

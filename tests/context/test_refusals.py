"""What a refused request teaches the estimates."""

from __future__ import annotations

import pytest

from tests.context.conversations import Talk
from tui.context.calibration import CalibrationBook
from tui.context.counting import TokenCounter
from tui.context.estimator import HybridTokenEstimator
from tui.context.tracker import ConversationStateTracker
from tui.messages import Request


@pytest.fixture
def estimator() -> HybridTokenEstimator:
    return HybridTokenEstimator(TokenCounter(), ConversationStateTracker(), CalibrationBook())


def conversation() -> Request:
    talk = Talk()
    for number in range(40):
        talk.user(text=f"question {number}, " + "what does the parser do with the last token of a line? " * 20)
        talk.assistant(text=f"answer {number}, " + "it keeps it, and the next line begins where it ended. " * 20)
    return Request("test", "some-model", tuple(talk.messages), session="s")


def test_a_refusal_without_numbers_raises_the_estimate_a_little_each_time(estimator: HybridTokenEstimator) -> None:
    request = conversation()
    sizes = [estimator.estimate(request).tokens]
    for _ in range(4):
        estimator.note_refusal(request, None, at=1.0)
        sizes.append(estimator.estimate(request).tokens)
    assert sizes == sorted(set(sizes))
    assert 1.04 < sizes[1] / sizes[0] < 1.12
    assert 1.1 < sizes[4] / sizes[0] < 1.5


def test_a_refusal_that_names_its_size_is_a_measurement(estimator: HybridTokenEstimator) -> None:
    request = conversation()
    named = int(estimator.estimate(request).tokens * 1.3)
    estimator.note_refusal(request, named, at=1.0)
    after = estimator.estimate(request)
    assert (after.tokens, after.source) == (named, "exact")
    assert estimator.calibrations.get("test", "some-model").factor > 1.15

"""No honest server is doubted: every recorded call is weighed as a live one would be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench.wire_requests import Row, read_rows
from tests.corpus import corpus_root, recordings
from tests.corpus.test_streams import files
from tests.messages import assistant
from tests.recordings import read_recording
from tui.chat.interchange.replay import replay
from tui.context.counting.counting import TokenCounter
from tui.context.counting.digests import CostBook
from tui.context.estimate.calibration import CalibrationBook
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.estimate.measurements import ConversationStateTracker, Verdict
from tui.context.estimate.prediction import cost_of_reply
from tui.messages import Reasoning, ToolCall, Usage

pytestmark = [pytest.mark.corpus, pytest.mark.timeout(600)]

UNSENT = {
    "compound-beta": "a system of several models: what it reports is the sum of all it asked them",
    "deepseek-ai/DeepSeek-R1": "its thoughts stand in the text of the recorded request, and its template drops them",
}
"""Rows whose number is not that of the request: they have to be doubted."""

CLEARED = {"d0-161e0df1cb-0.jsonl": "the recording program left old tool results out, and its file does not say so"}


def test_no_recorded_request_is_doubted(say: Callable[[str], None]) -> None:
    counter, verdicts, doubted, bounded = TokenCounter(), Counter[str](), {}, 0
    rows = [row for row in read_rows(corpus_root() / "requests.jsonl") if isinstance(row, Row)]
    for row in rows:
        estimator = HybridTokenEstimator(counter, ConversationStateTracker(), CalibrationBook(), CostBook())
        bounded += row.actual <= estimator.estimate(row.request).upper_bound
        verdict = estimator.record(row.request, assistant("x"), Usage(row.actual, 5), at=0.0)
        assert verdict is not None
        verdicts["exact" if verdict.confirmed else verdict.kind] += 1
        if not verdict.believed:
            doubted[row.model] = verdict.reason
    share = 100 * bounded / len(rows)
    say(f"{len(rows)} recorded requests weighed: {dict(verdicts)}, {share:.1f} % under the upper bound")
    assert doubted.keys() == UNSENT.keys()
    assert verdicts["exact"] >= 0.85 * len(rows)  # the rest have more in their templates than their text explains
    assert 94 <= share <= 98


def test_no_recorded_call_is_doubted_after_the_first_of_its_context(
    monkeypatch: pytest.MonkeyPatch, say: Callable[[str], None]
) -> None:
    """System prompt and tools are not in the files: the first call of a context is like that of a gateway."""
    verdicts, wrong = Counter[str](), list[tuple[str, str]]()
    once = HybridTokenEstimator.record
    current = Path()

    def weighed(self: HybridTokenEstimator, *args: Any, **values: Any) -> Verdict | None:
        assert self.reread(args[0], args[2]) is args[2], current.name
        verdict = once(self, *args, **{**values, "recorded": False})
        assert verdict is not None
        verdicts[verdict.kind] += 1
        if not verdict.believed and "can have" not in verdict.reason:
            wrong.append((current.name, verdict.reason))
        return verdict

    monkeypatch.setattr(HybridTokenEstimator, "record", weighed)
    for kind in ("claude-code", "pi", "gemini-cli"):
        for current in sorted((corpus_root() / "sessions" / kind).glob("*.jsonl")):
            replay(read_recording(current), current.name)
    say(f"{sum(verdicts.values())} recorded calls weighed as live ones: {dict(verdicts)}")
    assert {name for name, _ in wrong} <= CLEARED.keys(), wrong
    assert len(wrong) <= 3
    assert verdicts["doubted"] <= 22  # contexts that begin in a file


def test_no_recorded_answer_is_taken_for_the_beginning_of_one(say: Callable[[str], None]) -> None:
    """The output that a stream ends with is its own, whatever the answer holds."""
    counter, costs = TokenCounter(), Counter[str]()
    for name in files():
        for _, want in recordings.answers(corpus_root() / "streams" / name):
            calls = [ToolCall(str(number), *call) for number, call in enumerate(want.calls)]
            thoughts = [Reasoning(want.reasoning)] if want.reasoning else []
            if want.failed or not want.ended or want.output is None:
                continue
            reply = assistant(*thoughts, want.text, *calls)
            model = {"openai-responses": "gpt-5", "anthropic": "claude-sonnet-4-5"}.get(want.dialect)
            count = counter.count_message(reply, model or "recorded")
            cost = cost_of_reply(reply, count, Usage(want.input, want.output), 1.0, exact=model is not None)
            assert cost.output == want.output, name
            costs["with output that is not in the answer" if cost.unseen else "whole"] += 1
    say(f"{sum(costs.values())} recorded answers weighed: {dict(costs)}")
    assert sum(costs.values()) >= 85


def test_a_recording_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = []
    once = HybridTokenEstimator.record

    def recorded(self: HybridTokenEstimator, *args: Any, **values: Any) -> Verdict | None:
        verdicts.append(once(self, *args, **values))
        return verdicts[-1]

    monkeypatch.setattr(HybridTokenEstimator, "record", recorded)
    path = sorted((corpus_root() / "sessions" / "pi").glob("*.jsonl"))[0]
    assert replay(read_recording(path), path.name).calls == len(verdicts)
    assert all(verdict is not None and verdict.believed and verdict.confirmed for verdict in verdicts)

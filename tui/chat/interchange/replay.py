"""Recorded conversations, call by call, as in the program: to score the estimator, or to learn an imported session.

Before each call its request is projected by the program's code, and estimated; then the recorded usage is its outcome.
The first call of a conversation, and the first after a compaction, have no earlier measurement in the file (system
prompt and tools are not in it): they only anchor.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median, quantiles
from typing import Literal, NamedTuple, TypeAlias

from tui.chat.conversation.history import HistoryState, fold_records
from tui.chat.conversation.projection import Projection, Target
from tui.chat.interchange.recording import Recording
from tui.chat.store.store import Record
from tui.context.counting.counting import TokenCounter
from tui.context.counting.families import shared_name
from tui.context.estimate.calibration import CalibrationBook
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.estimate.measurements import ConversationStateTracker
from tui.context.reduction.records import CompactionRecord
from tui.messages import Message, Request, SystemSection, Usage
from tui.providers.base import Capabilities
from tui.providers.capabilities import anthropic_capabilities, chat_capabilities, claude, responses_capabilities

Method: TypeAlias = Literal["hybrid", "chars4"]


LEARNED_CALLS = 100
"""Calls learned of a session that was long when it was opened: enough to learn from, in well under a second."""
MAX_MEASUREMENTS = 64
"""Of the last context: enough to go back a few turns; more would evict measurements of the person's own sessions."""


class RecordedCall(NamedTuple):
    """An answered call of a conversation.

    `request` is what the projection would have sent, `state` the history's before it; `believed` is the `usage` as
    reported, or corrected.
    """

    reply: Message
    usage: Usage
    believed: Usage
    request: Request
    state: HistoryState


def recorded_calls(
    recording: Recording, system: tuple[SystemSection, ...] = (), *, start: int = 0, stop: int | None = None
) -> Iterator[RecordedCall]:
    """The calls of `recording.answers[start:stop]`, except those of compactions: they don't measure the conversation.

    `system` is sent with every request.
    """
    targets: dict[tuple[str, str], tuple[Target, Projection]] = {}
    for index, reply, usage, state in _answers(recording, start, stop):
        if reply.kind == "summary":
            continue
        key = (reply.provider, reply.model)
        if key not in targets:
            targets[key] = target_of(*key, system), Projection()
        target, projection = targets[key]
        _, request = projection.requests(recording.messages[:index], state, target)
        tokens = recording.corrected.get(reply.id)
        believed = usage if tokens is None else replace(usage, input_total=tokens)
        yield RecordedCall(reply, usage, believed, request, state)


def new_estimator() -> HybridTokenEstimator:
    """An estimator that has learned nothing."""
    return HybridTokenEstimator(TokenCounter(), ConversationStateTracker(), CalibrationBook())


def learn_call(estimator: HybridTokenEstimator, call: RecordedCall, *, learn: bool = True) -> None:
    """Record the usage of a call; without `learn` only as the measurement that the next ones go by."""
    at = call.reply.created_at
    estimator.record(call.request, call.reply, call.believed, learn=learn, at=at, recorded=True)


def _answers(
    recording: Recording, start: int = 0, stop: int | None = None
) -> Iterator[tuple[int, Message, Usage, HistoryState]]:
    """Answers with their position, usage, and the state of the history before them."""
    state, used = HistoryState(), -1
    for index, message, usage in recording.answers[start:stop]:
        records = [record for record in recording.records if record.id < message.id]
        if len(records) != used:
            state, used = fold_records(records), len(records)
        yield index, message, usage, state


def target_of(provider: str, model: str, system: tuple[SystemSection, ...] = ()) -> Target:
    """The recipient of the recorded requests, with its capabilities."""
    return Target(provider, model, capabilities=_capabilities(provider, model), system=system, session="replay")


def _capabilities(provider: str, model: str) -> Capabilities:
    match provider:
        case "anthropic":
            return anthropic_capabilities(model, official=True)
        case "openai":
            return responses_capabilities(model, official=True)
        case _ if "deepseek" in model.lower():
            return Capabilities(reasoning_return="always")
        case _ if claude(model) is not None:
            return chat_capabilities(model, "openrouter")
        case _:
            return chat_capabilities(model, "kimi" if "kimi" in model.lower() else "plain")


# -- learned: an imported session --------------------------------------------------------------------------------------
#
# Other programs' system prompts and tools are part of their calls' cost, but not in their files, and chatctx does not
# send them. They get a digest of their own, and the part of the first call that its messages do not explain is
# attributed to them: the accounting then corrects for it, as when a person changes the system prompt.


def tokens_not_in_file(recording: Recording) -> int | None:
    """Tokens of the first call of the last context that its messages do not explain: system prompt and tools.

    None without a call, and for our own sessions, whose system prompt is known. Memory files are not in an export: they
    are determined like another program's system prompt.
    """
    if recording.info is not None and fold_records(recording.records).memory is None:
        return None
    start, context = 0, -1
    for number, (_, reply, _, state) in enumerate(_answers(recording)):
        if reply.kind != "summary" and _summaries(state) != context:
            start, context = number, _summaries(state)
    for call in recorded_calls(recording, start=start):
        return max(0, (call.usage.input_total or 0) - new_estimator().estimate(call.request).tokens)
    return None


def measure_imported(
    unmeasured: str,
    session: str,
    messages: Sequence[Message],
    records: Sequence[Record],
    estimator: HybridTokenEstimator,
    system: tuple[SystemSection, ...],
) -> None:
    """Let `estimator` learn from the last calls of an imported session, of which the import recorded `unmeasured`.

    `system` is the system prompt of our own sessions. Counts text: not on an event loop.
    """
    entry = json.loads(unmeasured)
    not_in_file: int | None = entry["not_in_file"]
    tracker = ConversationStateTracker()
    recording = Recording("", "", tuple(messages), tuple(records), corrected=entry["corrected"])
    sent = system if not_in_file is None else ()
    book, models, context = CalibrationBook(), set[tuple[str, str]](), -1
    start = max(0, len(recording.answers) - LEARNED_CALLS)
    for call in recorded_calls(recording, sent, start=start):
        if context != _summaries(call.state):
            context, tracker = _summaries(call.state), ConversationStateTracker()
            learner = HybridTokenEstimator(estimator.counter, tracker, book, estimator.costs)
        model = call.request.provider, shared_name(call.request.model)
        if model not in models:  # what was learned about system prompts does not apply to another program's
            models.add(model)
            book.put(*model, replace(estimator.calibrations.get(*model), preambles={}))
        learn_call(learner, call)
    preamble, now = hashlib.sha256(f"preamble of {session}".encode()).digest(), time.time()
    for measurement in tracker.measurements()[-MAX_MEASUREMENTS:]:
        if not_in_file is not None:
            tokens = measurement.preamble_tokens + not_in_file
            measurement = replace(measurement, preamble=preamble, preamble_tokens=tokens)
        estimator.tracker.remember(replace(measurement, at=now))
    for model in models:
        preambles = estimator.calibrations.get(*model).preambles
        estimator.calibrations.put(*model, replace(book.get(*model), preambles=preambles))


def _summaries(state: HistoryState) -> int:
    """How often a summary replaced messages. Cleared tool results have none, and the context goes on."""
    return sum(isinstance(record, CompactionRecord) and record.summary != "" for record in state.checkpoints)


# -- scored: `chatctx replay` -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scored:
    """A predicted call, in tokens."""

    predicted: int
    upper_bound: int
    actual: int

    @property
    def error_percent(self) -> float:
        """Predicted minus actual, in percent of the actual number."""
        return 100 * (self.predicted - self.actual) / self.actual


class Scorer:
    """Predicts recorded calls one after the other, and learns each after that."""

    def __init__(self, method: Method = "hybrid", *, learn: bool = True) -> None:
        self.estimator = new_estimator()
        self._method = method
        self._learn = learn
        self._compactions = -1
        self._last = 0, 0  # tokens of the last call with its answer, and the messages they cover

    def score(self, call: RecordedCall) -> Scored | None:
        """The prediction; None for the first call of a context, which no measurement precedes."""
        anchors, self._compactions = len(call.state.checkpoints) != self._compactions, len(call.state.checkpoints)
        if self._method == "chars4":
            predicted = upper_bound = self._naive(call)
        else:
            estimate = self.estimator.estimate(call.request)
            predicted, upper_bound = estimate.tokens, estimate.upper_bound
            learn_call(self.estimator, call, learn=self._learn)
        return None if anchors else Scored(predicted, upper_bound, call.usage.input_total or 0)

    def _naive(self, call: RecordedCall) -> int:
        """The last call's input and output, plus a token per four characters since."""
        messages, (tokens, covered) = call.request.messages, self._last
        self._last = (call.usage.input_total or 0) + (call.usage.output_total or 0), len(messages) + 1
        fresh = messages[covered:] if covered <= len(messages) else messages
        parts = [part for message in fresh for part in message.parts]
        return tokens + sum(len(getattr(part, "text", "")) + len(getattr(part, "arguments", "")) for part in parts) // 4


@dataclass(frozen=True, slots=True)
class Replay:
    """The result for a conversation, or several. `unpredictable` is how many calls are not scored, by the reason."""

    name: str
    calls: int
    scored: tuple[Scored, ...]
    seconds: float = 0.0
    unpredictable: Mapping[str, int] = field(default_factory=dict)


def replay(recording: Recording, name: str, *, learn: bool = True, method: Method = "hybrid") -> Replay:
    """Feed `recording` to a fresh estimator, call by call."""
    began = time.perf_counter()
    scorer = Scorer(method, learn=learn)
    scored: list[Scored] = []
    unpredictable: Counter[str] = Counter()
    for call in recorded_calls(recording):
        prediction = scorer.score(call)
        if call.reply.id in recording.unpredictable:
            unpredictable[recording.unpredictable[call.reply.id]] += 1
        elif prediction is not None:
            scored.append(prediction)
    return Replay(name, len(recording.answers), tuple(scored), time.perf_counter() - began, unpredictable)


def together(results: Sequence[Replay]) -> Replay:
    """The results of several conversations as one."""
    scored = tuple(call for result in results for call in result.scored)
    unpredictable = sum((Counter(result.unpredictable) for result in results), Counter[str]())
    return Replay("all", sum(r.calls for r in results), scored, sum(r.seconds for r in results), unpredictable)


def summary(result: Replay) -> dict[str, object]:
    """The figures of a result, with the names of `--json`. Unknown is None."""
    scored = result.scored
    errors = [call.error_percent for call in scored]
    sizes = [abs(error) for error in errors]
    widths = [100 * (call.upper_bound - call.predicted) / call.predicted for call in scored if call.predicted]
    covered = sum(call.actual <= call.upper_bound for call in scored)
    return {
        "file": result.name,
        "calls": result.calls,
        "predicted": len(scored),
        "median_abs_error_percent": median(sizes) if sizes else None,
        "p95_abs_error_percent": _percentile(sizes, 95),
        "p99_abs_error_percent": _percentile(sizes, 99),
        "bias_percent": sum(errors) / len(errors) if errors else None,
        "covered_by_upper_bound_percent": 100 * covered / len(scored) if scored else None,
        "median_upper_bound_width_percent": median(widths) if widths else None,
        "worst_underestimate_percent": max(0.0, -min(errors)) if errors else None,
        "seconds": round(result.seconds, 3),
        "not_scored": dict(result.unpredictable),
    }


def _percentile(values: Sequence[float], percent: int) -> float | None:
    return quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else next(iter(values), None)

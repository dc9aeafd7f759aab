"""Scores the estimator on recorded conversations, call by call, as in the program.

Before each call the request is projected and estimated by the program's code; then the recorded usage is recorded as
its outcome. The first call of a conversation, and the first after a compaction, have no earlier measurement in the file
(system prompt and tools are not in it): they only anchor.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Literal, TypeAlias

from tui.chat.conversation.history import HistoryState, fold_records
from tui.chat.conversation.projection import Projection, Target
from tui.chat.interchange.recording import Recording
from tui.context.counting.counting import TokenCounter
from tui.context.estimate.calibration import CalibrationBook
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.estimate.tracker import ConversationStateTracker
from tui.messages import Message, Request, SystemSection, Usage
from tui.providers.base import Capabilities
from tui.providers.capabilities import anthropic_capabilities, chat_capabilities, claude, responses_capabilities

Method: TypeAlias = Literal["hybrid", "chars4"]


@dataclass(frozen=True, slots=True)
class Scored:
    """A predicted call, in tokens. `number` counts the file's predicted calls from 1."""

    number: int
    predicted: int
    upper_bound: int
    actual: int
    source: str
    message: str = ""

    @property
    def error_percent(self) -> float:
        """Predicted minus actual, in percent of the actual number."""
        return 100 * (self.predicted - self.actual) / self.actual


@dataclass(frozen=True, slots=True)
class Replay:
    """The result for a file."""

    name: str
    calls: int
    scored: tuple[Scored, ...]
    seconds: float
    unpredictable: Mapping[str, int]


def replay(recording: Recording, name: str, *, learn: bool = True, method: Method = "hybrid") -> Replay:
    """Feed `recording` to a fresh estimator, call by call."""
    began = time.perf_counter()
    estimator = HybridTokenEstimator(TokenCounter(), ConversationStateTracker(), CalibrationBook())
    naive = _Chars4()
    scored: list[Scored] = []
    unpredictable: Counter[str] = Counter()
    calls, fresh = 0, True
    compactions = -1
    for reply, usage, request, state in recorded_calls(recording):
        calls += 1
        if reply.kind == "summary":
            continue  # a compaction's own call does not measure the conversation
        if len(state.checkpoints) != compactions:
            fresh, compactions = True, len(state.checkpoints)
        actual = usage.input_total or 0
        if method == "chars4":
            predicted = bound = naive.estimate(request)
            source = "delta"
            naive.record(request, usage)
        else:
            estimate = estimator.estimate(request)
            predicted, bound, source = estimate.tokens, estimate.upper_bound, estimate.source
            usage = recording.believed(reply, usage)
            estimator.record(request, reply, usage, learn=learn, at=reply.created_at, recorded=True)
        if reply.id in recording.unpredictable:
            unpredictable[recording.unpredictable[reply.id]] += 1
        elif not fresh:
            scored.append(Scored(len(scored) + 1, predicted, bound, actual, source, reply.id))
        fresh = False
    return Replay(name, calls, tuple(scored), time.perf_counter() - began, unpredictable)


def recorded_calls(
    recording: Recording, system: tuple[SystemSection, ...] = (), *, skip: int = 0
) -> Iterator[tuple[Message, Usage, Request, HistoryState]]:
    """Every answered call with its usage, and the request that the projection would have built.

    `system` is sent with every request; the first `skip` calls are left out.
    """
    targets: dict[tuple[str, str], tuple[Target, Projection]] = {}
    for index, message, usage, state in answered_calls(recording, skip=skip):
        key = (message.provider, message.model)
        if key not in targets:
            targets[key] = target_of(*key, system), Projection()
        target, projection = targets[key]
        _, request = projection.requests(recording.messages[:index], state, target)
        yield message, usage, request, state


def answered_calls(recording: Recording, *, skip: int = 0) -> Iterator[tuple[int, Message, Usage, HistoryState]]:
    """Every answered call: the answer's position, the answer, its usage, and the state of the history before it."""
    state, used = HistoryState(), -1
    for index, message, usage in recording.answers[skip:]:
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


class _Chars4:
    """The naive method, for comparison: the last call's input and output, plus a token per four characters since."""

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None  # tokens, messages they cover

    def estimate(self, request: Request) -> int:
        tokens, covered = self._last or (0, 0)
        fresh = request.messages[covered:] if covered <= len(request.messages) else request.messages
        return tokens + sum(_characters(message) for message in fresh) // 4

    def record(self, request: Request, usage: Usage) -> None:
        self._last = ((usage.input_total or 0) + (usage.output_total or 0), len(request.messages) + 1)


def _characters(message: Message) -> int:
    length = 0
    for part in message.parts:
        length += len(getattr(part, "text", "")) + len(getattr(part, "arguments", ""))
    return length


def summary(name: str, calls: int, scored: Sequence[Scored], seconds: float) -> dict[str, object]:
    """The figures of a file or of all, with the names of `--json`. Unknown is None."""
    errors = [call.error_percent for call in scored]
    sizes = [abs(error) for error in errors]
    widths = [100 * (call.upper_bound - call.predicted) / call.predicted for call in scored if call.predicted]
    covered = sum(call.actual <= call.upper_bound for call in scored)
    return {
        "file": name,
        "calls": calls,
        "predicted": len(scored),
        "median_abs_error_percent": median(sizes) if sizes else None,
        "p95_abs_error_percent": _percentile(sizes, 95),
        "p99_abs_error_percent": _percentile(sizes, 99),
        "bias_percent": sum(errors) / len(errors) if errors else None,
        "covered_by_upper_bound_percent": 100 * covered / len(scored) if scored else None,
        "median_upper_bound_width_percent": median(widths) if widths else None,
        "worst_underestimate_percent": max(0.0, -min(errors)) if errors else None,
        "seconds": round(seconds, 3),
    }


def _percentile(values: Sequence[float], percent: int) -> float | None:
    return quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else next(iter(values), None)

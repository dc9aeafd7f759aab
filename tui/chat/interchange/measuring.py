"""What the calls of an imported session measured, for the accounting: learned when the session is first opened.

Other programs' system prompts and tools are part of their calls' cost, but not in their files, and chatctx does not
send them. They get a digest of their own, and the part of the first call that its messages do not explain is attributed
to them: the accounting then corrects for it, as when a person changes the system prompt.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import replace

from tui.chat.conversation.history import HistoryState, fold_records
from tui.chat.interchange.recording import Recording
from tui.chat.interchange.replay import answered_calls, recorded_calls
from tui.chat.store.learned import UNMEASURED, optional_write
from tui.chat.store.store import Record, SessionStore
from tui.context.counting.counting import TokenCounter
from tui.context.counting.model_names import shared_name
from tui.context.estimate.calibration import CalibrationBook
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.estimate.preamble import PreambleCosts
from tui.context.estimate.tracker import ConversationStateTracker
from tui.context.reduction.checkpoints import CompactionRecord
from tui.messages import Message, SystemSection

LEARNED_CALLS = 100
"""Calls learned of a session that was long when it was opened: enough to learn from, in well under a second."""
KEPT_MEASUREMENTS = 64
"""Of the last context: enough to go back a few turns; more would evict measurements of the person's own sessions."""


def measure_when_opened(store: SessionStore, session: str, recording: Recording) -> int | None:
    """Note that `session` is to be measured when it is first opened; returns `tokens_not_in_file`."""
    tokens = tokens_not_in_file(recording)
    entry = {"not_in_file": tokens, "corrected": dict(recording.corrected)}
    store.change_state(UNMEASURED, lambda sessions: {**sessions, session: entry})
    return tokens


def tokens_not_in_file(recording: Recording) -> int | None:
    """Tokens of the first call of the last context that its messages do not explain: system prompt and tools.

    None without a call, and for our own sessions, whose system prompt is known. Memory files are not in an export: they
    are determined like another program's system prompt.
    """
    if recording.info is not None and not fold_records(recording.records).memory:
        return None
    for reply, usage, request, _ in recorded_calls(recording, skip=_last_context(recording)):
        if reply.kind != "summary":
            alone = HybridTokenEstimator(TokenCounter(), ConversationStateTracker(), CalibrationBook())
            return max(0, (usage.input_total or 0) - alone.estimate(request).tokens)
    return None


def measure_imported(
    store: SessionStore,
    session: str,
    messages: Sequence[Message],
    records: Sequence[Record],
    estimator: HybridTokenEstimator,
    system: tuple[SystemSection, ...],
) -> None:
    """Let `estimator` learn from the last calls of a session that is `UNMEASURED`.

    `system` is the system prompt of our own sessions. Counts text: not on an event loop.
    """
    entry = json.loads(store.get_state(UNMEASURED) or "{}")[session]
    not_in_file, corrected = entry["not_in_file"], entry["corrected"]
    tracker = ConversationStateTracker()
    recording = Recording("", "", tuple(messages), tuple(records), corrected=corrected)
    sent = system if not_in_file is None else ()
    book, models, context = CalibrationBook(), set[tuple[str, str]](), -1
    skip = max(0, len(recording.answers) - LEARNED_CALLS)
    for reply, usage, request, state in recorded_calls(recording, sent, skip=skip):
        if reply.kind == "summary":
            continue
        if context != _summaries(state):
            context, tracker = _summaries(state), ConversationStateTracker()
            learner = HybridTokenEstimator(estimator.counter, tracker, book, estimator.costs)
        model = request.provider, shared_name(request.model)
        if model not in models:  # what was learned about system prompts does not apply to another program's
            models.add(model)
            book.put(*model, replace(estimator.calibrations.get(*model), preambles=PreambleCosts()))
        learner.record(request, reply, recording.believed(reply, usage), at=reply.created_at, recorded=True)
    preamble, now = hashlib.sha256(f"preamble of {session}".encode()).digest(), time.time()
    for measurement in tracker.measurements()[-KEPT_MEASUREMENTS:]:
        if not_in_file is not None:
            tokens = measurement.preamble_tokens + not_in_file
            measurement = replace(measurement, preamble=preamble, preamble_tokens=tokens)
        estimator.tracker.remember(replace(measurement, at=now))
    for model in models:
        preambles = estimator.calibrations.get(*model).preambles
        estimator.calibrations.put(*model, replace(book.get(*model), preambles=preambles))
    with optional_write():
        store.change_state(UNMEASURED, lambda sessions: {key: sessions[key] for key in sessions if key != session})


def _last_context(recording: Recording) -> int:
    """The number of calls before the last summary replaced messages."""
    start, context = 0, -1
    for number, (_, reply, _, state) in enumerate(answered_calls(recording)):
        if reply.kind != "summary" and _summaries(state) != context:
            start, context = number, _summaries(state)
    return start


def _summaries(state: HistoryState) -> int:
    """How often a summary replaced messages. Cleared tool results have none, and the context goes on."""
    return sum(isinstance(record, CompactionRecord) and record.summary != "" for record in state.checkpoints)

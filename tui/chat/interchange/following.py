"""Follows another program's session file: finds it, reads it as it grows, measures it call by call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from tui.chat.conversation.history import fold_records
from tui.chat.conversation.projection import build_request, trimmed_request
from tui.chat.interchange.foreign import claude, codex, read_recordings
from tui.chat.interchange.foreign.locations import SessionFile, session_files
from tui.chat.interchange.foreign.source import Line
from tui.chat.interchange.recording import MALFORMED, Recording, RecordingError
from tui.chat.interchange.replay import recorded_calls, target_of
from tui.context.counting.counting import TokenCounter
from tui.context.estimate.calibration import CalibrationBook
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.estimate.tracker import ConversationStateTracker
from tui.context.usage.limits import UNKNOWN_LIMITS, BudgetSettings, ModelLimits, with_window
from tui.context.usage.usage import ContextUsage, calculate_context_usage
from tui.messages import Usage
from tui.providers.models.catalog import dollars, known_limits

LEARNED_CALLS = 24
"""Calls measured of a long session: enough to learn the model's factor, in well under a second."""
PACE_CALLS = 20  # calls over which the growth of the context is averaged
LARGE_WINDOW = 1_000_000  # tokens: the window of Claude's 200k models with "[1m]", which no file names
SMALL_WINDOW = 200_000
COMPACTS_AT: Mapping[str, float] = {"claude-code": 0.8, "codex": 0.9}
"""Share of the window at which a program compacts by default. Observed, so shown with `~`."""
HEAD_BYTES = 64_000  # bytes of a file that contain its folder
SECONDS_A_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Followed:
    """The current state of the session. Tokens, US dollars today, shares from 0 to 1; None is unknown.

    `forecasts` are the errors in percent of every predicted call, oldest first.
    """

    program: str
    title: str
    usage: ContextUsage
    calls: int
    forecasts: tuple[float, ...]
    cached_share: float | None
    growth: float | None
    compacts_at: int | None
    cost_today: float | None
    subagents: int
    subagent_tokens: int

    @property
    def calls_left(self) -> int | None:
        """Estimated number of calls until the program compacts."""
        if self.compacts_at is None or not self.growth or self.growth <= 0:
            return None
        return max(0, int((self.compacts_at - self.usage.total) / self.growth))

    @property
    def within_percent(self) -> float | None:
        """The largest error of 95 % of the forecasts; None with fewer than five."""
        sizes = [abs(error) for error in self.forecasts]
        return quantiles(sizes, n=20, method="inclusive")[-1] if len(sizes) >= 5 else None


def newest_session(env: Mapping[str, str], home: Path, folder: Path) -> SessionFile | None:
    """The latest session of another program in `folder`, or None."""
    for file in session_files(env, home):
        if file.program in ("Claude Code", "Codex", "Gemini CLI", "pi") and _is_in(file, folder):
            return file
    return None


def _is_in(file: SessionFile, folder: Path) -> bool:
    """Whether the session was held in `folder`, according to the beginning of the file or the name of its folder."""
    try:
        with file.path.open("rb") as stream:
            head = stream.read(HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return False
    return json.dumps(str(folder)) in head or str(folder).replace("/", "-") == file.path.parent.name.replace("--", "-")


class Follower:
    """One session file. `poll` reads what is new; `state` measures the next request."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = (-1, -1.0)  # size in bytes and time of the last change
        self._tail = _Tail()
        self._recording: Recording | None = None
        self._restart()

    def _restart(self) -> None:
        self._tail = _Tail()
        self._estimator = HybridTokenEstimator(TokenCounter(), ConversationStateTracker(), CalibrationBook())
        self._measured = -1  # calls fed to the estimator; -1 before the first
        self._compactions = -1
        self._forecasts: list[float] = []

    def poll(self) -> bool:
        """Read what was added. Returns whether anything was. Raises `RecordingError`."""
        try:
            status = self.path.stat()
            if (status.st_size, status.st_mtime) == self._seen:
                return False
            self._seen = (status.st_size, status.st_mtime)
            if status.st_size < self._tail.read:
                self._restart()
            if self._tail.appended(self.path):
                self._recording = self._tail.recording(self.path.stem)
            else:  # the program rewrites its file
                self._recording = max(read_recordings(self.path), key=lambda one: one.messages[-1].created_at)
        except OSError as error:
            raise RecordingError(f"{self.path}: {error.strerror or error}") from None
        return True

    def state(self, window: int | None = None, now: float = 0.0) -> Followed | None:
        """The measured next request; None before the first answer. `window` in tokens is set by the person.

        Counts text: not on an event loop. Every new call is predicted before its usage is read.
        """
        recording = self._recording
        if recording is None or not recording.model[1]:
            return None
        self._measure(recording)
        state = fold_records(recording.records)
        target = target_of(*recording.model)
        request = trimmed_request(build_request(recording.messages, state, target), state, target)
        usages = [m.usage for m in recording.messages if m.role == "assistant" and m.usage and m.usage.input_total]
        limits = _limits(recording, usages, window)
        usage = calculate_context_usage(
            request, estimator=self._estimator, limits=limits, settings=BudgetSettings(0, None, False),
            compactions=len(state.checkpoints),
        )  # fmt: skip
        share = COMPACTS_AT.get(recording.source)
        subagents = _subagents(self.path)
        return Followed(
            program=recording.source,
            title=recording.title,
            usage=usage,
            calls=len(usages),
            forecasts=tuple(self._forecasts),
            cached_share=_cached_share(usages),
            growth=_growth(usages),
            compacts_at=int(limits.context * share) if limits.context and share else None,
            cost_today=_cost(recording, now - now % SECONDS_A_DAY),
            subagents=len(subagents),
            subagent_tokens=sum(subagents),
        )

    def _measure(self, recording: Recording) -> None:
        """Feed new calls to the estimator. Of a long session just opened, only the last ones."""
        calls = sum(m.role == "assistant" and bool(m.usage and m.usage.input_total) for m in recording.messages)
        first = max(self._measured, 0, calls - LEARNED_CALLS) if self._measured < 0 else self._measured
        for reply, usage, request, state in recorded_calls(recording, skip=first):
            if reply.kind == "summary":
                continue
            fresh = len(state.checkpoints) != self._compactions
            self._compactions = len(state.checkpoints)
            predicted = self._estimator.estimate(request).tokens
            if not fresh and usage.input_total and reply.id not in recording.unpredictable:
                self._forecasts.append(100 * (predicted - usage.input_total) / usage.input_total)
            usage = recording.believed(reply, usage)
            self._estimator.record(request, reply, usage, at=reply.created_at, recorded=True)
        self._measured = calls


class _Tail:
    """The lines of an append-only file, passed to its program's reader as they arrive."""

    def __init__(self) -> None:
        self.read = 0  # bytes
        self._incomplete = b""  # an incomplete line
        self._waiting: list[Line] = []  # lines before the program is identified
        self._reader: claude.Reader | codex.Reader | None = None

    def appended(self, path: Path) -> bool:
        """Read on. False if `path` is not an append-only file of a known program."""
        with path.open("rb") as stream:
            stream.seek(self.read)
            data = self._incomplete + stream.read()
            self.read = stream.tell()
        *lines, self._incomplete = data.split(b"\n")
        for text in lines:
            try:
                line = json.loads(text)
            except ValueError:
                continue  # damaged: skip this line only
            if isinstance(line, dict):
                self._add(line)
        return self._reader is not None

    def recording(self, fallback: str) -> Recording:
        """The conversation so far."""
        assert self._reader is not None
        return self._reader.recording(fallback)

    def _add(self, line: Line) -> None:
        if self._reader is None:
            self._waiting.append(line)
            if "payload" in line and line.get("type") in ("session_meta", "response_item"):
                self._reader = codex.Reader()
            elif "sessionId" in line and "uuid" in line and "parts" not in (line.get("message") or {}):
                self._reader = claude.Reader(side=bool(line.get("isSidechain")))
            else:
                return
            waiting, self._waiting = self._waiting, []
            for earlier in waiting:
                self._add(earlier)
            return
        try:
            self._reader.add(line)
        except MALFORMED:
            return  # an unknown version: skip this line only


def _limits(recording: Recording, usages: Sequence[Usage], window: int | None) -> ModelLimits:
    """The window: the person's, the file's, or the model's. A Claude with more than 200k used has a million."""
    if window is not None:
        return ModelLimits(window, source="setting", detail="set by you")
    if recording.window is not None:
        return ModelLimits(recording.window, source="probe", detail="session file")
    limits = known_limits(*recording.model)
    largest = max((usage.input_total or 0 for usage in usages), default=0)
    if recording.source == claude.SOURCE and (limits.context or 0) <= SMALL_WINDOW < largest:
        return with_window(limits, LARGE_WINDOW, "learned", f"a request of {largest:,} tokens was answered")
    return limits if limits.context else UNKNOWN_LIMITS


def _cached_share(usages: Sequence[Usage]) -> float | None:
    if not usages or usages[-1].input_cached is None or not usages[-1].input_total:
        return None
    return usages[-1].input_cached / usages[-1].input_total


def _growth(usages: Sequence[Usage]) -> float | None:
    """Growth in tokens with each of the last calls, since the context last shrank."""
    inputs = [usage.input_total or 0 for usage in usages[-PACE_CALLS:]]
    begin = max((i for i in range(1, len(inputs)) if inputs[i] < 0.7 * inputs[i - 1]), default=0)
    grown = inputs[begin:]
    return (grown[-1] - grown[0]) / (len(grown) - 1) if len(grown) > 1 else None


def _cost(recording: Recording, since: float) -> float | None:
    """US dollars of the calls from `since` on; None if a price is unknown."""
    whole = 0.0
    for message in recording.messages:
        if message.role == "assistant" and message.usage is not None and message.created_at >= since:
            cost = dollars(message.usage, message.provider, message.model)
            if cost is None:
                return None
            whole += cost
    return whole


def _subagents(path: Path) -> list[int]:
    """The last input of each sub-agent of a Claude Code session, in tokens; each has its own context."""
    last_inputs = []
    for file in sorted((path.with_suffix("") / "subagents").glob("agent-*.jsonl")):
        tail = _Tail()
        if tail.appended(file):
            inputs = [
                m.usage.input_total for m in tail.recording(file.stem).messages if m.usage and m.usage.input_total
            ]
            last_inputs += inputs[-1:]
    return last_inputs

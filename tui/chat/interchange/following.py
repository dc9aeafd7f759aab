"""Follows another program's session file: reads it as it grows, measures it call by call."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import quantiles

from tui.chat.conversation.history import fold_records
from tui.chat.conversation.projection import Projection
from tui.chat.interchange.foreign import claude, codex, opencode, read_recordings
from tui.chat.interchange.foreign.reading import Line, SourceFile, loaded
from tui.chat.interchange.recording import NoMessagesError, Recording, RecordingError, checked
from tui.chat.interchange.replay import LEARNED_CALLS, Scorer, learn_call, recorded_calls, target_of
from tui.chat.store.codec import MALFORMED
from tui.context.usage.limits import UNKNOWN_LIMITS, BudgetSettings, ModelLimits
from tui.context.usage.usage import ContextUsage, calculate_context_usage
from tui.messages import Usage
from tui.providers.capabilities import claude as claude_of
from tui.providers.catalog import known_limits, price

QUIET_SECONDS = 1.0  # since the last change, after which the last answer is taken to be complete
PACE_CALLS = 20  # calls over which the growth of the context is averaged
ALWAYS_LARGE = (5, 0)  # version of Claude, from which on its window does not depend on how it was chosen
COMPACTS_AT: Mapping[str, float] = {"claude-code": 0.8, "codex": 0.9}
"""Share of the window at which a program compacts by default. Observed, so shown with `~`."""
PERHAPS_SMALLER = "or 200k, unless it is [1m]: --window"
"""The detail of Claude's window where nothing tells which one it is."""

SECONDS_A_DAY = 86_400
HEAD_BYTES = 64_000  # at the beginning of a file: the first prompt, a rollout's metadata
TAIL_BYTES = 4_000_000  # of a large file that are read at least
BYTES_PER_TOKEN = 12  # in a session file: the text, what JSON adds to it, and copies for the screen
MAX_WAITING = 100  # lines before the first that shows the format


@dataclass(frozen=True, slots=True)
class Followed:
    """The current state of the session. Tokens, US dollars today, shares from 0 to 1; None is unknown.

    `forecasts` are the errors in percent of every predicted call, oldest first. `skipped` are bytes at the beginning of
    the file that were not read: calls, forecasts and the division of the context do not have what stands there.
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
    skipped: int

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


class Tail:
    """The current context. `read` is the position in the file, `skipped` the bytes left out before it."""

    def __init__(self) -> None:
        self.read = 0
        self.skipped = 0
        self._title = ""
        self._restart()

    def _restart(self) -> None:
        self._incomplete = b""  # the beginning of a line that is still being written
        self._waiting = deque[Line](maxlen=MAX_WAITING)  # until the format is known
        self._reader: claude.Reader | codex.Reader | None = None

    def appended(self, path: Path) -> bool:
        """Read on. Returns False if `path` is not the file of a program that appends."""
        if self.read == 0:
            self._open(path, path.stat().st_size)
        else:
            self._read_on(path)
        return self._reader is not None

    def recording(self, fallback: str) -> Recording:
        """The conversation so far, or the end of it."""
        assert self._reader is not None
        recording = self._reader.recording(self._reader.source, fallback)
        return replace(recording, title=self._title) if self._title else recording

    def _open(self, path: Path, size: int, amount: int = 0) -> None:
        """Read the end of the file: `amount` bytes, or enough for the tokens of the context."""
        amount = max(amount, TAIL_BYTES)
        self._restart()
        self.read = self.skipped = max(0, size - amount)
        if self.skipped:  # the title and a rollout's metadata are at its beginning
            with path.open("rb") as stream:
                *texts, _ = stream.read(min(HEAD_BYTES, self.skipped)).split(b"\n")
            lines = list(_parsed(texts))
            for line in lines:  # the end may begin with lines of a sub-agent
                self._reader = self._reader or _reader_of(line)
            self._feed(line for line in lines if line.get("type") in ("session_meta", "turn_context"))
            head = Tail()
            head._feed(lines)
            if head._reader is not None:
                self._title = head.recording("").title
        self._read_on(path)
        if self.skipped and (needed := BYTES_PER_TOKEN * self.last_input) > amount:
            self._open(path, size, needed)

    def _read_on(self, path: Path) -> None:
        with path.open("rb") as stream:
            stream.seek(self.read)
            data = self._incomplete + stream.read()
            self.read = stream.tell()
        *texts, self._incomplete = data.split(b"\n")
        self._feed(_parsed(texts))  # the first line of a tail is cut, and skipped like any that is not JSON

    @property
    def last_input(self) -> int:
        """Input tokens of the last call, 0 before one."""
        messages = self._reader.messages if self._reader is not None else []
        return next((m.usage.input_total for m in reversed(messages) if m.usage and m.usage.input_total), 0)

    def _feed(self, lines: Iterable[Line]) -> None:
        for line in lines:
            self._waiting.append(line)
            self._reader = self._reader or _reader_of(line)
            while self._reader is not None and self._waiting:
                with suppress(*MALFORMED):  # a line of an unknown version is skipped alone
                    self._reader.read_line(self._waiting.popleft())


def _reader_of(line: Line) -> claude.Reader | codex.Reader | None:
    """A reader for the format that a line shows; None if it shows none that is only appended to."""
    if "payload" in line and line.get("type") in ("session_meta", "response_item"):
        return codex.Reader()
    message = line.get("message")
    if "sessionId" in line and "uuid" in line and not (isinstance(message, dict) and "parts" in message):  # qwen-code's
        return claude.Reader(side=bool(line.get("isSidechain")))
    return None


def _parsed(texts: list[bytes]) -> Iterator[Line]:
    """The JSON objects among `texts`; damaged lines are skipped."""
    return (line for line in map(loaded, texts) if isinstance(line, dict) and line)


class Follower:
    """One session file. `poll` reads what is new; `state` measures the next request.

    `session` is the id of a session in a database.
    """

    def __init__(self, path: Path, session: str = "") -> None:
        self.path = path
        self.session = session
        self._stamp: tuple[float, ...] = ()  # sizes in bytes and times of the last change
        self._growing = False  # the last answer may not be complete
        self._recording: Recording | None = None
        self._subagents: dict[Path, Tail] = {}
        self._restart()

    def _restart(self) -> None:
        self._tail = Tail()
        self._start = 0  # bytes of the file that are skipped
        self._scorer = Scorer()
        self._projection = Projection()
        self._measured = -1  # calls fed to the estimator; -1 before the first
        self._forecasts: list[float] = []

    def poll(self) -> bool:
        """Read the lines that were added. Returns whether `state` may differ. Raises `RecordingError`."""
        try:
            stamp = _stamp(self.path)
            quiet = time.time() - max(stamp[1::2]) >= QUIET_SECONDS
            if stamp == self._stamp:
                completed = self._growing and quiet
                self._growing = self._growing and not quiet
                return completed
            self._stamp, self._growing = stamp, not quiet
            self._read(int(stamp[0]))
        except OSError as error:
            raise RecordingError(f"{self.path}: {error.strerror or error}") from None
        return True

    def _read(self, size: int) -> None:
        with SourceFile(self.path) as source:
            if source.is_database and self.session:
                recording = opencode.read_session(source, self.session)
                if source.damaged:
                    raise RecordingError(f"{self.path.name}: damaged: {source.skipped}")
                self._recording = None if recording is None else checked(recording)
                return
        if size < max(self._tail.read, self._start):
            self._restart()
        if not source.is_database and self._tail.appended(self.path):
            self._recording = self._tail.recording(self.path.stem)
        else:  # the program rewrites its file, or goes back in it
            if self._measured < 0 and self.path.suffix == ".jsonl":
                self._start = max(0, size - TAIL_BYTES)
            try:
                recordings = read_recordings(self.path, self._start)
                self._recording = checked(max(recordings, key=lambda one: one.messages[-1].created_at))
            except NoMessagesError:
                self._recording = None

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
        _, request = self._projection.requests(recording.messages, state, target)
        usages = [usage for _, _, usage in recording.answers]
        total, cached = (usages[-1].input_total, usages[-1].input_cached) if usages else (None, None)
        limits = _limits(recording, window)
        estimator, settings = self._scorer.estimator, BudgetSettings(0, None, False)
        if still_open := list(recorded_calls(recording, start=self._measured)):
            estimator = estimator.copy()  # an answer that may still grow is learned for this measurement only
            for call in still_open:
                learn_call(estimator, call)
        usage = calculate_context_usage(
            request, estimator=estimator, limits=limits, settings=settings, compactions=len(state.checkpoints)
        )
        share = COMPACTS_AT.get(recording.source)
        subagents = self._subagent_inputs()
        return Followed(
            program=recording.source,
            title=recording.title,
            usage=usage,
            calls=len(usages),
            forecasts=tuple(self._forecasts),
            cached_share=cached / total if total and cached is not None else None,
            growth=_growth(usages),
            compacts_at=int(limits.context * share) if limits.context and share else None,
            cost_today=self._cost(recording, now - now % SECONDS_A_DAY),
            subagents=len(subagents),
            subagent_tokens=sum(subagents),
            skipped=self._tail.skipped or self._start,
        )

    def _measure(self, recording: Recording) -> None:
        """Feed new calls to the estimator. Of a long session just opened, only the last ones.

        An answer that may still grow is not fed yet.
        """
        calls = len(recording.answers) - self._growing
        first = max(0, calls - LEARNED_CALLS) if self._measured < 0 else self._measured
        for call in recorded_calls(recording, start=first, stop=calls):
            scored = self._scorer.score(call)
            if scored is not None and call.reply.id not in recording.unpredictable:
                self._forecasts.append(scored.error_percent)
        self._measured = max(self._measured, calls)

    def _subagent_inputs(self) -> list[int]:
        """The last input of each sub-agent of Claude Code or opencode, in tokens; each has its own context."""
        if self.session:
            with SourceFile(self.path) as source:
                return opencode.subagent_inputs(source, self.session)
        last_inputs = []
        for file in sorted((self.path.with_suffix("") / "subagents").glob("agent-*.jsonl")):
            tail = self._subagents.setdefault(file, Tail())
            if tail.appended(file) and tail.last_input:
                last_inputs.append(tail.last_input)
        return last_inputs

    def _cost(self, recording: Recording, since: float) -> float | None:
        """US dollars of the calls from `since` on; None if a price or the beginning of the day is unknown."""
        if (self._tail.skipped or self._start) and recording.messages[0].created_at >= since:
            return None
        total = 0.0
        for message in recording.messages:
            if message.role == "assistant" and message.usage is not None and message.created_at >= since:
                cost = price(message.usage, message.provider, message.model)
                if cost is None:
                    return None
                total += cost
        return total


def _limits(recording: Recording, window: int | None) -> ModelLimits:
    """The window: the person's, the file's, or the model's."""
    if window is not None:
        return ModelLimits(window, source="setting", detail="set by you")
    if recording.window is not None:
        return ModelLimits(recording.window, source="probe", detail="session file")
    limits = known_limits(*recording.model)
    model = claude_of(recording.model[1])
    if recording.source == claude.SOURCE and limits.context and model is not None and model.version < ALWAYS_LARGE:
        small = limits.context <= claude.SMALL_WINDOW
        return limits if small else replace(limits, detail=PERHAPS_SMALLER)
    return limits if limits.context else UNKNOWN_LIMITS


def _growth(usages: Sequence[Usage]) -> float | None:
    """Growth in tokens with each of the last calls, since the context last shrank."""
    inputs = [usage.input_total or 0 for usage in usages[-PACE_CALLS:]]
    begin = max((i for i in range(1, len(inputs)) if inputs[i] < 0.7 * inputs[i - 1]), default=0)
    grown = inputs[begin:]
    return (grown[-1] - grown[0]) / (len(grown) - 1) if len(grown) > 1 else None


def _stamp(path: Path) -> tuple[float, ...]:
    """Size in bytes and time of the last change of a file, and of the write-ahead log of a database."""
    states = [path.stat()]
    with suppress(FileNotFoundError):
        states.append(path.with_name(path.name + "-wal").stat())
    return tuple(value for state in states for value in (state.st_size, state.st_mtime))

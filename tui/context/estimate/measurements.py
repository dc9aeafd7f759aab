"""Measured calls, and the one that an estimate is based on: found by content alone.

Every completed call is indexed by two chain digests: of what was sent, and of that plus the reply. A request is looked
up by walking back from its end to the longest prefix with a measurement for its model. This one rule covers resume,
fork, edit, rewind, regenerate, undo, model switch and trimming; nothing has to be reset.

The chains are over the messages' `body` digests, without reasoning: where reasoning was dropped or added, the
measurement is corrected by its tokens, taken from the usage of the call that produced it.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Literal, NamedTuple, TypeAlias

from tui.context.counting.families import prior_of, relative_size
from tui.context.estimate.calibration import Calibration
from tui.context.estimate.ledger import Account, Line, Preamble, Sums

REMEMBERED = 2_048  # measurements kept for each (provider, model); the oldest are dropped first
BORROWED = 0.1  # of another model's measurement: how far off it may be


ALLOWANCE = 2_048
"""Tokens that templates and providers silently add: default system prompts, tool preambles, dates."""

VerdictKind: TypeAlias = Literal["believed", "hidden", "doubted", "cut"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a report is worth. `reason` is for a person, "" if there is nothing to say.

    `confirmed`: it agrees with a number that was obtained independently, so that no `~` is needed. `doubt` is how far
    it may be off if the estimate from text alone is within its margin, in tokens; `agreed` the number of earlier
    reports in a row it agrees with. `overrules`: earlier measurements that it contradicts were wrong. `hidden` are the
    tokens that the server adds to each request. `window` is the apparent window of a server that cuts prompts, once two
    reports agree on it.
    """

    kind: VerdictKind = "believed"
    reason: str = ""
    confirmed: bool = False
    doubt: float = 0.0
    agreed: int = 0
    overrules: bool = False
    hidden: int = 0
    window: int | None = None

    @property
    def believed(self) -> bool:
        """Whether it may be used as a measurement."""
        return self.kind in ("believed", "hidden")


@dataclass(frozen=True, slots=True)
class Measurement:
    """The usage of one call, and what identifies its request. In tokens; digests are 32 bytes.

    `sent` and `replied` are chain digests over bodies, before and after the reply; `replied` is None where the reply is
    not known to be whole. `sent_reasoning` and `reply_reasoning` are the reasoning tokens inside `input_tokens` and
    `output_tokens` (estimated where the provider did not report them: then `reasoning_known` is False).
    `preamble_tokens` is the estimate of system prompt and tools at the time, by which a later change of them is
    corrected. `cleared` are those of `input_tokens` that the provider's own context editing removed before the model
    read them. `counted`: no call was made, the provider counted the request. `unseen` are those of `output_tokens` that
    no part of the reply explains: reasoning billed without a word. `confirmed` is that of its `Verdict`, `doubt` how
    far off input and output may be together. `predicted` is the prediction of `input_tokens`; `first`: it was not based
    on a measured call.
    """

    provider: str
    model: str
    preamble: bytes
    sent: bytes
    replied: bytes | None
    messages: int
    input_tokens: int
    output_tokens: int | None
    sent_reasoning: int = 0
    reply_reasoning: int = 0
    reasoning_known: bool = True
    preamble_tokens: float = 0.0
    at: float = 0.0  # seconds since the epoch
    cleared: int = 0
    counted: bool = False
    unseen: int = 0
    confirmed: bool = True
    doubt: float = 0.0
    predicted: int | None = None
    first: bool = False

    @property
    def error_percent(self) -> float | None:
        """Error of the prediction of this call, in percent; None if there was none."""
        if self.predicted is None or self.input_tokens <= 0:
            return None
        return 100 * (self.predicted - self.input_tokens) / self.input_tokens


class MeasurementStore:
    """Persistent storage for measurements; this base class stores nothing."""

    def load(self, provider: str, model: str) -> Iterable[Measurement]:
        """Stored measurements of a model, oldest first."""
        return ()

    def save(self, measurement: Measurement) -> None:
        """Add one. The store may drop old ones at any time."""

    def remove(self, measurement: Measurement) -> None:
        """Remove one that proved wrong."""

    def clear(self, provider: str, model: str) -> None:
        """Remove all of a model."""


class Match(NamedTuple):
    """A measurement of the first `covered` messages of a request, including the reply if `with_reply`."""

    covered: int
    measurement: Measurement
    with_reply: bool


class ConversationStateTracker:
    """Remembers measurements of all models. Safe to use from several threads."""

    def __init__(self, store: MeasurementStore | None = None) -> None:
        self._store = store or MeasurementStore()
        self._models: dict[tuple[str, str], _Index] = {}
        self._lock = Lock()
        self.generation = 0  # increases with each measurement

    def copy(self) -> ConversationStateTracker:
        """A tracker of the measurements in memory that stores nothing."""
        tracker = ConversationStateTracker()
        for measurement in self.measurements():
            tracker.remember(measurement)
        return tracker

    def measurements(self) -> list[Measurement]:
        """Those in memory, of each model the oldest first."""
        with self._lock:
            return [measurement for index in self._models.values() for measurement in index.measurements.values()]

    def recall(self, provider: str, model: str) -> None:
        """Load the model's measurements for `find_other`. Reads the store: not on an event loop."""
        with self._lock:
            self._index(provider, model)

    def remember(self, measurement: Measurement) -> None:
        """Add a measurement, in the store too."""
        with self._lock:
            self._index(measurement.provider, measurement.model).add(measurement)
            self.generation += 1
        self._store.save(measurement)

    def withdraw(self, measurement: Measurement) -> None:
        """Remove a measurement that proved wrong, from the store too."""
        with self._lock:
            self._index(measurement.provider, measurement.model).remove(measurement)
            self.generation += 1
        self._store.remove(measurement)

    def forget(self, provider: str, model: str) -> None:
        """Remove all measurements of a model, from the store too."""
        with self._lock:
            self._models[provider, model] = _Index()
            self.generation += 1
        self._store.clear(provider, model)

    def find(self, provider: str, model: str, account: Account, preamble: bytes, above: int = 0) -> Match | None:
        """The measurement that covers the most messages of a request, and more than `above`.

        Of several the one that needs the least correction: same preamble first, then without a reply, then the latest.
        """
        with self._lock:
            entries = self._index(provider, model).entries
            for covered in range(len(account.lines), above, -1):
                if same := entries.get(account.chain(covered)):
                    best = max(reversed(same), key=lambda entry: (entry[0].preamble == preamble, not entry[1]))
                    return Match(covered, *best)
        return None

    def find_other(self, provider: str, model: str, account: Account) -> Match | None:
        """The longest prefix measured by another model, of those used or loaded here."""
        with self._lock:
            for covered in range(len(account.lines) if len(self._models) > 1 else 0, 0, -1):
                for name, index in self._models.items():
                    if name != (provider, model) and (entries := index.entries.get(account.chain(covered))):
                        return Match(covered, *entries[-1])
        return None

    def _index(self, provider: str, model: str) -> _Index:
        index = self._models.get((provider, model))
        if index is None:
            index = self._models[provider, model] = _Index()
            for measurement in self._store.load(provider, model):
                index.add(measurement)
        return index


@dataclass(slots=True, eq=False)
class _Index:
    """The measurements of one model, oldest first, and each with whether its reply is included, by chain digest."""

    measurements: OrderedDict[tuple[bytes, bytes | None, bytes], Measurement] = field(default_factory=OrderedDict)
    entries: dict[bytes | None, list[tuple[Measurement, bool]]] = field(default_factory=dict)

    def add(self, measurement: Measurement) -> None:
        self.remove(measurement)
        self.measurements[measurement.sent, measurement.replied, measurement.preamble] = measurement
        self.entries.setdefault(measurement.sent, []).append((measurement, False))
        if measurement.replied is not None:
            self.entries.setdefault(measurement.replied, []).append((measurement, True))
        while len(self.measurements) > REMEMBERED:
            self.remove(next(iter(self.measurements.values())))

    def remove(self, measurement: Measurement) -> None:
        old = self.measurements.pop((measurement.sent, measurement.replied, measurement.preamble), None)
        for digest in (old.sent, old.replied) if old is not None else ():
            if others := [entry for entry in self.entries.pop(digest, ()) if entry[0] is not old]:
                self.entries[digest] = others


# -- what an estimate is based on --------------------------------------------------------------------------------------

BaseKind: TypeAlias = Literal["nothing", "prefix", "trimmed", "borrowed"]


class Base(NamedTuple):
    """What is known before anything is estimated: `covered` messages cost `tokens` (measured) plus `adjust`.

    `adjust` is an estimated correction; `uncertain` is how much of it had to be estimated, 0 if nothing. In tokens.
    `measurement` is the call to this model behind it. Without one and without messages covered, `adjust` is what is
    known beside system prompt, tools and messages. `reply` is its answer, if that is the last message covered;
    `bias` what it costs beside its output once something follows it (see `Prior`), before learning.
    """

    kind: BaseKind = "nothing"
    covered: int = 0
    tokens: float = 0.0
    adjust: float = 0.0
    uncertain: float = 0.0
    measurement: Measurement | None = None
    reply: Line | None = None
    bias: float = 0.0


class Anchored(NamedTuple):
    """The latest measured request of a session, reply included, and its tokens."""

    measurement: Measurement
    account: Account
    tokens: float


def anchored_at(match: Match, account: Account, calibration: Calibration) -> Anchored:
    """`match` as the latest measured request; its tokens are without reasoning that `account` has no more."""
    covered, measurement, with_reply = match
    then, tokens = account.cut(covered), float(measurement.input_tokens)
    tokens += calibration.reasoning_share * (then.sums.reasoning - measurement.sent_reasoning)
    if with_reply:
        tokens += (measurement.output_tokens or 0) - measurement.unseen - measurement.reply_reasoning
    return Anchored(measurement, then, round(tokens))


def learned(sums: Sums, calibration: Calibration, bias: float = 0.0) -> float:
    """The estimate of the unknown costs in `sums`, in tokens, with the learned factors; never negative."""
    files = sums.media * calibration.media_factor
    return max(0.0, learned_text(sums, calibration, bias) + files + sums.fixed)


def learned_text(sums: Sums, calibration: Calibration, bias: float) -> float:
    """The part of it that is text and markup."""
    return calibration.text(sums.content, sums.classes) + (sums.markup + bias) * calibration.markup_factor


def corrected(match: Match, account: Account, preamble: Preamble, calibration: Calibration) -> Base:
    """`match` as a base: its measurement, corrected for reasoning that was added or dropped and a changed preamble."""
    covered, measurement, with_reply = match
    tokens, adjust, uncertain = float(measurement.input_tokens), 0.0, 0.0
    # Reasoning in the input then and now; that of the reply is part of its output in any case.
    change = calibration.reasoning_share * (account.sums_before(covered).reasoning - measurement.sent_reasoning)
    reply, bias = None, 0.0
    if with_reply:
        tokens += measurement.output_tokens or 0
        change -= measurement.reply_reasoning
        if calibration.unseen_share is None:
            adjust -= measurement.unseen
            uncertain += measurement.unseen
        else:
            tokens -= round((1 - calibration.unseen_share) * measurement.unseen)
        reply, prior = account.lines[covered - 1], prior_of(measurement.model)
        bias = prior.after_calls if reply.raw.calls else prior.after_reply
    if measurement.reasoning_known:
        tokens += round(change)
    else:
        adjust += round(change)
        uncertain += abs(round(change))
    if measurement.preamble != preamble.digest:
        difference = preamble_change(measurement, tokens, account.sums_before(covered), preamble, calibration)
        adjust += difference
        uncertain += max(abs(difference), 1.0)
    return Base("prefix", covered, max(0.0, tokens), adjust, uncertain, measurement, reply, bias)


def preamble_change(
    measurement: Measurement, measured: float, messages: Sums, preamble: Preamble, calibration: Calibration
) -> float:
    """What system prompt and tools add compared with those of `measurement`, in tokens.

    `messages` and those came to `measured`. An estimated change removes no more than its share of that: else a request
    without its tools might cost nothing.
    """
    before = measurement.preamble, measurement.preamble_tokens
    change = calibration.preamble_change(before, (preamble.digest, preamble.total))
    if change >= 0 or {measurement.preamble, preamble.digest} <= calibration.preambles.keys():
        return change
    guessed = calibration.factor * (messages.content + messages.markup + messages.media + messages.fixed)
    estimate = measurement.preamble_tokens + messages.known + guessed
    return change * min(1.0, measured / estimate)


def trimmed(anchored: Anchored, account: Account, preamble: Preamble, calibration: Calibration) -> Base | None:
    """The session's latest measured request as a base, corrected for messages removed and added since.

    None if more was removed than was measured.
    """
    measurement, then, tokens = anchored
    share = calibration.reasoning_share
    adjust = uncertain = 0.0
    # A message that lost only its reasoning has the same body, and is in neither difference.
    reasoning = account.sums.reasoning - then.sums.reasoning
    for sign, lines in ((-1, _difference(then, account)), (1, _difference(account, then))):
        for line in lines:
            reasoning -= sign * line.sums.reasoning
            dropped = (1 - share) * line.sums.reasoning
            uncertain += line.tokens - dropped
            if line.cost is not None:
                tokens += sign * (line.tokens - dropped)
            else:
                adjust += sign * (learned(line.sums, calibration) - dropped)
    tokens += share * reasoning
    if measurement.preamble != preamble.digest:
        difference = preamble_change(measurement, anchored.tokens, then.sums, preamble, calibration)
        adjust += difference
        uncertain += abs(difference)
    if tokens + adjust <= 0:
        return None
    return Base("trimmed", len(account.lines), tokens, adjust, max(uncertain, 1.0), measurement)


def _difference(some: Account, others: Account) -> Sequence[Line]:
    """The lines of `some` that are missing in `others`, with repetitions."""
    missing = Counter(line.body for line in some.lines) - Counter(line.body for line in others.lines)
    lines = []
    for line in some.lines if missing else ():
        if missing[line.body] > 0:
            missing[line.body] -= 1
            lines.append(line)
    return lines


def borrowed(match: Match, account: Account, preamble: Preamble, calibration: Calibration) -> Base:
    """The measurement of another model with the same vocabulary as a base; all of it counts as estimated."""
    covered, measurement, _ = match
    tokens, difference = _measured_elsewhere(match), 0.0
    if measurement.preamble != preamble.digest:
        difference = preamble_change(measurement, tokens, account.sums_before(covered), preamble, calibration)
    return Base("borrowed", covered, adjust=tokens + difference, uncertain=BORROWED * tokens + abs(difference))


def unexplained(match: Match, model: str, text: float, reasoning: float) -> Base:
    """What a model with another vocabulary read beside the request: a prompt of the server's, or of a recording.

    `text` is the estimate of the messages for that model, `reasoning` the part of it that is reasoning. The rest is
    taken over at the ratio of English text.
    """
    measurement = match.measurement
    rest = _measured_elsewhere(match) - text - (measurement.sent_reasoning - reasoning) - measurement.preamble_tokens
    rest = max(0.0, rest) * relative_size(model) / relative_size(measurement.model)
    return Base("borrowed", adjust=rest, uncertain=rest)


def _measured_elsewhere(match: Match) -> float:
    tokens = float(match.measurement.input_tokens)
    if match.with_reply:
        tokens += (match.measurement.output_tokens or 0) - match.measurement.reply_reasoning
    return tokens

"""`HybridTokenEstimator`: measured where a call measured it, estimated where not (SPEC 1.1 to 1.5).

next_input = last_input + last_output (what of it goes back) + factor x estimate of what was appended since
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from dataclasses import dataclass
from threading import RLock
from typing import Literal, NamedTuple, TypeAlias

from tui.context.calibration import Calibration, CalibrationBook
from tui.context.costs import Cost, CostBook
from tui.context.counting import TokenCounter
from tui.context.digests import chain, message_digest
from tui.context.ledger import Account, Entry, Ledger, make_entry
from tui.context.preamble import Preamble, estimate_preamble
from tui.context.tracker import ConversationStateTracker, Match, MatchKind, Measurement, reply_as_sent
from tui.messages import Message, Reasoning, Request, Usage

TotalSource: TypeAlias = Literal["exact", "delta", "estimated"]

log = logging.getLogger("chatctx.context")

SESSIONS = 32  # ledgers held in memory, the least recently used leaves first
MARGIN_KNOWN, MARGIN_TOKENIZER, MARGIN_HEURISTIC = 0.02, 0.05, 0.10  # SPEC 1.4, until a model has its own errors


@dataclass(frozen=True, slots=True)
class ConversationEstimate:
    """The next request's input, in tokens.

    `known_tokens` were measured, `estimated_tokens` not; together they are `tokens`. `upper_bound` is the 95th
    percentile of what the total may be. `last_output_sent_back` is the last reply less reasoning that does not return.
    """

    tokens: int
    upper_bound: int
    known_tokens: int
    estimated_tokens: int
    new_message_count: int
    source: TotalSource
    match: MatchKind
    factor: float
    last_input: int | None = None
    last_output: int | None = None
    last_output_sent_back: int | None = None
    heuristic_tokens: int = 0  # the part of `estimated_tokens` that no tokenizer counted


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """A prediction and what came of it, in tokens. `actual` is None where the provider reported nothing."""

    predicted: int
    actual: int | None
    upper_bound: int
    source: TotalSource
    learned: bool

    @property
    def error(self) -> int | None:
        """Predicted less actual."""
        return None if self.actual is None else self.predicted - self.actual

    @property
    def error_percent(self) -> float | None:
        """`error` in percent of the actual number."""
        return None if not self.actual or self.error is None else 100 * self.error / self.actual


class Base(NamedTuple):
    """What the estimate stands on: `covered` messages cost `known` (measured) plus `adjust` (an estimated correction).

    `uncertain` is how much had to be estimated for `adjust`, in tokens before learning.
    """

    covered: int
    known: float
    adjust: float
    uncertain: float
    match: Match


@dataclass(slots=True)
class _Session:
    """What is held of one session for one model."""

    ledger: Ledger
    base: Base | None = None
    stamp: tuple[int, int, bytes] = (-1, -1, b"")
    anchored: tuple[Measurement, tuple[Entry, ...]] | None = None
    last_error_percent: float | None = None


class Situation(NamedTuple):
    """All that a number is made from, at one moment."""

    estimate: ConversationEstimate
    account: Account
    preamble: Preamble
    calibration: Calibration
    last_error_percent: float | None


class HybridTokenEstimator:
    """Combines counter, tracker and calibration. Safe to use from several threads."""

    def __init__(
        self,
        counter: TokenCounter,
        tracker: ConversationStateTracker,
        calibrations: CalibrationBook,
        costs: CostBook | None = None,
    ) -> None:
        self.counter = counter
        self.tracker = tracker
        self.calibrations = calibrations
        self.costs = costs or CostBook()
        self._sessions: OrderedDict[tuple[str, str, str], _Session] = OrderedDict()
        self._preambles: dict[str, tuple[Request, Preamble]] = {}
        self._lock = RLock()

    def estimate(self, request: Request) -> ConversationEstimate:
        """What `request` will cost as input. The first call of a process loads the ranks: not on the event loop."""
        return self.situation(request).estimate

    def situation(self, request: Request) -> Situation:
        """The estimate of `request` with everything it was made from."""
        with self._lock:
            session = self._session(request)
            account = session.ledger.update(request.messages)
            preamble = self._preamble(request)
            calibration = self.calibrations.get(request.provider, request.model)
            base = self._base(request, session, account, preamble)
            estimate = _combine(base, account, preamble, calibration)
            return Situation(estimate, account, preamble, calibration, session.last_error_percent)

    def record(
        self, request: Request, reply: Message, usage: Usage, *, learn: bool, at: float, anchor: bool = True
    ) -> CallOutcome:
        """Take a finished call into account: `request` as sent, `reply` as stored, `at` in seconds since the epoch.

        Learns only from a complete reply with the provider's own input count, and not at all without `learn`. Without
        `anchor` (silent truncation) nothing is remembered. Usage that is missing or zero changes nothing.
        """
        with self._lock:
            situation = self.situation(request)
            estimate = situation.estimate
            actual = usage.input_total if usage.source == "provider" and usage.input_total else None
            if actual is None:
                return CallOutcome(estimate.tokens, None, estimate.upper_bound, estimate.source, False)
            session = self._session(request)
            learned = False
            if learn and anchor and reply.status == "complete":
                learned = self._learn(request, session, situation, actual)
            if anchor:
                self._derive(request, session, situation.account, actual)
                self._anchor(request, session, situation, reply, usage, actual, at)
            outcome = CallOutcome(estimate.tokens, actual, estimate.upper_bound, estimate.source, learned)
            session.last_error_percent = outcome.error_percent
        _log(request, estimate, outcome)
        return outcome

    def note_count(self, request: Request, tokens: int, *, at: float) -> None:
        """Go by the provider's own count of `request` (`tokens`), taken `at` seconds since the epoch (SPEC 1.6)."""
        usage = Usage(input_total=tokens, output_total=None)
        with self._lock:
            self._anchor(
                request, self._session(request), self.situation(request), Message("assistant", ()), usage, tokens, at
            )

    def _session(self, request: Request) -> _Session:
        key = (request.session, request.provider, request.model)
        found = self._sessions.get(key)
        if found is None:
            found = self._sessions[key] = _Session(Ledger(request.provider, request.model, self.counter, self.costs))
            while len(self._sessions) > SESSIONS:
                self._sessions.popitem(last=False)
        else:
            self._sessions.move_to_end(key)
        return found

    def _preamble(self, request: Request) -> Preamble:
        known = self._preambles.get(request.session)
        if known is not None:
            before, preamble = known
            if (before.model, before.system, before.tools) == (request.model, request.system, request.tools):
                return preamble
        preamble = estimate_preamble(request, self.counter)
        self._preambles[request.session] = (request, preamble)
        while len(self._preambles) > SESSIONS:
            del self._preambles[next(iter(self._preambles))]
        return preamble

    def _base(self, request: Request, session: _Session, account: Account, preamble: Preamble) -> Base:
        stamp = (session.ledger.version, self.tracker.generation, preamble.digest)
        old = session.base if session.stamp == stamp else None
        above = 0 if old is None else old.covered
        match = self.tracker.find(request.provider, request.model, account.chains, preamble.digest, above)
        if old is not None and match.kind == "none":
            return old
        base = _corrected(match, account, preamble)
        other = _trimmed(session, match, account, preamble)
        if other is not None and other.uncertain < base.uncertain + _guess_after(base, account):
            base = other
        session.base, session.stamp = base, stamp
        return base

    def _learn(self, request: Request, session: _Session, situation: Situation, actual: int) -> bool:
        base, account = session.base, situation.account
        calibration = situation.calibration
        predicted = situation.estimate.tokens
        truncated = actual < 0.6 * predicted  # SPEC 6.4
        if truncated:
            return False
        if base is not None and base.match.kind != "none":
            if base.uncertain == 0:
                guessed = account.guessed[-1] - account.guessed[base.covered]
                rest = actual - base.known - (account.known[-1] - account.known[base.covered])
                calibration = calibration.learn(guessed, rest)
            calibration = calibration.note(predicted, actual)
        self.calibrations.put(request.provider, request.model, calibration)
        return True

    def _derive(self, request: Request, session: _Session, account: Account, actual: int) -> None:
        """Two calls in a row tell what stands between them (SPEC 1.5)."""
        base = session.base
        if base is None or base.match.kind == "none" or base.uncertain or base.covered == len(account.messages):
            return
        fresh = account.entries[base.covered : len(account.messages)]
        unknown = [entry for entry in fresh if entry.source in ("estimated", "derived")]
        rest = actual - base.known - sum(entry.cost for entry in fresh if entry not in unknown)
        weight = sum(entry.size for entry in unknown)
        if not unknown or weight <= 0 or rest <= 0:
            return
        found, given, passed = {}, 0, 0.0
        for entry in unknown:
            passed += entry.size
            share = round(rest * passed / weight) - given
            given += share
            found[entry.digest.full] = Cost(share, min(share, round(entry.reasoning)), "derived")
        self.costs.put(request.provider, request.model, found)
        session.ledger.refresh(base.covered)

    def _anchor(
        self,
        request: Request,
        session: _Session,
        situation: Situation,
        reply: Message,
        usage: Usage,
        actual: int,
        at: float,
    ) -> None:
        account = session.ledger.account()
        sent = account.chains[-1] if account.chains else b""
        kept = reply_as_sent(reply)
        digest = message_digest(kept)
        whole = reply.status == "complete" and usage.output_total is not None and bool(kept.parts)
        output = usage.output_total if whole else None
        count = self.counter.count_messages([kept], request.model, [digest])[0]
        thinks = any(isinstance(part, Reasoning) for part in kept.parts)
        thought, sure = usage.reasoning or 0, True
        if usage.reasoning is None and thinks:
            thought, sure = round(count.split.get("reasoning", 0.0)), False
        cost: Cost | None = None
        if output is not None:
            thought = min(thought, output)
            cost = Cost(output, thought, "measured") if thinks else Cost(output - thought, 0, "measured")
            known = {digest.full: cost, digest.body: Cost(output - thought, 0, "measured")}
            known[digest.full] = cost
            self.costs.put(request.provider, request.model, known)
        measurement = Measurement(
            provider=request.provider,
            model=request.model,
            preamble=situation.preamble.digest,
            sent=sent,
            replied=chain(sent, [digest.body])[0] if output is not None else None,
            messages=len(account.messages),
            input_tokens=actual,
            output_tokens=output,
            sent_reasoning=round(account.reasoning[-1]),
            reply_reasoning=thought,
            reasoning_known=sure,
            preamble_tokens=situation.preamble.total,
            at=at,
        )
        self.tracker.remember(measurement)
        entries = tuple(account.entries)
        if output is not None:
            entries = (*entries, make_entry(kept, digest, count, cost))
        session.anchored = (measurement, entries)


def _corrected(match: Match, account: Account, preamble: Preamble) -> Base:
    """`match` as a base: its measurement, corrected by reasoning that came or left and by a changed preamble."""
    measurement = match.measurement
    if measurement is None:
        return Base(0, 0.0, 0.0, 0.0, match)
    known, adjust, uncertain = float(measurement.input_tokens), 0.0, 0.0
    thought = measurement.sent_reasoning
    if match.with_reply:
        known += measurement.output_tokens or 0
        thought += measurement.reply_reasoning
    change = round(account.reasoning[match.covered]) - thought
    if change and measurement.reasoning_known:
        known += change
    elif change:
        adjust += change
        uncertain += abs(change)
    if measurement.preamble != preamble.digest:
        change_of_preamble = preamble.total - measurement.preamble_tokens
        adjust += change_of_preamble
        uncertain += max(abs(change_of_preamble), 1.0)
    return Base(match.covered, max(0.0, known), adjust, uncertain, match)


def _trimmed(session: _Session, match: Match, account: Account, preamble: Preamble) -> Base | None:
    """The session's latest measured request as a base, corrected by what left and what came since (SPEC 1.2)."""
    if session.anchored is None or match.measurement is session.anchored[0]:
        return None
    measurement, then = session.anchored
    now = account.entries[: len(account.messages)]
    before, after = Counter(entry.digest.body for entry in then), Counter(entry.digest.body for entry in now)
    known = float(measurement.input_tokens + (measurement.output_tokens or 0))
    adjust = uncertain = 0.0
    for entries, left, sign in ((then, before - after, -1), (now, after - before, 1)):
        for entry in entries:
            if left[entry.digest.body] > 0:
                left[entry.digest.body] -= 1
                adjust += sign * entry.cost
                uncertain += entry.cost
    thought = measurement.sent_reasoning + measurement.reply_reasoning
    # Reasoning of what left is inside its cost already; of what stayed it may have left on its own.
    stayed = sum(entry.reasoning for entry in then) - thought
    adjust += stayed if abs(stayed) > 1 else 0.0
    if measurement.preamble != preamble.digest:
        adjust += preamble.total - measurement.preamble_tokens
        uncertain += abs(preamble.total - measurement.preamble_tokens)
    if known + adjust <= 0:
        return None
    return Base(len(account.messages), known, adjust, max(uncertain, 1.0), Match("prefix", 0, measurement, True))


def _guess_after(base: Base, account: Account) -> float:
    return account.guessed[-1] - account.guessed[base.covered] + account.known[-1] - account.known[base.covered]


def _combine(base: Base, account: Account, preamble: Preamble, calibration: Calibration) -> ConversationEstimate:
    factor = calibration.factor
    count = len(account.messages)
    measurement = base.match.measurement
    guessed = (account.guessed[count] - account.guessed[base.covered]) * factor
    heard = account.known[count] - account.known[base.covered]
    if measurement is None:
        guessed += preamble.total
        tokens = max(0, round(heard + guessed))
        known = min(tokens, round(heard))
        bound = _bound(tokens, known, account.failed + preamble.failed, calibration)
        return ConversationEstimate(
            tokens, bound, known, tokens - known, count, "estimated", "none", factor,
            heuristic_tokens=round(account.failed + preamble.failed),
        )  # fmt: skip
    tokens = max(0, round(base.known + base.adjust + heard + guessed))
    known = min(tokens, max(0, round(base.known + min(0.0, base.adjust))))
    exact = base.covered == count and base.uncertain == 0
    failed = sum(entry.size for entry in account.entries[base.covered : count] if entry.failed)
    bound = tokens if exact else _bound(tokens, known, failed, calibration) + round(0.1 * base.uncertain)
    back = None
    if measurement.output_tokens is not None and base.match.with_reply:
        reply = account.entries[base.match.covered - 1] if base.match.covered else None
        returned = 0.0 if reply is None else reply.reasoning
        left = measurement.output_tokens - measurement.reply_reasoning + returned
        back = max(0, min(measurement.output_tokens, round(left)))
    return ConversationEstimate(
        tokens=tokens,
        upper_bound=max(bound, tokens),
        known_tokens=known,
        estimated_tokens=tokens - known,
        new_message_count=count - base.covered,
        source="exact" if exact else "delta",
        match=base.match.kind,
        factor=factor,
        last_input=measurement.input_tokens,
        last_output=measurement.output_tokens,
        last_output_sent_back=back,
        heuristic_tokens=round(failed),
    )


def _bound(tokens: int, known: int, failed: float, calibration: Calibration) -> int:
    p95 = calibration.p95
    guessed = tokens - known
    if p95 is None:
        rough = min(float(guessed), failed)
        margin = MARGIN_KNOWN * known + MARGIN_TOKENIZER * (guessed - rough) + MARGIN_HEURISTIC * rough
    else:
        margin = p95 * tokens
    return -int(-(tokens + margin) // 1)


def _log(request: Request, estimate: ConversationEstimate, outcome: CallOutcome) -> None:
    error, percent = outcome.error, outcome.error_percent
    log.info(
        "Context estimate: estimated=%d actual=%d error=%+d (%+.1f%%) source=%s known=%d new=%d model=%s/%s",
        outcome.predicted,
        outcome.actual,
        error,
        percent,
        estimate.source,
        estimate.known_tokens,
        estimate.estimated_tokens,
        request.provider,
        request.model,
    )

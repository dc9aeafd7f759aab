"""`HybridTokenEstimator`: measured where a call measured it, estimated where not (README.md, "The formula").

next_input = last_input + last_output (what of it goes back) + factor x estimate of what was appended since
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from threading import RLock

from tui.context.counting.counting import TokenCounter, with_markup
from tui.context.counting.digests import CostBook, TokenCost, chain, message_digest, preamble_digest
from tui.context.counting.families import family_of, prior_of, shared_name
from tui.context.counting.tokenizers import get_tokenizer
from tui.context.estimate.calibration import Calibration, CalibrationBook
from tui.context.estimate.evidence import ReportLog, claim_of
from tui.context.estimate.ledger import (
    Account,
    CountedParts,
    Ledger,
    Line,
    Preamble,
    estimate_preamble,
    preamble_steps,
    shares_of,
    sums_of,
)
from tui.context.estimate.measurements import (
    ALLOWANCE,
    Anchored,
    Base,
    ConversationStateTracker,
    Match,
    Measurement,
    Verdict,
    anchored_at,
    borrowed,
    corrected,
    learned,
    trimmed,
    unexplained,
)
from tui.context.estimate.prediction import (
    ConversationEstimate,
    Situation,
    cost_of_reply,
    derive_costs,
    learn_refusal,
    learn_report,
    predict,
    text_margin,
)
from tui.messages import Message, Reasoning, Request, Usage, is_sendable

log = logging.getLogger("chatctx.context")

MIN_COUNTED = 0.25  # of the estimate: some servers count without the tools
PREAMBLE_AS_TEXT = 3_000  # tokens of text whose estimate may be as far off as a preamble that no call measured
DEFAULT_PROMPT = 12  # tokens; a template's own system prompt has more
SESSIONS = 32  # ledgers kept in memory; the least recently used is dropped first


@dataclass(slots=True, eq=False)
class _Session:
    """The state kept of one session for one model."""

    ledger: Ledger
    preamble: tuple[object, Preamble | None] = (None, None)  # and what it is the estimate of
    base: Base | None = None
    stamp: tuple[int, int, bytes] = (-1, -1, b"")  # the inputs that `base` was computed from
    searched: int = 0  # messages among which `base` was looked for
    borrowed: tuple[object, Base] = (None, Base())  # what another model's measurement gave, and from what
    anchored: Anchored | None = None
    reports: ReportLog = field(default_factory=ReportLog)


@dataclass(eq=False)
class HybridTokenEstimator:
    """Combines counter, tracker and calibration. Safe to use from several threads.

    `names` gives the model (by provider and model) that a model's calls are filed under: its alias, or itself.
    """

    counter: TokenCounter
    tracker: ConversationStateTracker
    calibrations: CalibrationBook
    costs: CostBook = field(default_factory=CostBook)
    names: Callable[[str, str], str] = lambda _provider, model: model
    _sessions: OrderedDict[tuple[str, str, str], _Session] = field(default_factory=OrderedDict)
    _lock: RLock = field(default_factory=RLock)

    def copy(self) -> HybridTokenEstimator:
        """An estimator that has learned the same and stores nothing, to try what a call would teach."""
        return HybridTokenEstimator(
            self.counter, self.tracker.copy(), self.calibrations.copy(), self.costs.copy(), self.names
        )

    def estimate(self, request: Request) -> ConversationEstimate:
        """The input tokens of `request`. The first call in a process loads a vocabulary: not on the event loop."""
        return self.situation(request).estimate

    def situation(self, request: Request) -> Situation:
        """The estimate of `request` with everything it was made from."""
        with self._lock:
            request = self._filed(request)
            session = self._session(request)
            account = session.ledger.update(request.messages)
            preamble = self._preamble(request, session)
            calibration = self.calibrations.get(request.provider, request.model)
            base = self._base(request, session, account, preamble, calibration)
            estimate = predict(base, account, preamble, calibration, clears=request.server_edits)
            situation = Situation(estimate, base, account, preamble, calibration)
            bound = max(estimate.upper_bound, round(session.reports.rival(situation)))
            return situation._replace(estimate=replace(estimate, upper_bound=bound))

    def reread(self, request: Request, usage: Usage) -> Usage:
        """`usage` of `request`, corrected if its server evidently adds cached tokens twice (evidence.py)."""
        with self._lock:
            request = self._filed(request)
            return self._session(request).reports.reread(self.situation(request), usage)

    def record(
        self,
        request: Request,
        reply: Message,
        usage: Usage,
        *,
        at: float,
        learn: bool = True,
        window: int | None = None,
        recorded: bool = False,
    ) -> Verdict | None:
        """Take a finished call into account: `request` as sent, `reply` as stored, `at` in seconds since the epoch.

        The report is weighed first (evidence.py): what is not believed is remembered as a report, and nothing else
        changes. Learns only from a complete reply, and not at all without `learn`. `window` is what is known of the
        model's, in tokens; `recorded` says that `request` is a recording's, without its system prompt and tools. Usage
        that is missing or zero changes nothing, and has no verdict.
        """
        with self._lock:
            request = self._filed(request)
            situation = self.situation(request)
            estimate = situation.estimate
            if usage.source != "provider" or not usage.input_total:
                return None
            session, actual = self._session(request), usage.input_total + (usage.cleared or 0)
            # Nothing is certain about a recorded request: it may lack parts of what was sent, or have others.
            verdict = Verdict(confirmed=True) if recorded else session.reports.weigh(situation, actual, window=window)
            if verdict.overrules:
                self._overrule(session)
            # Nothing is learned from the error of an overruled base, and of what the provider cleared unexpectedly.
            same_edits = (usage.cleared or 0) == estimate.cleared
            if learn and same_edits and reply.status == "complete" and not verdict.overrules:
                opening = not session.reports.reports
                taught = learn_report(situation, actual, verdict, opening=opening, scored=not recorded)
                if taught is not situation.calibration:
                    self.calibrations.put(request.provider, request.model, taught)
                if verdict.confirmed and taught.knows_preamble(situation.preamble.digest):  # perhaps since this report
                    doubt = claim_of(situation._replace(calibration=taught), actual).doubt
                    verdict = replace(verdict, doubt=min(verdict.doubt, doubt))
            measurement = None
            if verdict.believed:
                if verdict.confirmed and not verdict.overrules and (costs := derive_costs(situation, actual)):
                    self.costs.put(request.provider, request.model, costs)
                    session.ledger.refresh(situation.base.covered)
                measurement = self._anchor(request, session, situation, reply, usage, actual, at, verdict)
            session.reports.add(situation, actual, verdict, measurement)
        error = estimate.tokens - usage.input_total
        log.info(
            "Context estimate: estimated=%d actual=%d error=%+d (%+.1f%%) source=%s known=%d new=%d model=%s/%s",
            estimate.tokens,
            usage.input_total,
            error,
            100 * error / usage.input_total,
            estimate.source,
            estimate.known_tokens,
            estimate.estimated_tokens,
            request.provider,
            request.model,
        )
        return verdict

    def note_count(self, request: Request, tokens: int, *, at: float) -> Verdict:
        """Use the provider's own count of `request` (`tokens`), taken `at` seconds since the epoch, if plausible."""
        with self._lock:
            request = self._filed(request)
            situation = self.situation(request)
            before = situation.base.measurement
            cleared = before.cleared if before is not None and before.cleared < tokens else None
            usage = Usage(tokens - (cleared or 0), None, cleared=cleared)
            session, nothing = self._session(request), Message("assistant", ())
            verdict = session.reports.weigh(situation, tokens, window=None)
            if verdict.believed and not _is_a_count(situation, tokens):
                verdict = Verdict("doubted", f"{tokens:,} tokens are fewer than its text has")
            if verdict.overrules:
                self._overrule(session)
            if verdict.believed:
                verdict = replace(verdict, confirmed=True, doubt=0.0)
                self._anchor(request, session, situation, nothing, usage, tokens, at, verdict, counted=True)
        return verdict

    def note_parts(self, request: Request, counts: Sequence[int]) -> bool:
        """Use the provider's counts of `preamble_steps(request)`, in tokens and in that order. False if implausible."""
        with self._lock:
            request = self._filed(request)
            steps, preamble = preamble_steps(request), self._preamble(request, self._session(request))
            # A template's default system prompt is counted with the bare message, but replaced by a person's own.
            bare, messages = counts[0], steps[0].messages
            estimate = sum(self.counter.count_message(message, request.model).size for message in messages)
            estimate += estimate_preamble(steps[0], self.counter).total - prior_of(request.model).default_prompt
            least = round(estimate) if bare - estimate >= DEFAULT_PROMPT else bare
            sizes = [count - (least if step.system else bare) for step, count in zip(steps, counts, strict=True)][1:]
            parts = preamble.total - preamble.per_request
            if sizes != sorted(sizes) or not MIN_COUNTED * parts <= sizes[-1] <= preamble.most + ALLOWANCE:
                return False
            counted = [TokenCost(max(0, more - less), 0, "counted") for less, more in pairwise([0, *sizes])]
            costs = dict(zip(_part_digests(request), counted, strict=True))
            self.costs.put(request.provider, request.model, costs)
            for session in self._sessions.values():
                session.preamble = None, None
        return True

    def counted_parts(self, request: Request) -> CountedParts | None:
        """The provider's counts of the parts of `request`'s preamble; None before `note_parts`."""
        model = self._filed_name(request.provider, request.model)
        costs = self.costs.get(request.provider, model, _part_digests(request))
        return None if None in costs else CountedParts(*(float(cost.tokens) for cost in costs if cost is not None))

    def note_refusal(self, request: Request, tokens: int | None, *, at: float) -> None:
        """A server refused `request` as too large although it was expected to fit. `tokens`: its input, if named."""
        with self._lock:
            request = self._filed(request)
            calibration = self.calibrations.get(request.provider, request.model)
            taught = learn_refusal(self.situation(request), tokens)
            if taught is not calibration:
                self.calibrations.put(request.provider, request.model, taught)
            if tokens is not None:
                self.note_count(request, tokens, at=at)

    def forget(self, provider: str, model: str) -> None:
        """Forget what was measured and learned of a model, in the store too."""
        model = self._filed_name(provider, model)
        with self._lock:
            self.calibrations.forget(provider, model)
            self.costs.forget(provider, model)
            self.tracker.forget(provider, model)
            for key in [key for key in self._sessions if key[1:] == (provider, model)]:
                del self._sessions[key]

    def calibration(self, provider: str, model: str) -> Calibration:
        """What is learned of a model."""
        return self.calibrations.get(provider, self._filed_name(provider, model))

    def recall(self, provider: str, model: str) -> None:
        """Have a model's measurements at hand for estimates of others. Reads the store: not on an event loop."""
        self.tracker.recall(provider, self._filed_name(provider, model))

    def _filed_name(self, provider: str, model: str) -> str:
        """The name under which calls of `model` are filed: releases of one model share what is measured."""
        return shared_name(self.names(provider, model))

    def _filed(self, request: Request) -> Request:
        name = self._filed_name(request.provider, request.model)
        return request if name == request.model else replace(request, model=name)

    def _session(self, request: Request) -> _Session:
        key = (request.session, request.provider, request.model)
        state = self._sessions.get(key)
        if state is None:
            state = self._sessions[key] = _Session(
                Ledger(request.provider, self.counter, self.costs, Account(request.model))
            )
            if len(self._sessions) > SESSIONS:
                self._sessions.popitem(last=False)
        self._sessions.move_to_end(key)
        return state

    def _preamble(self, request: Request, session: _Session) -> Preamble:
        parts = request.system, request.tools, request.reasoning
        before, preamble = session.preamble
        if preamble is None or before != parts:
            preamble = estimate_preamble(request, self.counter)._replace(counted=self.counted_parts(request))
            session.preamble = parts, preamble
        return preamble

    def _base(
        self, request: Request, session: _Session, account: Account, preamble: Preamble, calibration: Calibration
    ) -> Base:
        """The base of the next estimate; the one before, if it still stands and nothing measured covers more."""
        provider, model = request.provider, request.model
        stamp = (session.ledger.version, self.tracker.generation, preamble.digest)
        if session.stamp != stamp:
            session.base, session.searched, session.stamp = None, 0, stamp
        match = self.tracker.find(provider, model, account, preamble.digest, session.searched)
        if match is None and session.base is not None:
            session.searched = len(account.lines)
            return session.base
        if match is not None:
            base = corrected(match, account, preamble, calibration)
            if session.anchored is None:  # by a call from an earlier run, or from before a fork
                session.anchored = anchored_at(match, account, calibration)
        else:
            other = self.tracker.find_other(provider, model, account)
            base = Base() if other is None else self._borrowed(session, other, account, preamble, calibration)
        anchored = session.anchored
        if anchored is not None and base.measurement is not anchored.measurement:
            rebased = trimmed(anchored, account, preamble, calibration)
            fresh = account.since(base.covered)
            unmeasured = base.uncertain + learned(fresh, calibration) + fresh.known
            if base.kind == "nothing" and not calibration.knows_preamble(preamble.digest):
                unmeasured += PREAMBLE_AS_TEXT
            if rebased is not None and rebased.uncertain < unmeasured:
                base = rebased
        session.base, session.searched = base, len(account.lines)
        return base

    def _borrowed(
        self, session: _Session, match: Match, account: Account, preamble: Preamble, calibration: Calibration
    ) -> Base:
        provider, model = match.measurement.provider, match.measurement.model
        if family_of(model) == family_of(account.model):
            return borrowed(match, account, preamble, calibration)
        calibration = self.calibrations.get(provider, model)
        made_from = match, calibration, account.sums_before(match.covered)
        before, base = session.borrowed
        if before != made_from:  # counts all of the messages, in the other vocabulary
            ledger = Ledger(provider, self.counter, self.costs, Account(model))
            sums = ledger.update(tuple(line.message for line in account.lines[: match.covered])).sums
            text = sums.known + learned(sums, calibration)
            base = unexplained(match, account.model, text, sums.reasoning)
            session.borrowed = made_from, base
        return base

    def _overrule(self, session: _Session) -> None:
        for measurement in session.reports.overrule():
            self.tracker.withdraw(measurement)
        session.anchored = None

    def _anchor(
        self,
        request: Request,
        session: _Session,
        situation: Situation,
        reply: Message,
        usage: Usage,
        actual: int,
        at: float,
        verdict: Verdict,
        *,
        counted: bool = False,
    ) -> Measurement:
        account = session.ledger.account
        sent_reply = replace(reply, parts=tuple(filter(is_sendable, reply.parts)))
        digest = message_digest(sent_reply)
        (raw,) = self.counter.raw_counts([sent_reply], request.model, [digest.full])
        count = with_markup(sent_reply, raw, request.model)
        exact = get_tokenizer(request.model).method == "vocabulary"
        answer = cost_of_reply(sent_reply, count, usage, situation.calibration.factor, exact=exact)
        output, doubt, cost = answer.output, verdict.doubt, None
        if output is not None:
            # The output may be off as the input may be, but where text shows it by no more than that text's count.
            calibration, scale = situation.calibration, verdict.doubt / actual
            margin = text_margin(sums_of(sent_reply, None, count), request.model, calibration)
            doubt += min(scale * output, margin + scale * (answer.reasoning + answer.unseen)) + answer.difference
            # What it costs when it is sent back, with and without its reasoning.
            back = output - round((1 - (situation.calibration.unseen_share or 0.0)) * answer.unseen)
            cost = plain = TokenCost(back - answer.reasoning, 0, "measured")
            if any(isinstance(part, Reasoning) for part in sent_reply.parts):
                cost = TokenCost(back, answer.reasoning, "measured")
            self.costs.put(request.provider, request.model, {digest.body: plain, digest.full: cost})
        sent = account.chain(len(account.lines))
        replied = chain(sent, digest.body)
        measurement = Measurement(
            provider=request.provider,
            model=request.model,
            preamble=situation.preamble.digest,
            sent=sent,
            replied=None if output is None else replied,
            messages=len(account.lines),
            input_tokens=actual,
            output_tokens=output,
            sent_reasoning=round(account.sums.reasoning),
            reply_reasoning=answer.reasoning,
            reasoning_known=answer.reasoning_known,
            preamble_tokens=situation.preamble.total,
            at=at,
            cleared=usage.cleared or 0,
            counted=counted,
            unseen=answer.unseen,
            confirmed=verdict.confirmed,
            doubt=doubt,
            predicted=situation.estimate.uncleared,
            first=situation.base.measurement is None,
        )
        self.tracker.remember(measurement)
        if output is not None:
            line = Line(sent_reply, raw, cost, sums_of(sent_reply, cost, count), digest.body, replied)
            account = account.extended([line], [shares_of(sent_reply, cost, count)])
        match = Match(len(account.lines), measurement, output is not None)
        session.anchored = anchored_at(match, account, situation.calibration)
        return measurement


def _is_a_count(situation: Situation, tokens: int) -> bool:
    """Whether a server may have counted `tokens`: some divide the bytes by four (Ollama in Anthropic's dialect).

    Where the vocabulary is known, visible text has no fewer tokens than that. What a template adds may be less, and
    images, tools and reasoning may not be counted.
    """
    claim = claim_of(situation, tokens)
    least = claim.text - claim.margin
    return claim.agrees or tokens >= least or get_tokenizer(situation.account.model).method == "estimated"


def _part_digests(request: Request) -> Sequence[bytes]:
    """The digests under which the costs of `CountedParts` are stored, in their order."""
    preamble = preamble_digest(request.system, request.tools)
    return preamble + b"system", preamble + b"memory", preamble + b"instructions", preamble + b"tools"

"""Whether a reported number can be believed.

A server's report is evidence, not truth: before it becomes an anchor, teaches anything or widens a window it is checked
against what is certain about the request and against what the server reported earlier (README.md, "How a report is
weighed"). In tokens unless named otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, takewhile
from typing import NamedTuple

from tui.context.counting.tokenizers import get_tokenizer
from tui.context.estimate.calibration import FACTOR_HIGH, FACTOR_LOW
from tui.context.estimate.ledger import Sums
from tui.context.estimate.measurements import ALLOWANCE, Measurement, Verdict, learned
from tui.context.estimate.prediction import Situation, judged_by_learning, preamble_margin, spelled_out, text_margin
from tui.messages import Usage

UNCONFIRMED_ALLOWANCE = 512  # instead, beyond a report that nothing confirms: wrong ones may not creep up
PROOF_SLACK, PROOF_SHARE = 40.0, 0.01  # by how much correct numbers for the same prefix may differ
AGREEMENT_SHARE, AGREEMENT_SLACK, AGREEMENT_OF_TOTAL = 0.25, 16.0, 0.005  # of what was added, tokens, of the total
WITNESSES = 8  # confirmed reports that a new one has to agree with, so that small errors don't add up
AGREED = 3  # reports that agree with each other and with the next are confirmed
NEAR = 1.2  # ratio to the estimate of the text, within which two reports outweigh confirmed ones
TEXT_SHARE, TEXT_SLACK = 0.10, 48.0  # at most, between a first report and the estimate from text alone
DOUBT_SHARE = 0.25  # of that estimate: a larger margin is the vocabulary's, and tells nothing of the server
CONFIRMED_SHARE, CONFIRMED_SLACK = 0.04, 12.0  # between a report and an estimate made without it
PACKED_BYTES, PACKED_FROM, PACKED_SHARE = 12, 2_000, 1 / 3  # bytes a token, over so many bytes, of the estimate
ADDED_AT_LEAST = 8.0  # tokens of visible text, after which a number cannot be the same as before
CUT_SHARE = 0.4  # of the largest number measured: a server that cuts keeps at least that
CUT_BELOW, CUT_ABOVE = 0.6, 0.5  # reported under this share of the prediction, predicted over this share of the window
GROWN_SHARE = 0.1  # of a report: by so much a request grows before its growth can be told from chance
PLATEAU_SHARE = 0.75  # of one another: two cuts that tell the same window
EXCESS_SLACK = 32.0  # tokens between two reports of the same hidden prompt, beyond what the text may be off
HIDDEN_SHARE, USUAL_WINDOW = 0.5, 300_000  # of the window, that a hidden prompt may take; where that is unknown
MIN_WINDOW = 2_000  # no server has a smaller one
PLAUSIBLE_MARGINS = 3.0  # of a text's estimate: further off it never is, within a token for each byte
SUM_MARGINS = 2.0  # of an estimate: further above it a sum with cached tokens is implausible
MIN_CACHED = 0.1  # of the rest: an estimate may be off by fewer cached tokens than that
HELD = 24  # reports of one session that are held as evidence
UNMEASURED_PREAMBLE = 4.0  # how much larger than estimated the tools of an earlier run may be


@dataclass(frozen=True, slots=True)
class Predecessor:
    """An earlier report that this request extends, with nothing removed.

    `tokens` is the reported number, corrected for reasoning added or dropped; `added` the estimate of what was added
    since, `plain` the same without anything learned or reported, `text` its visible text, `most` its upper limit,
    `margin` by how much `plain` may be off. `slack` is the uncertainty of the difference: reasoning, changed tools.
    """

    tokens: float
    verdict: Verdict
    added: float
    text: float
    most: float
    plain: float
    margin: float = 0.0
    slack: float = 0.0

    @property
    def forecast(self) -> float:
        """The tokens of this request if that report was right."""
        return self.tokens + self.added

    def allows(self, tokens: float) -> bool:
        """Whether this request can have so many tokens if that report was right."""
        slack = PROOF_SLACK + PROOF_SHARE * self.tokens + self.slack
        trusted = self.verdict.confirmed or self.verdict.kind == "hidden"
        allowance = ALLOWANCE if trusted else UNCONFIRMED_ALLOWANCE
        return self.tokens - slack <= tokens <= self.tokens + self.most + allowance + slack

    def agrees(self, tokens: float) -> bool:
        """Whether `tokens` for this request is consistent with that report."""
        most = max(CONFIRMED_SHARE * tokens, self.margin) + CONFIRMED_SLACK
        usual = AGREEMENT_SLACK + AGREEMENT_OF_TOTAL * tokens
        likely = min(most, AGREEMENT_SHARE * self.added + usual) + self.slack
        return not self.repeats(tokens) and abs(tokens - self.forecast) <= likely

    def proportional(self, claim: Claim) -> bool:
        """Whether both reports have the same ratio to the estimates from text alone: they are of one vocabulary."""
        expected = self.scaled(claim)
        return not self.repeats(claim.tokens) and abs(claim.tokens - expected) <= CONFIRMED_SHARE * expected

    def grew(self, claim: Claim) -> bool:
        """Whether this report is doubted, too, and has grown to `claim` as the request did: nothing is cut."""
        return not self.verdict.believed and self.added >= GROWN_SHARE * self.tokens and self.proportional(claim)

    def scaled(self, claim: Claim) -> float:
        """The tokens of the request of `claim` if they have the same ratio to the estimate from text as this report."""
        before = claim.by_text - self.plain
        return self.tokens * claim.by_text / before if before > 0 else 0.0

    def repeats(self, tokens: float) -> bool:
        """Whether `tokens` is the same number as in that report, although text was added."""
        return tokens == self.tokens and self.text >= ADDED_AT_LEAST


@dataclass(frozen=True, slots=True)
class Claim:
    """A report of `tokens` for a request, and what is known about the request independently.

    `predicted` is the prediction made before the call; `by_text` the estimate from the text alone, before learning,
    plus the `hidden` tokens that the server is known to add; `by_learning` the same after learning, which may be off by
    `margin`; `text` and `size` (bytes) the visible text without tools, which some templates leave out; `plausible` the
    upper limit for all of it if the estimate is not quite wrong, `most` the upper limit at a token for each byte;
    `media` the estimate of pictures and PDFs; `template` is the part of the estimate that the model's own template
    adds, which a server may have replaced (Ollama's for Llama 3.1 has no date).
    `stuck`: the latest report is not believed and had the same number, for other messages.
    """

    tokens: int
    predicted: int
    by_text: float
    by_learning: float
    text: float
    size: float
    plausible: float
    most: float
    hidden: float = 0.0
    media: float = 0.0
    template: float = 0.0
    window: int | None = None
    margin: float = 0.0
    stuck: bool = False

    @property
    def _difference(self) -> float:
        """How far it is from the estimate from text alone, with the template's system prompt or without."""
        return min(abs(self.tokens - self.by_learning), abs(self.tokens - (self.by_learning - self.template)))

    @property
    def doubt(self) -> float:
        """How far off it may be if the estimate from text alone is about right."""
        return self._difference + min(self.margin, DOUBT_SHARE * self.by_learning)

    @property
    def agrees(self) -> bool:
        """Whether it is consistent with the estimate from text alone."""
        return self._difference <= min(self.margin, TEXT_SHARE * self.by_learning) + TEXT_SLACK

    @property
    def cut_at_window(self) -> bool:
        """Whether far too little was read of a request that nearly fills the window.

        Pictures don't count: some models take them for a fifth of what others do, some servers leave them out.
        """
        predicted = min(self.predicted, self.by_learning) - self.hidden - self.media
        return self.window is not None and self.tokens < CUT_BELOW * predicted and predicted > CUT_ABOVE * self.window

    def countable(self, tokens: float) -> bool:
        """Whether another vocabulary may count so many tokens in the request."""
        return FACTOR_LOW * self.by_text <= tokens <= FACTOR_HIGH * self.by_text

    @property
    def excess(self) -> float:
        """The tokens beyond the estimate from text alone."""
        return self.tokens - self.by_text + self.hidden


def weigh(claim: Claim, earlier: Sequence[Predecessor]) -> Verdict:
    """Return the verdict on `claim`; `earlier` are the earlier reports of the conversation, latest first."""
    believed = [one for one in earlier if one.verdict.believed]
    against = [one for one in believed if not one.allows(claim.tokens)]
    if reason := _impossible(claim, earlier):
        return _doubted(claim, earlier, _contradiction_text(claim, against[0]) if against else reason)
    if against:
        return _contradiction(claim, earlier, against)
    if not believed:
        too_many = claim.tokens > claim.plausible + claim.hidden + ALLOWANCE
        return _excess(claim, earlier) if too_many else _alone(claim)
    latest, confirmed = believed[0], [one for one in believed if one.verdict.confirmed][:WITNESSES]
    if not all(one.agrees(claim.tokens) for one in (latest, *confirmed)):
        return Verdict(doubt=claim.doubt) if latest.verdict.confirmed else _alone(claim)
    agreed = latest.verdict.agreed + 1
    sure = claim.agrees or latest.verdict.confirmed or agreed >= AGREED
    # The server's own count of the same request is surer than the estimate.
    same = [one.verdict.doubt + abs(claim.tokens - one.tokens) for one in confirmed if one.added == one.slack == 0]
    return Verdict(confirmed=sure, doubt=min([claim.doubt, *same]), agreed=agreed)


def _impossible(claim: Claim, earlier: Sequence[Predecessor]) -> str:
    """Why the number can't be that of the request, even if no earlier report contradicts it; "" if it can."""
    if claim.cut_at_window:
        return f"{claim.tokens:,} of about {claim.predicted:,} tokens"
    packed = claim.size >= PACKED_FROM and claim.tokens * PACKED_BYTES < claim.size
    if packed and claim.tokens < PACKED_SHARE * claim.text:
        return f"{claim.tokens:,} tokens for {claim.size:,.0f} bytes of text"
    if same := next((one for one in earlier if one.repeats(claim.tokens)), None):
        return _contradiction_text(claim, same)
    return f"{claim.tokens:,} tokens again, although the messages are others" if claim.stuck else ""


def _alone(claim: Claim) -> Verdict:
    """The verdict on a report that only the estimate from text can confirm."""
    return Verdict(confirmed=claim.agrees, doubt=claim.doubt)


def _contradiction(claim: Claim, earlier: Sequence[Predecessor], against: Sequence[Predecessor]) -> Verdict:
    """Decide whether `claim` or the measurements `against` it are wrong.

    Two reports in a row outweigh confirmed ones, but not against the text: a prompt may be cut twice at the same place.
    """
    ratio, latest = _ratio(claim.tokens, claim.by_text), earlier[0]
    nearer = all(ratio < _ratio(one.forecast, claim.by_text) for one in against)
    near = nearer or min(ratio, _ratio(claim.tokens, claim.by_text - claim.hidden)) <= NEAR
    seconded = not latest.verdict.believed and (latest.agrees(claim.tokens) or latest.proportional(claim))
    unconfirmed = not any(one.verdict.confirmed for one in against)
    if (near and seconded) or (unconfirmed and nearer) or _persists(claim, earlier):
        alone = _alone(claim)
        return replace(alone, confirmed=alone.confirmed and unconfirmed, overrules=True)
    return _doubted(claim, earlier, _contradiction_text(claim, against[0]))


def _persists(claim: Claim, earlier: Sequence[Predecessor]) -> bool:
    """Whether the latest reports were doubted as too large and agree with this one: another model answers now.

    Too small ones may come from a prompt that is cut.
    """
    latest = earlier[:AGREED]
    doubted = all(not one.verdict.believed and (one.agrees(claim.tokens) or one.proportional(claim)) for one in latest)
    return len(latest) == AGREED and doubted and claim.by_text < claim.tokens and claim.countable(claim.tokens)


def _contradiction_text(claim: Claim, before: Predecessor) -> str:
    tokens, measured, added = claim.tokens, round(before.tokens), round(before.added)
    if before.repeats(tokens):
        return f"{tokens:,} tokens again, although about {added:,} were added"
    if tokens < before.tokens:
        return f"{tokens:,} tokens, after {measured:,} were measured and about {added:,} added"
    return f"{tokens - measured:,} tokens more than before, where about {added:,} were added"


def _doubted(claim: Claim, earlier: Sequence[Predecessor], reason: str) -> Verdict:
    """The verdict on a claim that is not believed: either another number, or the size of a prompt cut by the server."""
    believed = {one.tokens for one in earlier if one.verdict.believed}
    since = takewhile(lambda one: not one.verdict.believed, earlier)
    cuts = [one for one in since if one.verdict.kind == "cut"]
    largest = max([0.0, *believed, *(cut.tokens for cut in cuts)])
    placeholder = claim.tokens < CUT_SHARE * MIN_WINDOW
    stays_behind = len(believed) >= 2 and _stays_behind(claim, earlier, largest)
    if placeholder or not (claim.cut_at_window or stays_behind):
        return Verdict("doubted", reason)
    size = max(claim.tokens, largest)
    # After a confirmed report the same number may be that of the call before.
    again = [one for one in earlier if one.repeats(claim.tokens) and not one.verdict.confirmed]
    plateau = [cut for cut in cuts if not cut.agrees(claim.tokens)]  # of a second server they grow
    proven = any(PLATEAU_SHARE * size <= one.tokens for one in (*again, *plateau))
    window = round(size) if proven and size >= MIN_WINDOW else None
    return Verdict("cut", f"the server read {claim.tokens:,} of about {claim.predicted:,} tokens", window=window)


def _stays_behind(claim: Claim, earlier: Sequence[Predecessor], largest: float) -> bool:
    """Whether the input grew to `largest` tokens before, and does not grow any more."""
    missing = claim.predicted - claim.tokens
    rounding = min(_place(tokens) for tokens in (claim.tokens, *(round(one.tokens) for one in earlier)))
    if missing <= PROOF_SLACK + PROOF_SHARE * claim.tokens + rounding:
        return False
    return CUT_SHARE * largest <= claim.tokens <= largest and not any(one.grew(claim) for one in earlier)


def _place(tokens: int) -> int:
    """The place to which a number is rounded: 100 for 4,200."""
    digits = str(tokens)
    return int(10 ** (len(digits) - len(digits.rstrip("0"))))


def _excess(claim: Claim, earlier: Sequence[Predecessor]) -> Verdict:
    """The verdict on more tokens than the request can have: the server adds a prompt, if a second call agrees.

    None of the `earlier` reports is believed.
    """
    within_bytes = claim.tokens <= claim.most + claim.hidden + ALLOWANCE
    if within_bytes and earlier and earlier[0].proportional(claim):
        return _alone(claim)  # another vocabulary than its name says
    seconded = bool(earlier) and earlier[0].agrees(claim.tokens)
    if claim.excess > HIDDEN_SHARE * (claim.window or USUAL_WINDOW) or not seconded:
        most = claim.plausible if within_bytes else claim.most
        return Verdict("doubted", f"{claim.tokens:,} tokens, and what was sent can have {most:,.0f} at most")
    surely = abs(claim.tokens - earlier[0].forecast) <= EXCESS_SLACK  # two random numbers seldom are so close
    hidden, reason = round(claim.excess), f"the server adds about {claim.excess:,.0f} tokens of its own"
    return Verdict("hidden", reason, confirmed=surely, agreed=1, hidden=hidden)


def _ratio(one: float, other: float) -> float:
    """How many times the larger is the smaller."""
    low, high = sorted((max(1.0, one), max(1.0, other)))
    return high / low


class Report(NamedTuple):
    """What a server reported of a request, in tokens, and what the request was. Digests are 32 bytes.

    `sent` is the chain digest of its `messages` messages, `reasoning` what they had of it; `preamble_most` is the most
    that its system prompt and tools can have cost. `measurement` is None where the report is not believed.
    """

    tokens: int
    verdict: Verdict
    sent: bytes
    messages: int
    preamble: bytes
    preamble_most: float
    reasoning: float
    measurement: Measurement | None


@dataclass(eq=False)
class ReportLog:
    """The `reports` of one session for one model, latest last."""

    reports: list[Report] = field(default_factory=list)
    _disputed: bool = False

    def weigh(self, situation: Situation, tokens: int, *, window: int | None) -> Verdict:
        """The verdict on a report of `tokens` for the request of `situation`."""
        latest = self.reports[-1] if self.reports else None
        repeated = latest is not None and not latest.verdict.believed and latest.tokens == tokens
        stuck = latest is not None and repeated and not situation.account.begins_with(latest.messages, latest.sent)
        earlier = [_predecessor(report, situation) for report in self._extended_by(situation)]
        claim = replace(claim_of(situation, tokens), window=window, stuck=stuck)
        verdict = weigh(claim, earlier)
        alike = [one for one in earlier[:WITNESSES] if one.proportional(claim)]
        doubted = verdict.kind == "doubted" and alike and all(one.verdict.kind == "doubted" for one in alike)
        if doubted and claim.countable(tokens):
            self._disputed = True  # a second server answers in turns, or another model from now on
        return replace(verdict, confirmed=verdict.confirmed and not self._disputed)

    def rival(self, situation: Situation) -> float:
        """What the request costs by two reports that are doubted, but agree with each other; 0 without such."""
        if sum(not report.verdict.believed for report in self.reports) < 2:
            return 0.0
        claim, latest = claim_of(situation, 0), self._extended_by(situation)[:WITNESSES]
        scaled = [_predecessor(report, situation).scaled(claim) for report in latest if not report.verdict.believed]
        doubted = filter(claim.countable, scaled)
        agreed = (max(pair) for pair in combinations(doubted, 2) if max(pair) <= (1 + CONFIRMED_SHARE) * min(pair))
        return max(agreed, default=0.0)

    def reread(self, situation: Situation, usage: Usage) -> Usage:
        """`usage`; if only that is plausible, what it says where the cached tokens are inside the reported input.

        Some servers that speak Anthropic's Messages count them there, too (SGLang until March 2026, oMLX 0.3.12), so
        that the sum is too large by them. Without them it agrees with the report before, or if neither does with the
        text. A first report stays: the excess may be a prompt of the server's, which was cached. So does a report with
        few cached tokens: the estimate may be off by as many.
        """
        cached = (usage.input_cached or 0) + (usage.input_cache_write or 0)
        alone = (usage.input_total or 0) - cached
        believed = [report for report in self._extended_by(situation) if report.verdict.believed]
        if not believed or not 0 < MIN_CACHED * alone <= cached <= alone:
            return usage
        tokens = alone + (usage.cleared or 0)
        before, claim = _predecessor(believed[0], situation), claim_of(situation, tokens)
        if before.agrees(tokens + cached):
            return usage
        if before.agrees(tokens):
            expected, margin = before.forecast, before.margin + before.slack
        elif claim.agrees:
            expected, margin = claim.by_learning, claim.margin
        else:
            return usage
        beyond = tokens + cached - expected
        inside = beyond > SUM_MARGINS * (margin + claim.media) + TEXT_SLACK
        return replace(usage, input_total=alone) if inside else usage

    def add(self, situation: Situation, tokens: int, verdict: Verdict, measurement: Measurement | None) -> None:
        """Hold a report that was weighed."""
        account, preamble = situation.account, situation.preamble
        count = len(account.lines)
        sent, thought = account.chain(count), account.sums.reasoning
        report = Report(tokens, verdict, sent, count, preamble.digest, preamble.most, thought, measurement)
        self.reports = [*self.reports, report][-HELD:]

    def overrule(self) -> list[Measurement]:
        """Take back what was believed: a contradiction was decided against it. Returns the measurements concerned."""
        believed = [report for report in self.reports if report.verdict.believed]
        self._disputed = self._disputed or any(report.verdict.confirmed for report in believed)
        self.reports = [report for report in self.reports if not report.verdict.believed]
        return [report.measurement for report in believed if report.measurement is not None]

    def _extended_by(self, situation: Situation) -> list[Report]:
        """The reports whose requests this one extends, latest first.

        The measurement it stands on is among them, also when an earlier run of the program made it.
        """
        account = situation.account
        extended = [report for report in reversed(self.reports) if account.begins_with(report.messages, report.sent)]
        measurement = situation.base.measurement
        if measurement is None or any(report.measurement == measurement for report in extended):
            return extended
        if not account.begins_with(measurement.messages, measurement.sent):
            return extended
        return sorted([*extended, _stored(measurement)], key=lambda report: -report.messages)


def _stored(measurement: Measurement) -> Report:
    """The report of an earlier run that became `measurement`."""
    return Report(
        measurement.input_tokens,
        Verdict(confirmed=measurement.confirmed, doubt=measurement.doubt),
        measurement.sent,
        measurement.messages,
        measurement.preamble,
        measurement.preamble_tokens * UNMEASURED_PREAMBLE,
        measurement.sent_reasoning,
        measurement,
    )


def _predecessor(report: Report, situation: Situation) -> Predecessor:
    account, preamble, calibration = situation.account, situation.preamble, situation.calibration
    since = account.since(report.messages)
    change = account.sums_before(report.messages).reasoning - report.reasoning
    changed_preamble = 0.0 if report.preamble == preamble.digest else report.preamble_most + preamble.most
    margin = text_margin(since, account.model, calibration)
    return Predecessor(
        tokens=report.tokens + change,
        verdict=report.verdict,
        added=since.known + learned(since, calibration),
        text=since.text,
        most=_plausible_most(since, margin, situation),
        plain=since.plain,
        margin=margin,
        slack=abs(change) + since.reasoning + changed_preamble,
    )


def _plausible_most(sums: Sums, margin: float, situation: Situation) -> float:
    """The most that messages can cost if their text is off by a few margins at most; what is no text in full."""
    text = sums.text * max(1.0, situation.calibration.factor) + PLAUSIBLE_MARGINS * margin
    if get_tokenizer(situation.account.model).method == "estimated":
        text += spelled_out(sums.all_classes)
    return min(sums.size, text) + sums.most - sums.size


def claim_of(situation: Situation, tokens: int) -> Claim:
    """A report of `tokens` for the request of `situation`."""
    account, preamble, calibration = situation.account, situation.preamble, situation.calibration
    everything, hidden = account.sums, calibration.hidden
    factor = calibration.factor if judged_by_learning(account.model, calibration) else 1.0
    fixed = calibration.preamble_tokens(preamble.digest, preamble.total)
    prompt = preamble_margin(preamble, account.model, calibration)
    margin = text_margin(everything, account.model, calibration)
    prompt_text = min(preamble.size, sum(preamble.sections) + PLAUSIBLE_MARGINS * prompt)
    return Claim(
        tokens=tokens,
        predicted=situation.estimate.uncleared,
        by_text=preamble.total + hidden + everything.plain,
        by_learning=fixed + hidden + everything.plain * factor,
        margin=margin + prompt,
        text=everything.text + sum(preamble.sections),
        size=everything.size + preamble.size,
        plausible=_plausible_most(everything, margin, situation) + preamble.most - preamble.size + prompt_text,
        most=everything.most + preamble.most,
        hidden=hidden,
        media=everything.media * calibration.media_factor,
        template=0.0 if calibration.knows_preamble(preamble.digest) else preamble.per_request,
    )

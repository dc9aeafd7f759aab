"""What a server has reported of one session's requests, as evidence for the next report (see evidence.py)."""

from __future__ import annotations

from typing import NamedTuple

from tui.context.estimate.calibration import Calibration
from tui.context.estimate.errors import ENOUGH_CALLS
from tui.context.estimate.evidence import Claim, Step, Verdict, weigh
from tui.context.estimate.ledger import Sums
from tui.context.estimate.prediction import Situation, judged_by_learning, learned, preamble_margin, text_margin
from tui.context.estimate.tracker import Measurement

PLAUSIBLE_MARGINS = 3.0  # of a text's estimate: further off it never is, within a token for each byte
HELD = 24  # reports of one session that are held as evidence
UNMEASURED_PREAMBLE = 4.0  # how much larger than estimated the tools of an earlier run may be


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


class ReportLog:
    """The reports of one session for one model."""

    def __init__(self) -> None:
        self._reports: list[Report] = []  # latest last
        self._disputed = False

    @property
    def empty(self) -> bool:
        """Whether nothing was reported yet."""
        return not self._reports

    def weigh(self, situation: Situation, tokens: int, *, window: int | None, recorded: bool) -> Verdict:
        """The verdict on a report of `tokens` for the request of `situation`."""
        claim = _claim(situation, tokens, window=window, recorded=recorded, disputed=self._disputed)
        return weigh(claim, [_step(report, situation) for report in self._extended_by(situation)])

    def add(self, situation: Situation, tokens: int, verdict: Verdict, measurement: Measurement | None) -> None:
        """Hold a report that was weighed."""
        account, preamble = situation.account, situation.preamble
        count = len(account.messages)
        sent, thought = account.chain(count), account.sums.reasoning
        report = Report(tokens, verdict, sent, count, preamble.digest, preamble.most, thought, measurement)
        self._reports = [*self._reports, report][-HELD:]

    def overrule(self) -> list[Measurement]:
        """Take back what was believed: a contradiction was decided against it. Returns the measurements concerned."""
        believed = [report for report in self._reports if report.verdict.believed]
        self._disputed = self._disputed or any(report.verdict.confirmed for report in believed)
        self._reports = [report for report in self._reports if not report.verdict.believed]
        return [report.measurement for report in believed if report.measurement is not None]

    def _extended_by(self, situation: Situation) -> list[Report]:
        """The reports whose requests this one extends, latest first.

        The measurement it stands on is among them, also when an earlier run of the program made it.
        """
        account = situation.account
        extended = [report for report in reversed(self._reports) if account.begins_with(report.messages, report.sent)]
        measurement = situation.base.match.measurement if situation.base.measured else None
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


def _step(report: Report, situation: Situation) -> Step:
    account, preamble = situation.account, situation.preamble
    since = account.since(report.messages)
    change = account.sums_before(report.messages).reasoning - report.reasoning
    slack = abs(change) + since.reasoning
    if report.preamble != preamble.digest:
        slack += report.preamble_most + preamble.most
    added = since.known + learned(since, situation.calibration)
    most = _plausible_most(since, account.model, situation.calibration)
    margin = text_margin(since, account.model, situation.calibration)
    return Step(report.tokens + change, report.verdict, added, since.text, most, since.plain, margin, slack)


def _plausible_most(sums: Sums, model: str, calibration: Calibration) -> float:
    """The most that messages can cost if their text is not estimated quite wrongly; what is no text in full."""
    text = sums.text * max(1.0, calibration.factor) + PLAUSIBLE_MARGINS * text_margin(sums, model, calibration)
    return min(sums.size, text) + sums.most - sums.size


def _claim(situation: Situation, tokens: int, *, window: int | None, recorded: bool, disputed: bool) -> Claim:
    account, preamble, calibration = situation.account, situation.preamble, situation.calibration
    everything, hidden = account.sums, calibration.hidden
    factor = calibration.factor if judged_by_learning(account.model, calibration) else 1.0
    fixed = calibration.preamble_tokens(preamble.digest.hex(), preamble.total)
    model = account.model
    prompt = preamble_margin(preamble, model, calibration)
    prompt_text = min(preamble.size, sum(preamble.sections) + PLAUSIBLE_MARGINS * prompt)
    return Claim(
        tokens=tokens,
        predicted=situation.estimate.tokens,
        scratch=preamble.total + hidden + everything.plain,
        taught=fixed + hidden + everything.plain * factor,
        margin=text_margin(everything, model, calibration) + prompt,
        text=everything.text + sum(preamble.sections),
        size=everything.size + preamble.size,
        plausible=_plausible_most(everything, model, calibration) + preamble.most - preamble.size + prompt_text,
        most=everything.most + preamble.most,
        hidden=hidden,
        excesses=calibration.excesses,
        window=window,
        recorded=recorded,
        disputed=disputed,
        established=calibration.calls >= ENOUGH_CALLS and not hidden,
    )

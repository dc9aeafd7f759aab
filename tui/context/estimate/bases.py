"""The base of an estimate: a measured call, corrected for what changed in the conversation since.

See README.md, "Which call is the last one that still describes this conversation".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tui.context.counting.priors import prior_of, relative_size
from tui.context.estimate.calibration import Calibration
from tui.context.estimate.ledger import Account, Line
from tui.context.estimate.preamble import Preamble
from tui.context.estimate.tracker import Match, Measurement

BORROWED = 0.1  # of another model's measurement: how far off it may be


class Base(NamedTuple):
    """`covered` messages cost `known` (measured) plus `adjust` (an estimated correction), in tokens.

    `uncertain` is how much of `adjust` had to be estimated, 0 if nothing. `bias` is what a measured reply costs beside
    its output once something follows it (see `Prior`), before learning.
    """

    covered: int
    known: float
    adjust: float
    uncertain: float
    match: Match
    bias: float = 0.0

    @property
    def measured(self) -> bool:
        """Whether it is based on a call to this model."""
        return self.match.measurement is not None and self.match.kind != "none"


class Anchored(NamedTuple):
    """The latest measured request of a session, reply included, and its tokens."""

    measurement: Measurement
    account: Account
    known: float


def corrected(match: Match, account: Account, preamble: Preamble, calibration: Calibration) -> Base:
    """`match` as a base: its measurement, corrected for reasoning that was added or dropped and a changed preamble."""
    measurement = match.measurement
    if measurement is None:
        return Base(0, 0.0, 0.0, 0.0, match)
    measured, adjust, uncertain, bias = float(measurement.input_tokens), 0.0, 0.0, 0.0
    # Reasoning in the input then and now; that of the reply is part of its output in any case.
    change = calibration.reasoning_share * (account.sums_before(match.covered).reasoning - measurement.sent_reasoning)
    if match.with_reply:
        measured += measurement.output_tokens or 0
        change -= measurement.reply_reasoning
        share = calibration.unseen_share
        if share is not None:
            measured -= round((1 - share) * measurement.unseen)
        else:
            adjust -= measurement.unseen
            uncertain += measurement.unseen
        prior, has_calls = prior_of(measurement.model), account.line(match.covered - 1).raw.calls > 0
        bias = prior.after_calls if has_calls else prior.after_reply
    change = round(change)
    if change and measurement.reasoning_known:
        measured += change
    elif change:
        adjust += change
        uncertain += abs(change)
    if measurement.preamble != preamble.digest:
        difference = preamble_change(measurement, preamble, calibration)
        adjust += difference
        uncertain += max(abs(difference), 1.0)
    return Base(match.covered, max(0.0, measured), adjust, uncertain, match, bias)


def preamble_change(measurement: Measurement, preamble: Preamble, calibration: Calibration) -> float:
    """What system prompt and tools add compared with those of `measurement`, in tokens."""
    before = measurement.preamble.hex(), measurement.preamble_tokens
    return calibration.preambles.change(before, (preamble.digest.hex(), preamble.total))


def trimmed(anchored: Anchored, account: Account, preamble: Preamble, calibration: Calibration) -> Base | None:
    """The session's latest measured request as a base, corrected for messages removed and added since.

    None if more was removed than was measured.
    """
    measurement, then, measured = anchored
    left, came = _difference(then, account), _difference(account, then)
    measured -= sum(line.tokens for line in left if line.cost)
    measured += sum(line.tokens for line in came if line.cost)
    adjust = calibration.factor * (_guess(came) - _guess(left))
    uncertain = sum(line.tokens for line in left) + sum(line.tokens for line in came)
    # A message that lost only its reasoning has the same body: its lost reasoning is not in `left`.
    measured += account.sums.reasoning - sum(line.sums.reasoning for line in came)
    measured -= then.sums.reasoning - sum(line.sums.reasoning for line in left)
    if measurement.preamble != preamble.digest:
        difference = preamble_change(measurement, preamble, calibration)
        adjust += difference
        uncertain += abs(difference)
    if measured + adjust <= 0:
        return None
    match = Match("prefix", 0, measurement, measurement.output_tokens is not None)
    return Base(len(account.messages), measured, adjust, max(uncertain, 1.0), match)


def borrowed(match: Match, model: str) -> Base:
    """Another model's measurement of the same conversation as a base; all of it counts as estimated."""
    measurement = match.measurement
    if measurement is None:
        return Base(0, 0.0, 0.0, 0.0, match)
    tokens = float(measurement.input_tokens)
    if match.with_reply:
        tokens += (measurement.output_tokens or 0) - measurement.reply_reasoning
    tokens *= relative_size(model) / relative_size(measurement.model)
    return Base(match.covered, 0.0, tokens, BORROWED * tokens, Match("none", match.covered, measurement))


def _difference(some: Account, others: Account) -> list[Line]:
    """The lines of `some` that are missing in `others`, with repetitions."""
    missing = Counter(line.body for line in some.lines()) - Counter(line.body for line in others.lines())
    lines = []
    for line in some.lines() if missing else ():
        if missing[line.body] > 0:
            missing[line.body] -= 1
            lines.append(line)
    return lines


def _guess(lines: Sequence[Line]) -> float:
    return sum(line.tokens for line in lines if line.cost is None)

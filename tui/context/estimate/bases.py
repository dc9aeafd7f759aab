"""The base of an estimate: a measured call, corrected for what changed in the conversation since.

See README.md, "Which call is the last one that still describes this conversation".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tui.context.counting.priors import Prior, prior_of, relative_size
from tui.context.estimate.calibration import Calibration
from tui.context.estimate.ledger import Account, Entry
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
    """The latest measured request of a session, reply included, entry by entry."""

    measurement: Measurement
    entries: tuple[Entry, ...]
    known: float


def corrected(match: Match, account: Account, preamble: Preamble, calibration: Calibration) -> Base:
    """`match` as a base: its measurement, corrected for reasoning that was added or dropped and a changed preamble."""
    measurement = match.measurement
    if measurement is None:
        return Base(0, 0.0, 0.0, 0.0, match)
    measured, adjust, uncertain, bias = float(measurement.input_tokens), 0.0, 0.0, 0.0
    # Reasoning in the input then and now; that of the reply is part of its output in any case.
    change = calibration.reasoning_share * (account.sums[match.covered].reasoning - measurement.sent_reasoning)
    if match.with_reply:
        measured += measurement.output_tokens or 0
        change -= measurement.reply_reasoning
        share = calibration.unseen_share
        if share is not None:
            measured -= round((1 - share) * measurement.unseen)
        else:
            adjust -= measurement.unseen
            uncertain += measurement.unseen
        bias = reply_bias(prior_of(measurement.model), account.entries[match.covered - 1])
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


def reply_bias(prior: Prior, reply: Entry) -> float:
    """What `reply` costs beside its output, in tokens."""
    return prior.after_calls if reply.calls else prior.after_reply


def preamble_change(measurement: Measurement, preamble: Preamble, calibration: Calibration) -> float:
    """What system prompt and tools add compared with those of `measurement`, in tokens."""
    before = measurement.preamble.hex(), measurement.preamble_tokens
    return calibration.preambles.change(before, (preamble.digest.hex(), preamble.total))


def trimmed(anchored: Anchored, account: Account, preamble: Preamble, calibration: Calibration) -> Base | None:
    """The session's latest measured request as a base, corrected for messages removed and added since.

    None if more was removed than was measured.
    """
    measurement, then, measured = anchored
    now = account.entries[: len(account.messages)]
    left, came = _difference(then, now), _difference(now, then)
    measured -= sum(entry.cost for entry in left if entry.source != "estimated")
    measured += sum(entry.cost for entry in came if entry.source != "estimated")
    adjust = calibration.factor * (_guess(came) - _guess(left))
    uncertain = sum(entry.cost for entry in left) + sum(entry.cost for entry in came)
    # A message that lost only its reasoning has the same body: its lost reasoning is not in `left`.
    reasoning_before = sum(entry.sums.reasoning for entry in then) - sum(entry.sums.reasoning for entry in left)
    measured += (
        sum(entry.sums.reasoning for entry in now) - sum(entry.sums.reasoning for entry in came) - reasoning_before
    )
    if measurement.preamble != preamble.digest:
        difference = preamble_change(measurement, preamble, calibration)
        adjust += difference
        uncertain += abs(difference)
    if measured + adjust <= 0:
        return None
    match = Match("prefix", 0, measurement, measurement.output_tokens is not None)
    return Base(len(now), measured, adjust, max(uncertain, 1.0), match)


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


def _difference(some: Sequence[Entry], others: Sequence[Entry]) -> list[Entry]:
    """The entries of `some` that are missing in `others`, with repetitions."""
    missing = Counter(entry.digest.body for entry in some) - Counter(entry.digest.body for entry in others)
    missing_entries = []
    for entry in some:
        if missing[entry.digest.body] > 0:
            missing[entry.digest.body] -= 1
            missing_entries.append(entry)
    return missing_entries


def _guess(entries: Sequence[Entry]) -> float:
    return sum(entry.cost for entry in entries if entry.source == "estimated")

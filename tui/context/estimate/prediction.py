"""From a measured call to the estimate: the base that still describes the conversation, and what is new since.

See README.md, "Which call is the last one that still describes this conversation".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal, NamedTuple, TypeAlias

from tui.context.counting.classes import LATIN, unpack
from tui.context.counting.priors import prior_of, relative_size
from tui.context.counting.tokenizers import get_tokenizer, margins_of
from tui.context.estimate.calibration import (
    ENOUGH_CALLS,
    MARGIN_CALL,
    MARGIN_HEURISTIC,
    MARGIN_KNOWN,
    MARGIN_TOKENIZER,
    Calibration,
)
from tui.context.estimate.ledger import Account, Line, Sums
from tui.context.estimate.preamble import Preamble
from tui.context.estimate.tracker import Match, MatchKind, Measurement

BORROWED = 0.1  # of another model's measurement: how far off it may be
MARGIN_FIRST = 64.0  # tokens that a template or a gateway may add, until a call was measured
MARGIN_TOOLS = 0.2  # of the estimate of tools: how a provider writes them into the prompt is not published
NEGLIGIBLE = 0.05  # of a confirmed number: below, its doubt is not shown
LIKELY_LOW, LIKELY_HIGH = 0.67, 1.5  # a learned factor beyond them may have been learned from wrong reports


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
    before = measurement.preamble, measurement.preamble_tokens
    return calibration.preambles.change(before, (preamble.digest, preamble.total))


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


TotalSource: TypeAlias = Literal["exact", "delta", "estimated"]


@dataclass(frozen=True, slots=True)
class ConversationEstimate:
    """The input tokens of the next request.

    `known_tokens` were measured, `estimated_tokens` not; together they are `tokens`. `upper_bound` is the 95th
    percentile of what the total may be, `margin` the fixed margin it scales. `last_output_sent_back` is the last reply
    less reasoning that does not return. `heuristic_tokens` is the part that no tokenizer counted. `counted` says that
    `last_input` is the provider's count of a request, not what it reported of a call.
    """

    tokens: int
    upper_bound: int
    known_tokens: int
    estimated_tokens: int
    new_message_count: int
    source: TotalSource
    match: MatchKind
    factor: float
    margin: float
    last_input: int | None = None
    last_output: int | None = None
    last_output_sent_back: int | None = None
    heuristic_tokens: int = 0
    cleared: int = 0
    counted: bool = False


class Situation(NamedTuple):
    """All inputs of one estimate at one moment, and the estimate."""

    estimate: ConversationEstimate
    base: Base
    account: Account
    preamble: Preamble
    calibration: Calibration

    @property
    def last_error_percent(self) -> float | None:
        """Error of the prediction of the call that the estimate is based on, in percent; None if there is none."""
        measurement = self.base.match.measurement if self.base.measured else None
        if measurement is None or measurement.predicted is None or measurement.input_tokens <= 0:
            return None
        return 100 * (measurement.predicted - measurement.input_tokens) / measurement.input_tokens

    @property
    def last_error_first(self) -> bool:
        """Whether that prediction had no measured call to go by."""
        measurement = self.base.match.measurement
        return measurement is not None and measurement.first


def learned(sums: Sums, calibration: Calibration, bias: float = 0.0) -> float:
    """The estimate of the unknown costs in `sums`, in tokens, with the learned factors; never negative."""
    return max(
        0.0,
        calibration.text(sums.content, sums.classes)
        + (sums.markup + bias) * calibration.markup_factor
        + sums.media * calibration.media_factor
        + sums.fixed,
    )


def after_edits(estimate: ConversationEstimate, base: Base) -> ConversationEstimate:
    """`estimate` for a provider that clears old tool results: it will clear again what it cleared last."""
    measurement = base.match.measurement if base.measured else None
    if measurement is None or not measurement.cleared:
        return estimate
    cleared = min(measurement.cleared, estimate.tokens)
    return replace(
        estimate,
        tokens=estimate.tokens - cleared,
        upper_bound=estimate.upper_bound - cleared,
        known_tokens=max(0, estimate.known_tokens - cleared),
        estimated_tokens=estimate.tokens - cleared - max(0, estimate.known_tokens - cleared),
        last_input=measurement.input_tokens - measurement.cleared,
        cleared=cleared,
    )


def predict(base: Base, account: Account, preamble: Preamble, calibration: Calibration) -> ConversationEstimate:
    """The estimate for `account` after `preamble`, where nothing is cleared by the provider."""
    fresh = account.since(base.covered)
    count = len(account.messages) - base.covered
    guess = learned(fresh, calibration, base.bias if count else 0.0)
    measured, adjust, rough = base.known, base.adjust, fresh.failed
    counted = preamble.counted if base.match.measurement is None else None
    if counted is not None:
        measured, adjust = sum(counted), calibration.hidden + (preamble.per_request if count else 0.0)
    elif base.match.measurement is None:
        before = calibration.preamble_tokens(preamble.digest, preamble.total)
        adjust, rough = before + calibration.hidden, rough + preamble.failed
    tokens = max(0, round(measured + adjust + fresh.known + guess))
    # An estimated deduction lowers the known tokens; an estimated addition is not part of them.
    sure = min(tokens, max(0, round(measured + fresh.known + min(0.0, adjust))))
    measurement = base.match.measurement if base.measured else None
    confirmed = measurement is not None and measurement.confirmed
    all_counted = counted is not None and not account.messages and not adjust
    exact = all_counted or (confirmed and count == 0 and base.uncertain == 0)
    least = 0.0
    if not exact:
        guessed = tokens - sure
        least = _margin(guessed, fresh, rough, account.model, calibration)
        least += MARGIN_TOKENIZER * base.uncertain
        if base.match.measurement is None:
            least += MARGIN_FIRST + (_tools_margin(preamble, calibration) if counted is None else 0.0)
    margin = 0.0 if exact else (MARGIN_CALL if confirmed else MARGIN_KNOWN * sure) + least
    spread = calibration.spread if confirmed else 1.0 if base.measured else calibration.first_spread
    if confirmed and not exact and calibration.errors.spread is not None:
        # The errors of earlier calls speak for text like theirs; what goes beyond it keeps its own margin.
        least = _unmeasured_margin(fresh, rough, account.model, calibration) + MARGIN_TOKENIZER * base.uncertain
    bound = tokens + round(max(margin * spread, least))
    if exact and measurement is not None and measurement.doubt > NEGLIGIBLE * tokens:
        bound = ceil(tokens + measurement.doubt)
    return ConversationEstimate(
        tokens=tokens,
        upper_bound=bound,
        known_tokens=sure,
        estimated_tokens=tokens - sure,
        new_message_count=count,
        source="exact" if exact else "delta" if base.measured else "estimated",
        match=base.match.kind,
        factor=calibration.factor,
        margin=margin,
        last_input=None if measurement is None else measurement.input_tokens,
        last_output=None if measurement is None else measurement.output_tokens,
        last_output_sent_back=_sent_back(base, account, calibration.reasoning_share),
        heuristic_tokens=round(rough),
        counted=all_counted or (measurement is not None and measurement.counted),
    )


def _margin(guessed: int, fresh: Sums, rough: float, model: str, calibration: Calibration) -> float:
    """The margin of estimated content: of its text by class, and of the markup around it.

    A class that was measured for this model needs no more margin than any tokenizer does.
    """
    margins = [
        min(margin, MARGIN_TOKENIZER) if calibration.knows(kind) else margin
        for kind, margin in enumerate(margins_of(model))
    ]
    texts = unpack(fresh.classes)
    content = min(float(guessed), sum(tokens for _, tokens in texts))
    rough = min(guessed - content, max(0.0, rough - content))
    margin = sum(margins[kind] * tokens for kind, tokens in texts)
    return margin + MARGIN_TOKENIZER * (guessed - content - rough) + MARGIN_HEURISTIC * rough


def _unmeasured_margin(fresh: Sums, rough: float, model: str, calibration: Calibration) -> float:
    """The part of `_margin` for text of a class beyond what was measured of it, and for what no tokenizer counted."""
    margins = margins_of(model)
    texts = ((margins[kind], tokens - calibration.measured_tokens(kind)) for kind, tokens in unpack(fresh.classes))
    return sum(margin * beyond for margin, beyond in texts if beyond > 0) + MARGIN_HEURISTIC * rough


def judged_by_learning(model: str, calibration: Calibration) -> bool:
    """Whether reports are to be judged by the learned factor: it is sure enough, and no vocabulary says it better."""
    likely = LIKELY_LOW <= calibration.factor <= LIKELY_HIGH
    return likely and calibration.calls >= ENOUGH_CALLS and get_tokenizer(model).how != "vocabulary"


def text_margin(sums: Sums, model: str, calibration: Calibration) -> float:
    """By how much the estimate of messages from their text alone may be off."""
    taught, margins = judged_by_learning(model, calibration), margins_of(model)
    return sum(
        tokens * (MARGIN_KNOWN if taught and calibration.knows(kind) else margins[kind])
        for kind, tokens in unpack(sums.all_classes)
    )


def preamble_margin(preamble: Preamble, model: str, calibration: Calibration) -> float:
    """By how much the estimate of system prompt and tools may be off."""
    share = MARGIN_KNOWN if judged_by_learning(model, calibration) else margins_of(model)[LATIN]
    return share * sum(preamble.sections) + _tools_margin(preamble, calibration)


def _tools_margin(preamble: Preamble, calibration: Calibration) -> float:
    """The share of `preamble_margin` that tools have; 0 where two calls agreed on what they cost."""
    is_known = calibration.preambles.knows(preamble.digest)
    return 0.0 if is_known else MARGIN_TOOLS * sum(preamble.tools)


def _sent_back(base: Base, account: Account, share: float) -> int | None:
    measurement = base.match.measurement
    if not base.measured or measurement is None or measurement.output_tokens is None or not base.match.with_reply:
        return None
    reply = account.line(base.match.covered - 1) if base.match.covered else None
    returned = 0.0 if reply is None else share * reply.sums.reasoning
    left = round(measurement.output_tokens - measurement.reply_reasoning + returned)
    return max(0, min(measurement.output_tokens, left))

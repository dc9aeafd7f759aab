"""The estimate of a request: what its base measured, what is new since, and how far off it may be.

`next input = last input + last output + new messages` (README.md, "The formula").
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal, NamedTuple, TypeAlias

from tui.context.counting.tokenizers import get_tokenizer
from tui.context.counting.words import LATIN, unpack
from tui.context.estimate.calibration import ENOUGH_CALLS, MARGIN_CALL, MARGIN_KNOWN, MARGIN_TOKENIZER, Calibration
from tui.context.estimate.ledger import Account, Preamble, Sums
from tui.context.estimate.measurements import Base

MARGIN_FIRST = 64.0  # tokens that a template or a gateway may add, until a call was measured
MARGIN_TOOLS = 0.2  # of the estimate of tools: how a provider writes them into the prompt is not published
NEGLIGIBLE = 0.05  # of a confirmed number: below, its doubt is not shown


TotalSource: TypeAlias = Literal["exact", "delta", "estimated"]


@dataclass(frozen=True, slots=True)
class ConversationEstimate:
    """The input tokens of the next request.

    `known_tokens` were measured, `estimated_tokens` not; together they are `tokens`. `upper_bound` is the 95th
    percentile of what the total may be, `margin` the fixed margin it scales. `last_output_sent_back` is the last reply
    less reasoning that does not return. `cleared` are the old tool results that the provider's own context editing
    will clear, no part of `tokens`. `counted` says that `last_input` is the provider's count of a request, not what it
    reported of a call.
    """

    tokens: int
    upper_bound: int
    known_tokens: int
    new_message_count: int
    source: TotalSource
    margin: float
    last_input: int | None = None
    last_output: int | None = None
    last_output_sent_back: int | None = None
    cleared: int = 0
    counted: bool = False

    @property
    def estimated_tokens(self) -> int:
        """The part that was not measured."""
        return self.tokens - self.known_tokens

    @property
    def uncleared(self) -> int:
        """The tokens if the provider cleared nothing: what calls teach by."""
        return self.tokens + self.cleared


class Situation(NamedTuple):
    """All inputs of one estimate at one moment, and the estimate."""

    estimate: ConversationEstimate
    base: Base
    account: Account
    preamble: Preamble
    calibration: Calibration


def learned(sums: Sums, calibration: Calibration, bias: float = 0.0) -> float:
    """The estimate of the unknown costs in `sums`, in tokens, with the learned factors; never negative."""
    return max(
        0.0,
        calibration.text(sums.content, sums.classes)
        + (sums.markup + bias) * calibration.markup_factor
        + sums.media * calibration.media_factor
        + sums.fixed,
    )


def predict(
    base: Base, account: Account, preamble: Preamble, calibration: Calibration, *, clears: bool
) -> ConversationEstimate:
    """The estimate for `account` after `preamble`. `clears`: the provider clears again what it cleared last."""
    fresh, count, measurement = account.since(base.covered), len(account.lines) - base.covered, base.measurement
    measured, adjust, counted = base.tokens, base.adjust, None
    if base.kind == "nothing":
        adjust, counted = calibration.hidden, preamble.counted
        if counted is None:
            adjust += calibration.preamble_tokens(preamble.digest, preamble.total)
        else:
            measured, adjust = sum(counted), adjust + (preamble.per_request if count else 0.0)
    guess = learned(fresh, calibration, base.bias if count else 0.0)
    tokens = max(0, round(measured + adjust + fresh.known + guess))
    # An estimated deduction lowers the known tokens; an estimated addition is not part of them.
    sure = min(tokens, max(0, round(measured + fresh.known + min(0.0, adjust))))
    confirmed = measurement is not None and measurement.confirmed
    all_counted = counted is not None and not account.lines and not adjust
    exact = all_counted or (confirmed and count == 0 and base.uncertain == 0)
    margin, bound = 0.0, tokens
    if not exact:
        least = estimate_margin(tokens - sure, fresh, account.model) + MARGIN_TOKENIZER * base.uncertain
        if base.kind == "nothing":
            least += MARGIN_FIRST + (_tools_margin(preamble, calibration) if counted is None else 0.0)
        margin = (MARGIN_CALL if confirmed else MARGIN_KNOWN * sure) + least
        spread = calibration.spread if confirmed else calibration.first_spread if measurement is None else 1.0
        if confirmed and calibration.errors.spread is not None:
            # The errors of earlier calls speak for text like theirs; what goes beyond it keeps its own margin.
            least = _unmeasured_margin(fresh, account.model, calibration) + MARGIN_TOKENIZER * base.uncertain
        bound += round(max(margin * spread, least))
    elif measurement is not None and measurement.doubt > NEGLIGIBLE * tokens:
        bound = ceil(tokens + measurement.doubt)
    last_input = last_output = sent_back = None
    cleared = 0
    if measurement is not None:
        cleared = min(measurement.cleared, tokens) if clears else 0
        last_input, last_output = measurement.input_tokens - cleared, measurement.output_tokens
        if last_output is not None and (base.reply is not None or base.kind == "trimmed"):
            returned = calibration.reasoning_share * base.reply.sums.reasoning if base.reply is not None else 0.0
            sent_back = min(max(0, round(last_output - measurement.reply_reasoning + returned)), last_output)
    return ConversationEstimate(
        tokens=tokens - cleared,
        upper_bound=bound - cleared,
        known_tokens=max(0, sure - cleared),
        new_message_count=count,
        source="exact" if exact else "estimated" if measurement is None else "delta",
        margin=margin,
        last_input=last_input,
        last_output=last_output,
        last_output_sent_back=sent_back,
        cleared=cleared,
        counted=all_counted or (measurement is not None and measurement.counted),
    )


def estimate_margin(guessed: float, sums: Sums, model: str) -> float:
    """By how much the estimate of unknown costs, `guessed`, may be off: text by class, the rest as any tokenizer's."""
    texts, margins = unpack(sums.classes), get_tokenizer(model).margins
    rest = max(0.0, guessed - sum(tokens for _, tokens in texts))
    return sum(margins[kind] * tokens for kind, tokens in texts) + MARGIN_TOKENIZER * rest


def _unmeasured_margin(fresh: Sums, model: str, calibration: Calibration) -> float:
    """The part of `estimate_margin` for text of a class beyond what was measured of it."""
    margins = get_tokenizer(model).margins
    texts = ((margins[kind], tokens - calibration.measured_tokens(kind)) for kind, tokens in unpack(fresh.classes))
    return sum(margin * beyond for margin, beyond in texts if beyond > 0)


def judged_by_learning(model: str, calibration: Calibration) -> bool:
    """Whether reports are to be judged by the learned factor: it is sure enough, and no vocabulary says it better."""
    return calibration.errors.calls >= ENOUGH_CALLS and get_tokenizer(model).how != "vocabulary"


def text_margin(sums: Sums, model: str, calibration: Calibration) -> float:
    """By how much the estimate of messages from their text alone may be off."""
    taught, margins = judged_by_learning(model, calibration), get_tokenizer(model).margins
    return sum(
        tokens * (MARGIN_KNOWN if taught and calibration.knows(kind) else margins[kind])
        for kind, tokens in unpack(sums.all_classes)
    )


def preamble_margin(preamble: Preamble, model: str, calibration: Calibration) -> float:
    """By how much the estimate of system prompt and tools may be off."""
    share = MARGIN_KNOWN if judged_by_learning(model, calibration) else get_tokenizer(model).margins[LATIN]
    return share * sum(preamble.sections) + _tools_margin(preamble, calibration)


def _tools_margin(preamble: Preamble, calibration: Calibration) -> float:
    """The share of `preamble_margin` that tools have; 0 where two calls agreed on what they cost."""
    is_known = calibration.knows_preamble(preamble.digest)
    return 0.0 if is_known else MARGIN_TOOLS * sum(preamble.tools)

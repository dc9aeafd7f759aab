"""What a finished call teaches: correction factors, errors, the cost of its preamble, its reply, single messages."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tui.context.counting.costs import Cost
from tui.context.counting.counting import MessageCount
from tui.context.counting.digests import message_digest
from tui.context.estimate.calibration import Calibration
from tui.context.estimate.evidence import ALLOWANCE, Verdict
from tui.context.estimate.prediction import Situation, judged_by_learning, learned
from tui.messages import Message, Reasoning, Usage

PREAMBLE_DOUBT, PREAMBLE_SLACK = 0.1, 20.0  # estimates are off by a tenth: a larger share can't be told apart
TYPICAL = 0.08  # of a report: by how much it may be off from what was learned to teach more
REFUSED_EXCESS = 0.1  # factor by which an estimate is raised after a refusal without a number
REASONING_ENOUGH = 64  # tokens of reasoning in a reply; with less, or less than twice the new text, nothing is learned
MEDIA_SHARE = 0.25  # share of the new content: with less, images and PDFs can't be told from the error of the text
UNSEEN_SHARE, UNSEEN_SLACK = 0.5, 32.0  # of a reply's estimate, tokens: above, more was billed than it shows
# Shares of a reply's counted text: a smaller reported output is that of a stream's beginning. In 1,900 recorded replies
# the text of a known vocabulary was never more than 1.25 times the output (JSON may be written otherwise than sent).
STALE_OUTPUT, STALE_EXACT = 0.25, 0.75


def learn_report(
    calibration: Calibration, situation: Situation, actual: int, verdict: Verdict, *, opening: bool, scored: bool
) -> Calibration:
    """Return `calibration` after a call that a server reports to have had `actual` tokens of input.

    `opening`: it is the first report of its session. Without `scored` the prediction had not the whole request to go
    by, as in a recording, and its error says nothing.
    """
    first = situation.base.match.measurement is None
    taught = calibration
    if verdict.believed:
        taught = _learn_believed(calibration, situation, actual, verdict)
    if first and (opening or verdict.kind == "hidden"):
        excess = actual - situation.estimate.tokens + calibration.hidden
        if verdict.kind == "hidden":
            taught = taught.learn_excess(excess, sure=verdict.agreed > 0)
        elif excess > 0 and verdict.kind == "doubted":
            taught = taught.learn_excess(excess)
        elif calibration.excesses and verdict.believed:
            taught = taught.learn_excess(max(0.0, excess))
    if scored and verdict.believed and not situation.base.measured:
        taught = taught.note(situation.estimate.tokens, actual, situation.estimate.margin, first=True)
    return taught


def _learn_believed(calibration: Calibration, situation: Situation, actual: int, verdict: Verdict) -> Calibration:
    """Return `calibration` after a believed report."""
    base, account, estimate = situation.base, situation.account, situation.estimate
    sure = verdict.confirmed and base.match.measurement is not None and base.match.measurement.confirmed
    # Where enough calls were measured, a server that departs from them may have become another, or wrong.
    typical = not judged_by_learning(account.model, calibration) or verdict.doubt <= TYPICAL * actual
    fresh = account.since(base.covered)
    if not base.measured:
        guess = learned(fresh, calibration)
        rest = actual - fresh.known - guess - calibration.hidden
        plausible = PREAMBLE_DOUBT * guess <= max(PREAMBLE_SLACK, PREAMBLE_DOUBT * rest)
        if base.match.measurement is None and plausible and rest <= situation.preamble.most + ALLOWANCE:
            preambles = calibration.preambles.learn(situation.preamble.digest, situation.preamble.total, rest)
            calibration = replace(calibration, preambles=preambles)
        return calibration
    if (unseen := _unseen_returned(situation, actual)) is not None:
        calibration = calibration.learn_unseen(unseen)
    elif base.uncertain == 0 and account.messages[base.covered :]:
        markup = fresh.markup + base.bias
        rest = actual - base.known - fresh.known - fresh.fixed
        text = calibration.text(fresh.content, fresh.classes) + markup * calibration.markup_factor
        share = _returned(situation, rest - text - fresh.media * calibration.media_factor)
        if share is not None:
            calibration = calibration.learn_returned(share)
        if share is not None and share < 0.5:
            pass  # the reasoning is missing, which teaches nothing about the text
        elif fresh.media > 0:
            if fresh.media > MEDIA_SHARE * (fresh.media + text):
                calibration = calibration.learn_media(fresh.media, rest - text)
        else:
            calibration = calibration.learn(fresh.content, markup, rest, fresh.classes, sure=sure and typical)
    elif situation.preamble.digest != base.match.measurement.preamble if base.match.measurement else False:
        calibration = _learn_preamble_change(calibration, situation, actual)
    return calibration.note(estimate.tokens, actual, estimate.margin) if sure else calibration


def learn_refusal(calibration: Calibration, situation: Situation, actual: int | None) -> Calibration:
    """`calibration` after a request was refused as too large; `actual` are its input tokens, if the server named them.

    Without a number the estimate is taken to be a tenth too low: repeated refusals approach the actual value, and
    measured calls outweigh them. If nothing was ever measured the corrections add up, since a refused factor is not
    tried again. A refusal of a request that was expected not to fit teaches nothing.
    """
    if actual is None and not calibration.calls and not calibration.preambles.costs:
        return calibration.learn_floor(REFUSED_EXCESS)
    fresh = situation.account.since(situation.base.covered)
    text = calibration.text(fresh.content, fresh.classes) + fresh.markup * calibration.markup_factor
    excess = text * REFUSED_EXCESS if actual is None else actual - situation.estimate.tokens
    if excess <= 0:
        return calibration
    return calibration.learn(fresh.content, fresh.markup, text + excess, fresh.classes)


def _returned(situation: Situation, missing: float) -> float | None:
    """The share of the last reply's reasoning that was in the input; None if there was too little to tell.

    Some servers take reasoning back and drop it, or don't count it. `missing` is the input beyond the estimate, in
    tokens, negative if it fell short.
    """
    base, measurement = situation.base, situation.base.match.measurement
    if measurement is None or not base.match.with_reply or not base.covered:
        return None
    sent = situation.account.line(base.covered - 1).sums.reasoning
    if sent < REASONING_ENOUGH or sent < 2 * abs(situation.estimate.tokens - base.known):
        return None
    return situation.calibration.reasoning_share + missing / sent


def _unseen_returned(situation: Situation, actual: int) -> float | None:
    """The share of the last reply's unexplained output that was in the input; None if it can't be told."""
    base, measurement = situation.base, situation.base.match.measurement
    if measurement is None or not base.match.with_reply or base.covered != base.match.covered:
        return None
    fresh = learned(situation.account.since(base.covered), situation.calibration)
    same = measurement.preamble == situation.preamble.digest
    if not same or measurement.unseen < max(REASONING_ENOUGH, fresh):
        return None
    return (situation.calibration.unseen_share or 0.0) + (actual - situation.estimate.tokens) / measurement.unseen


def _learn_preamble_change(calibration: Calibration, situation: Situation, actual: int) -> Calibration:
    """Learn from the difference of two measured calls between which system prompt or tools changed."""
    base, measurement = situation.base, situation.base.match.measurement
    if measurement is None or base.covered != base.match.covered:
        return calibration
    fresh = situation.account.since(base.covered)
    added = actual - base.known - fresh.known - learned(fresh, calibration, base.bias)
    old, new = (
        (measurement.preamble, measurement.preamble_tokens),
        (situation.preamble.digest, situation.preamble.total),
    )
    preambles, seen = calibration.preambles, calibration.preambles.costs.get(old[0])
    before = calibration.preamble_tokens(*old) if seen is None else seen.actual
    if seen is None and added < 0:
        before = calibration.preamble_tokens(*new) - added  # the smaller estimate has the smaller error
    preambles = preambles.learn_change(new[1] - old[1], added)
    if seen is None:
        preambles = preambles.learn(*old, before)  # both, so that the difference is measured
    return replace(calibration, preambles=preambles.learn(*new, before + added))


def derive_costs(situation: Situation, actual: int) -> dict[bytes, Cost]:
    """Costs of the messages between two measured calls, divided by estimate if there are several.

    Empty if there are none, or if the difference is not a cost because something else was corrected in between.
    """
    base, account, measurement = situation.base, situation.account, situation.base.match.measurement
    if measurement is None or not measurement.confirmed or base.uncertain or base.covered >= len(account.messages):
        return {}
    limit = account.since(base.covered).most
    fresh = list(account.lines(base.covered))
    open_ = [line for line in fresh if line.source in ("estimated", "derived")]
    rest = actual - base.known - sum(line.tokens for line in fresh if line.source not in ("estimated", "derived"))
    weight = sum(line.sums.plain for line in open_)
    if weight <= 0 or not 0 < rest <= limit:
        return {}
    costs: dict[bytes, Cost] = {}
    assigned, passed = 0, 0.0
    for line in open_:
        passed += line.sums.plain
        share = round(rest * passed / weight) - assigned
        assigned += share
        costs[message_digest(line.message).full] = Cost(share, min(share, round(line.sums.reasoning)), "derived")
    return costs


class ReplyCost(NamedTuple):
    """A reply in tokens.

    `output` is what was reported of it, None where the reply is not whole or the number can't be its own; `reasoning`
    the part of it that is reasoning, `reasoning_known` says that the provider named it. `unseen` is what no part of the
    reply explains: reasoning billed without a word. `difference` is that between the output and what the reply visibly
    holds.
    """

    output: int | None
    reasoning: int
    reasoning_known: bool
    unseen: int = 0
    difference: float = 0.0


def cost_of_reply(reply: Message, count: MessageCount, usage: Usage, factor: float, *, exact: bool) -> ReplyCost:
    """The cost of `reply`, estimated as `count`; `factor` is what the model's estimates are multiplied by.

    `exact`: they are counted in the model's own vocabulary.
    """
    # A factor below 1 may come from wrong reports: too little text would make an honest output unexplained.
    visible = (count.size - count.split.get("reasoning", 0.0)) * max(1.0, factor)
    output = _output(reply, count, usage, factor, exact=exact)
    reasoning, reported = _reasoning(reply, count, usage, visible, output)
    if output is None:
        return ReplyCost(None, reasoning, reported)
    rest = output - reasoning - visible
    unseen = round(rest) if rest > UNSEEN_SHARE * visible + UNSEEN_SLACK else 0
    return ReplyCost(output, reasoning, reported, unseen, abs(rest - unseen))


def _output(reply: Message, count: MessageCount, usage: Usage, factor: float, *, exact: bool) -> int | None:
    """The reported output. Some logs and servers leave the count of a stream's beginning: one token for pages."""
    output = usage.output_total
    if reply.status != "complete" or output is None or not reply.parts:
        return None
    reasoning = count.split.get("reasoning", 0.0)  # its length is estimated where it is encrypted
    least = STALE_OUTPUT * factor * (count.size - reasoning)
    if exact:
        least = max(least, STALE_EXACT * (count.content - (reasoning - count.fixed)))
    if not usage.reasoning:
        least += STALE_OUTPUT * factor * reasoning
    return None if output - (usage.reasoning or 0) < least - 4 else output


def _reasoning(
    reply: Message, count: MessageCount, usage: Usage, visible: float, output: int | None
) -> tuple[int, bool]:
    """Reasoning tokens of a reply, and whether the provider reported them; `visible` are those of the rest."""
    if usage.reasoning is not None:
        return (usage.reasoning if output is None else min(usage.reasoning, output)), True
    blocks = [part for part in reply.parts if isinstance(part, Reasoning)]
    readable = count.split.get("reasoning", 0.0)
    if not blocks or output is None:
        return round(readable), not blocks or count.fixed > 0
    if any(block.encrypted is not None or block.signature or block.redacted for block in blocks):
        # What is readable is a summary: the whole goes back in a form of the provider's, and costs what it was billed.
        readable = max(readable, output - visible)
    # Both are estimated, and together they can't be more than the output.
    share = min(1.0, output / (readable + visible)) if readable else 0.0
    return round(share * readable), count.fixed > 0

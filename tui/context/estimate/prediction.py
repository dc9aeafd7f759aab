"""The estimate of a request: what its base measured, what is new since, how far off it may be, what a call teaches.

`next input = last input + last output + new messages` (README.md, "The formula").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Literal, NamedTuple, TypeAlias

from tui.context.counting.counting import MessageCount, attachment_tokens, has_image_formula
from tui.context.counting.digests import TokenCost, message_digest
from tui.context.counting.tokenizers import get_tokenizer
from tui.context.counting.words import BLANKS, DIGITS, LATIN, PUNCTUATION, total, unpack
from tui.context.estimate.calibration import FACTOR_HIGH, Calibration
from tui.context.estimate.ledger import Account, Preamble, Sums
from tui.context.estimate.measurements import ALLOWANCE, Base, Measurement, Verdict, learned, learned_text
from tui.messages import Attachment, Message, Reasoning, ToolCall, Usage

ENOUGH_CALLS = 20  # from here on a learned factor may judge reports
# Margins: shares of tokens that were measured, counted by any tokenizer, or guessed; tokens that a call may add to a
# confirmed one beside its text (reminders, marks of roles).
MARGIN_KNOWN, MARGIN_TOKENIZER, MARGIN_HEURISTIC, MARGIN_CALL = 0.02, 0.05, 0.10, 20.0
SPELLED_OUT = 8.0  # times the estimate: Thai costs 6 times as much in SmolLM2's vocabulary as in o200k
MARGIN_FIRST = 64.0  # tokens that a template or a gateway may add, until a call was measured
MARGIN_TOOLS = 0.2  # of the estimate of tools: how a provider writes them into the prompt is not published
MARGIN_IMAGES = 3.0  # of the formula, where none is published: Pixtral has patches of 16 px, four for one of 32 px
MARGIN_PAGES = 0.3  # of a PDF's estimate: Anthropic names up to 3,000 tokens of text a page, 2,000 are assumed
NEGLIGIBLE, FEW = 0.05, 16.0  # share of a confirmed number, and tokens, up to which its doubt is not shown


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


def predict(
    base: Base, account: Account, preamble: Preamble, calibration: Calibration, *, clears: bool
) -> ConversationEstimate:
    """The estimate for `account` after `preamble`. `clears`: the provider clears again what it cleared last."""
    fresh, count, measurement = account.since(base.covered), len(account.lines) - base.covered, base.measurement
    measured, adjust, counted, margin_before = base.tokens, base.adjust, None, 0.0
    if measurement is None and not base.covered:  # no call measured system prompt and tools
        adjust, counted, margin_before = adjust + calibration.hidden, preamble.counted, MARGIN_FIRST
        if counted is None:
            adjust += calibration.preamble_tokens(preamble.digest, preamble.total)
            margin_before += _tools_margin(preamble, calibration)
        else:
            measured = sum(counted)
            adjust += preamble.per_request if count else 0.0
    tokens = max(0, round(measured + adjust + fresh.known + learned(fresh, calibration, base.bias if count else 0.0)))
    # An estimated deduction lowers the known tokens; an estimated addition is not part of them.
    known = min(tokens, max(0, round(measured + fresh.known + min(0.0, adjust))))
    all_counted = counted is not None and not account.lines and not adjust
    all_measured = measurement is not None and measurement.confirmed and count == 0 and base.uncertain == 0
    if all_counted or all_measured:
        doubt = 0.0 if measurement is None else measurement.doubt
        margin, bound = 0.0, ceil(tokens + doubt) if doubt > max(FEW, NEGLIGIBLE * tokens) else tokens
    else:
        margin_before += (tokens - known) * _doubted_share(base, account, preamble)
        margin, most_error = _margins(base, account, fresh, calibration, known, tokens - known, margin_before)
        bound = tokens + round(most_error)
        if (
            measurement is not None
            and not measurement.confirmed
            and get_tokenizer(account.model).method == "vocabulary"
        ):
            bound = max(bound, round(preamble.total + account.sums.plain))  # the report may be too small
    cleared = min(measurement.cleared, tokens) if measurement is not None and clears else 0
    return ConversationEstimate(
        tokens=tokens - cleared,
        upper_bound=bound - cleared,
        known_tokens=max(0, known - cleared),
        new_message_count=count,
        source="exact" if all_counted or all_measured else "estimated" if measurement is None else "delta",
        margin=margin,
        last_input=None if measurement is None else measurement.input_tokens - cleared,
        last_output=None if measurement is None else measurement.output_tokens,
        last_output_sent_back=_sent_back(base, calibration),
        cleared=cleared,
        counted=all_counted or (measurement is not None and measurement.counted),
    )


def _sent_back(base: Base, calibration: Calibration) -> int | None:
    """The tokens of the last reply's output that are part of the next input; None where that is unknown."""
    measurement, reply = base.measurement, base.reply
    if measurement is None or measurement.output_tokens is None or (reply is None and base.kind != "trimmed"):
        return None
    reasoning = 0.0 if reply is None else calibration.reasoning_share * reply.sums.reasoning
    sent_back = round(measurement.output_tokens - measurement.reply_reasoning + reasoning)
    return min(max(0, sent_back), measurement.output_tokens)


# -- how far off it may be ---------------------------------------------------------------------------------------------


def _margins(
    base: Base, account: Account, fresh: Sums, calibration: Calibration, known: int, estimated: int, before: float
) -> tuple[float, float]:
    """By how much an estimate may be off: the fixed margin, and the excess of the upper bound; in tokens.

    `known` tokens were measured, `estimated` ones were not, `before` is the margin of a preamble that no call measured,
    and of an unconfirmed report.
    """
    measurement, of_base = base.measurement, MARGIN_TOKENIZER * base.uncertain
    confirmed = measurement is not None and measurement.confirmed
    files = _files_margin(fresh, account, base.covered) if len(calibration.media) < 2 else 0.0
    least = estimate_margin(estimated, fresh, account.model) + of_base + before
    margin = (MARGIN_CALL if confirmed else MARGIN_KNOWN * known) + least
    spread = calibration.spread if confirmed else calibration.first_spread if measurement is None else 1.0
    if confirmed and calibration.errors.spread is not None:
        # The errors of earlier calls speak for text like theirs; what goes beyond it keeps its own margin.
        least = _unmeasured_margin(fresh, account.model, calibration) + of_base
    return margin + files, max(margin * spread, least) + files


def _doubted_share(base: Base, account: Account, preamble: Preamble) -> float:
    """The share by which new text may cost more than estimated, where an unconfirmed report was above its own text.

    One below it may be no count at all, such as a placeholder, and tells nothing of a vocabulary.
    """
    measurement, text = base.measurement, preamble.total + account.sums_before(base.covered).plain
    if measurement is None or measurement.confirmed or base.tokens + base.adjust <= text:
        return 0.0
    return min(1.0, measurement.doubt / max(1.0, measurement.input_tokens - measurement.doubt))


def estimate_margin(guessed: float, sums: Sums, model: str) -> float:
    """By how much the estimate of unknown costs, `guessed`, may be off: text by class, the rest as any tokenizer's."""
    texts, margins = unpack(sums.classes), get_tokenizer(model).margins
    rest = max(0.0, guessed - total(sums.classes))
    return sum(margins[kind] * tokens for kind, tokens in texts) + MARGIN_TOKENIZER * rest


def _files_margin(fresh: Sums, account: Account, covered: int) -> float:
    """By how much images and PDFs among the messages from `covered` on may cost more, until two calls agreed."""
    if not fresh.media or not has_image_formula(account.model):
        return MARGIN_IMAGES * fresh.media
    files = (part for line in account.lines[covered:] for part in line.message.parts if isinstance(part, Attachment))
    return MARGIN_PAGES * sum(attachment_tokens(file, account.model) for file in files if file.kind == "pdf")


def _unmeasured_margin(fresh: Sums, model: str, calibration: Calibration) -> float:
    """The part of `estimate_margin` for text of a class beyond what was measured of it."""
    margins = get_tokenizer(model).margins
    texts = ((margins[kind], tokens - calibration.measured_tokens(kind)) for kind, tokens in unpack(fresh.classes))
    return sum(margin * beyond for margin, beyond in texts if beyond > 0)


def spelled_out(classes: int) -> float:
    """How many tokens more text may cost in a small vocabulary, which spells other scripts in bytes, and numbers in
    digits."""
    times = {LATIN: 1.0, PUNCTUATION: 1.0, BLANKS: 1.0, DIGITS: 3.0}
    return sum((times.get(kind, SPELLED_OUT) - 1) * tokens for kind, tokens in unpack(classes))


def judged_by_learning(model: str, calibration: Calibration) -> bool:
    """Whether reports are to be judged by the learned factor: it is sure enough, and no vocabulary says it better."""
    return calibration.errors.calls >= ENOUGH_CALLS and get_tokenizer(model).method != "vocabulary"


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


# -- what a finished call teaches --------------------------------------------------------------------------------------

PREAMBLE_DOUBT, PREAMBLE_SLACK = 0.1, 20.0  # of it, tokens: a smaller error of the messages' estimate tells it apart
TYPICAL = 0.08  # of a report: by how much it may be off from what was learned to teach more
REFUSED_EXCESS = 0.1  # factor by which an estimate is raised after a refusal without a number
REASONING_ENOUGH = 64  # tokens of reasoning in a reply; with less, or less than twice the new text, nothing is learned
MEDIA_SHARE = 0.25  # share of the new content: with less, images and PDFs can't be told from the error of the text
UNSEEN_SHARE, UNSEEN_SLACK = 0.5, 32.0  # of a reply's estimate, tokens: above, more was billed than it shows
# Shares of a reply's counted text: a smaller reported output is that of a stream's beginning. In 1,900 recorded replies
# the text of a known vocabulary was never more than 1.25 times the output (JSON may be written otherwise than sent).
STALE_OUTPUT, STALE_EXACT, STALE_SLACK = 0.25, 0.75, 4  # the last in tokens
# Share of escaped arguments: "\\u6e2f" is four tokens, or one if a gateway (LiteLLM) escaped what the model wrote.
ESCAPED_SHARE = 0.1


def learn_report(situation: Situation, actual: int, verdict: Verdict, *, opening: bool, scored: bool) -> Calibration:
    """Return what is learned of the model after a call that a server reports to have had `actual` tokens of input.

    `opening`: it is the first report of its session. Without `scored` the error of the prediction is ignored: it was
    made without parts of the request, as for a recording.
    """
    estimate, base, account, preamble, calibration = situation
    predicted, taught = estimate.uncleared, calibration
    guess = learned(account.sums, calibration)
    rest = actual - account.sums.known - guess - calibration.hidden
    error = min(PREAMBLE_DOUBT * guess, text_margin(account.sums, account.model, calibration))
    plausible = error <= max(PREAMBLE_SLACK, PREAMBLE_DOUBT * rest)
    counted = base.measurement is not None and base.measurement.counted and base.covered == len(account.lines)
    if verdict.believed and base.measurement is not None:
        taught = _learn_growth(situation, base.measurement, actual, verdict)
        # A server that reports too little may do so for a whole conversation: fewer tokens need another one to agree.
        if plausible and verdict.agreed and not counted and rest >= preamble.total:
            taught = taught.confirm_preamble(preamble.digest, rest)
    elif verdict.believed and scored:
        taught = taught.note(predicted, actual, estimate.margin, first=True)
    # The server's count of the same request is no second call.
    if verdict.believed and plausible and (counted or base.kind == "nothing") and rest <= preamble.most + ALLOWANCE:
        taught = taught.learn_preamble(preamble.digest, preamble.total, rest)
    if base.kind == "nothing" and (opening or verdict.kind == "hidden"):
        excess = actual - predicted + calibration.hidden
        if verdict.kind == "hidden":
            taught = taught.learn_excess(excess, sure=True)
        elif excess > 0 and verdict.kind == "doubted":
            taught = taught.learn_excess(excess)
        elif calibration.excesses and verdict.believed:
            taught = taught.learn_excess(max(0.0, excess))
    return taught


def _learn_growth(situation: Situation, measurement: Measurement, actual: int, verdict: Verdict) -> Calibration:
    """What the difference of a believed report to the measurement before it teaches."""
    estimate, base, account, preamble, calibration = situation
    fresh, same_preamble = account.since(base.covered), measurement.preamble == preamble.digest
    sure, unseen = verdict.confirmed and measurement.confirmed, measurement.unseen
    taught = calibration
    if base.reply is not None and same_preamble and unseen >= max(REASONING_ENOUGH, learned(fresh, calibration)):
        share = (calibration.unseen_share or 0.0) + (actual - estimate.uncleared) / unseen
        taught = calibration.learn_unseen(share)
    elif base.uncertain == 0 and base.covered < len(account.lines):
        # Where enough calls were measured, a server that departs from them may have become another, or wrong.
        typical = not judged_by_learning(account.model, calibration) or verdict.doubt <= TYPICAL * actual
        taught = _learn_messages(situation, fresh, actual, sure=sure and typical)
    elif not same_preamble and base.kind == "prefix":
        added = actual - base.tokens - fresh.known - learned(fresh, calibration, base.bias)
        taught = _learn_preamble_change(calibration, measurement, preamble, added)
    return taught.note(estimate.uncleared, actual, estimate.margin) if sure else taught


def _learn_messages(situation: Situation, fresh: Sums, actual: int, *, sure: bool) -> Calibration:
    """What the cost of new messages teaches: of the reasoning sent back, and of files or of text, whichever it is."""
    base, calibration = situation.base, situation.calibration
    thought = 0.0 if base.reply is None else base.reply.sums.reasoning
    text, rest = learned_text(fresh, calibration, base.bias), actual - base.tokens - fresh.known - fresh.fixed
    taught = calibration
    if thought >= max(REASONING_ENOUGH, 2 * abs(situation.estimate.uncleared - base.tokens)):
        # Some servers take reasoning back and drop it, or don't count it.
        missing = rest - text - fresh.media * calibration.media_factor
        returned = calibration.reasoning_share + missing / thought
        taught = calibration.learn_returned(returned)
        if returned < 0.5:  # the reasoning is missing, which teaches nothing about the text
            return taught
    if fresh.media > MEDIA_SHARE * (fresh.media + text):
        return taught.learn_media(fresh.media, rest - text)
    if fresh.media:
        return taught
    return taught.learn(fresh.content, fresh.markup + base.bias, rest, fresh.classes, sure=sure)


def _learn_preamble_change(
    calibration: Calibration, measurement: Measurement, preamble: Preamble, added: float
) -> Calibration:
    """Return `calibration` after system prompt or tools changed since `measurement`, which added so many tokens."""
    old, new = measurement.preamble, (preamble.digest, preamble.total)
    if (cost := calibration.preambles.get(old)) is not None:
        return calibration.learn_preamble(*new, cost.actual + added)
    # The smaller estimate has the smaller error. Both are learned, so that the difference is measured.
    before = calibration.preamble_tokens(old, measurement.preamble_tokens)
    if added < 0:
        before = calibration.preamble_tokens(*new) - added
    return calibration.learn_preamble(old, measurement.preamble_tokens, before).learn_preamble(*new, before + added)


def learn_refusal(situation: Situation, actual: int | None) -> Calibration:
    """Return what is learned after a request was refused as too large; `actual` are its tokens, if the server said.

    Without a number the estimate is taken to be a tenth too low: repeated refusals approach the actual value, and
    measured calls outweigh them. If nothing was ever measured the corrections add up, since a refused factor is not
    tried again. A refusal of a request that was expected not to fit teaches nothing.
    """
    estimate, base, account, _, calibration = situation
    if actual is None and not calibration.errors.calls and not calibration.preambles:
        return replace(calibration, floor=min(FACTOR_HIGH, calibration.factor * (1 + REFUSED_EXCESS)))
    fresh = account.since(base.covered)
    text = learned_text(fresh, calibration, 0.0)
    excess = text * REFUSED_EXCESS if actual is None else actual - estimate.tokens
    return calibration.learn(fresh.content, fresh.markup, text + excess, fresh.classes) if excess > 0 else calibration


def derive_costs(situation: Situation, actual: int) -> dict[bytes, TokenCost]:
    """Costs of the messages between two measured calls, divided by estimate if there are several.

    Empty if there are none, or if the difference is not a cost because something else was corrected in between.
    """
    base, account, measurement = situation.base, situation.account, situation.base.measurement
    if measurement is None or not measurement.confirmed or base.uncertain or base.covered >= len(account.lines):
        return {}
    limit, rest, weight, lines = account.since(base.covered).most, actual - base.tokens, 0.0, []
    for line in account.lines[base.covered :]:
        if line.source in ("estimated", "derived"):
            lines.append(line)
            weight += line.sums.plain
        else:
            rest -= line.tokens
    if weight <= 0 or not 0 < rest <= limit:
        return {}
    costs: dict[bytes, TokenCost] = {}
    assigned, passed = 0, 0.0
    for line in lines:
        passed += line.sums.plain
        share = round(rest * passed / weight) - assigned
        assigned += share
        costs[message_digest(line.message).full] = TokenCost(share, min(share, round(line.sums.reasoning)), "derived")
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
    thought = count.split.get("reasoning", 0.0)  # its length is estimated where it is encrypted
    # A factor below 1 may come from wrong reports: too little text would make an honest output unexplained.
    visible = (count.size - thought) * max(1.0, factor)
    output = usage.output_total if reply.status == "complete" and reply.parts else None
    if output is not None and output - (usage.reasoning or 0) < _least_output(reply, count, usage, factor, exact=exact):
        output = None
    blocks = [part for part in reply.parts if isinstance(part, Reasoning)]
    reported = usage.reasoning is not None or not blocks or count.fixed > 0
    if usage.reasoning is not None:
        reasoning = usage.reasoning if output is None else min(usage.reasoning, output)
    elif not blocks or output is None:
        reasoning = round(thought)
    else:
        if any(block.encrypted is not None or block.signature or block.redacted for block in blocks):
            # What is readable is a summary: the whole goes back in a form of the provider's, and costs what was billed.
            thought = max(thought, output - visible)
        # Both are estimated, and together they can't be more than the output.
        reasoning = round(thought * min(1.0, output / (thought + visible))) if thought else 0
    if output is None:
        return ReplyCost(None, reasoning, reported)
    rest = output - reasoning - visible
    likely = UNSEEN_SHARE * visible + UNSEEN_SLACK + (0.0 if exact else spelled_out(count.classes))
    unseen = round(rest) if rest > likely else 0
    return ReplyCost(output, reasoning, reported, unseen, abs(rest - unseen))


def _least_output(reply: Message, count: MessageCount, usage: Usage, factor: float, *, exact: bool) -> float:
    """The least output, without the reasoning that `usage` names, that can be that of the whole `reply`.

    Some logs and servers leave the count of a stream's beginning: one token for pages.
    """
    thought = count.split.get("reasoning", 0.0)
    escaped = any(isinstance(part, ToolCall) and "\\u" in part.arguments for part in reply.parts)
    excess = (1 - ESCAPED_SHARE) * count.split.get("tool_calls", 0.0) if escaped else 0.0
    least = STALE_OUTPUT * factor * (count.size - thought - excess)
    if exact:
        least = max(least, STALE_EXACT * (count.content - (thought - count.fixed) - excess))
    if not usage.reasoning:
        least += STALE_OUTPUT * factor * thought
    return least - STALE_SLACK

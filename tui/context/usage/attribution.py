"""Which rows of `/context` the total belongs to: what is measured stays, estimates take what is left.

README.md, "Rows".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tui.context.counting.classes import unpack
from tui.context.counting.costs import CountSource
from tui.context.counting.digests import preamble_digest
from tui.context.counting.tokenizers import margins_of
from tui.context.estimate.calibration import MARGIN_HEURISTIC, MARGIN_TOKENIZER, Calibration
from tui.context.estimate.fit import FACTOR_HIGH, FACTOR_LOW
from tui.context.estimate.ledger import NO_TOKENS, RowTokens
from tui.context.estimate.preamble import Preamble
from tui.context.estimate.preamble_costs import PreambleCost
from tui.context.estimate.prediction import Situation, learned
from tui.messages import Request
from tui.text.names import MESSAGE_ROWS, PREAMBLE_ROWS, SECTION_ROWS

UNATTRIBUTED = 0.01  # share of the total: a smaller remainder is rounding and goes to the largest row
TEMPLATE = 64  # tokens that a chat template may add of its own (a date, a default system prompt): no reason to warn
LEAST_PREAMBLE = 0.25  # of its estimate: some templates leave most of a schema out
LEARNED_RANGE = 0.1  # calls that agree on a preamble are within 5 % of each other
COUNTED_RANGE = 0.02  # between a provider's count and its usage


class Attribution(NamedTuple):
    """Tokens and their source by row key, larger than 0. They add up to the total but for rounding.

    `factor` is what estimates of messages are multiplied by for their rows; `warning` is for a person, "" where
    measurements and total agree.
    """

    tokens: Mapping[str, float]
    sources: Mapping[str, CountSource]
    factor: float
    warning: str = ""


class Flexible(NamedTuple):
    """Tokens that are not certain: their best figure, how uncertain it is, and the range they can be in."""

    tokens: float
    doubt: float
    least: float
    most: float

    def shifted(self, missing: float) -> float:
        """`missing` more (or fewer, if negative), as far as the range goes."""
        return min(max(self.tokens + missing, self.least), self.most)


def attribute(request: Request, situation: Situation) -> Attribution:
    """How the total of `situation` is attributed."""
    total, account, calibration = situation.estimate.tokens, situation.account, situation.calibration
    rows = {key: account.rows.get(key, NO_TOKENS) for key in MESSAGE_ROWS}
    split = split_preamble(request, situation.preamble, calibration)
    tokens = {key: known for key, (known, _, _) in rows.items()}
    tokens["tool_results"] = max(0.0, tokens["tool_results"] - situation.estimate.cleared)
    tokens["hidden"] = min(float(total), calibration.hidden + split.hidden)

    guess = learned(account.sums[len(account.messages)], calibration)
    texts = Flexible(guess, _doubt(situation, guess), FACTOR_LOW * guess, FACTOR_HIGH * guess)
    missing = total - sum(tokens.values()) - texts.tokens - split.flexible.tokens
    texts_tokens, preamble_tokens, rest = _share(missing, texts, split.flexible)
    if rest > UNATTRIBUTED * total:  # more than all estimates could be off by: something else is in the total
        texts_tokens, preamble_tokens, rest = texts.tokens, split.flexible.tokens, missing

    factor = _ratio(texts_tokens, sum(estimated for _, estimated, _ in rows.values()))
    for key, (_, estimated, _) in rows.items():
        tokens[key] += factor * estimated
    for key, weight in split.weights.items():
        tokens[key] = weight * _ratio(preamble_tokens, split.flexible.tokens)
    measured = situation.base.measured
    sources: dict[str, CountSource] = {**split.sources, "hidden": "derived", **_message_sources(rows)}
    if measured:
        sources |= _differences(rows, split, guess)
    return _with_rest(Attribution(tokens, sources, factor), total, rest, measured=measured)


def _share(missing: float, texts: Flexible, preamble: Flexible) -> tuple[float, float, float]:
    """The tokens of both with `missing` shared out by their doubt within their ranges, and what neither can take."""
    doubt = texts.doubt + preamble.doubt
    new_texts = texts.shifted(missing * texts.doubt / doubt if doubt else 0.0)
    new_preamble = preamble.shifted(missing - (new_texts - texts.tokens))
    new_texts = texts.shifted(missing - (new_preamble - preamble.tokens))
    return new_texts, new_preamble, missing - (new_texts - texts.tokens) - (new_preamble - preamble.tokens)


def _message_sources(rows: RowTokens) -> dict[str, CountSource]:
    """A row is as sure as the least sure of its messages."""
    return {
        key: "estimated" if estimated > 0 else "derived" if derived > 0 else "measured"
        for key, (_, estimated, derived) in rows.items()
    }


def _differences(rows: RowTokens, split: PreambleSplit, guess: float) -> dict[str, CountSource]:
    """The only estimated row, which is then the difference of a measured total and the certain rows; or None."""
    preamble = [key for key, weight in split.weights.items() if weight > 0]
    guessed = [key for key, (_, estimated, _) in rows.items() if estimated > 0]
    if len(guessed) == 1 and not split.flexible.doubt:
        return {guessed[0]: "derived"}
    certain = guess <= MARGIN_TOKENIZER * split.flexible.tokens
    if len(preamble) == 1 and certain and split.sources[preamble[0]] == "estimated":
        return {preamble[0]: "derived"}
    return {}


def _with_rest(attribution: Attribution, total: int, rest: float, *, measured: bool) -> Attribution:
    """`attribution` with `rest`, which is in none of its rows (negative: they come to more than there is)."""
    tokens, sources, warning = dict(attribution.tokens), dict(attribution.sources), ""
    largest = max(tokens, key=lambda key: tokens[key])
    if abs(rest) <= UNATTRIBUTED * total and tokens[largest] + rest >= 0:
        tokens[largest] += rest
    elif rest > 0:
        tokens["unattributed"] = rest
        sources["unattributed"] = "derived" if measured else "estimated"
        if measured and rest > TEMPLATE:
            warning = f"{round(rest):,} tokens belong to no known message, prompt or tool"
    else:
        sum_of_rows = sum(tokens.values())
        warning = (
            f"the rows come to {round(sum_of_rows):,} tokens, the whole request has {total:,}: they were scaled down"
        )
        sources = dict.fromkeys(sources, "estimated")
    present = {key: value for key, value in tokens.items() if value > 0}
    return Attribution(present, sources, attribution.factor, warning)


def _ratio(new: float, old: float) -> float:
    return new / old if old > 0 else 0.0


def _doubt(situation: Situation, guess: float) -> float:
    """How uncertain the messages' estimates are, in tokens: texts by class, the rest as any tokenizer's count."""
    account = situation.account
    texts = unpack(account.sums[len(account.messages)].classes)
    margins = margins_of(account.ledger.model)
    content = sum(tokens for _, tokens in texts)
    return sum(margins[kind] * tokens for kind, tokens in texts) + MARGIN_TOKENIZER * max(0.0, guess - content)


class PreambleSplit(NamedTuple):
    """Tokens and their source by row key (one of `PREAMBLE_ROWS`), and how certain their sum is.

    `hidden` is what calls had beyond these, and what they agree on: a prompt that the server adds.
    """

    weights: Mapping[str, float]
    sources: Mapping[str, CountSource]
    flexible: Flexible
    hidden: float = 0.0


def split_preamble(request: Request, preamble: Preamble, calibration: Calibration) -> PreambleSplit:
    """The rows before the messages.

    The provider's own counts come first. Else calls of this model with this preamble measure its total, calls with the
    same system prompt and no tools measure that part; the tools are the difference. What calls can't tell apart remains
    an estimate, and so does what is unlikely as long as one call alone says so. If two say so, the server adds it.
    """
    if preamble.counted is not None:
        return _split(preamble.counted._asdict(), ("counted", "counted"), doubt=0.0, within=COUNTED_RANGE)
    weights = _estimated_weights(request, preamble)
    whole, words = sum(weights.values()), sum(weights[key] for key in SECTION_ROWS)
    costs = calibration.preambles.costs
    measured = costs.get(preamble.digest.hex())
    added = 0.0
    if measured is not None and measured.agreed and measured.actual > FACTOR_HIGH * whole + TEMPLATE:
        added = measured.actual - whole
    hidden = max(0.0, added - calibration.hidden)
    # What a request without tools has before its messages.
    alone = costs.get(preamble_digest(request.system, ()).hex())
    if not words:
        alone = PreambleCost(preamble.per_request, preamble.per_request + added, agreed=True)
    difference = 0.0 if measured is None or alone is None else measured.actual - alone.actual
    likely = LEAST_PREAMBLE * weights["tools"] <= difference <= FACTOR_HIGH * weights["tools"]
    if measured is None or alone is None or difference <= 0 or not likely:
        flexible = Flexible(whole, MARGIN_HEURISTIC * whole, LEAST_PREAMBLE * whole, FACTOR_HIGH * whole)
        return PreambleSplit(weights, dict.fromkeys(weights, "estimated"), flexible, hidden)
    weights["tools"] = difference
    for key in SECTION_ROWS:
        weights[key] *= _ratio(max(0.0, alone.actual - added), words)
    one = sum(weights[key] > 0 for key in SECTION_ROWS) <= 1
    agreed = measured.agreed and alone.agreed
    doubt, within = (MARGIN_TOKENIZER, LEARNED_RANGE) if agreed else (MARGIN_HEURISTIC, FACTOR_LOW)
    split = _split(weights, ("derived" if one else "estimated", "derived"), doubt=doubt, within=within)
    return split._replace(hidden=hidden)


def _estimated_weights(request: Request, preamble: Preamble) -> dict[str, float]:
    """The estimates of sections and tools by row key."""
    weights: dict[str, float] = dict.fromkeys(PREAMBLE_ROWS, 0.0)
    for section, tokens in zip(request.system, preamble.sections, strict=True):
        weights[section.kind] += tokens
    weights["system"] += preamble.per_request if weights["system"] else 0.0
    weights["tools"] += sum(preamble.tools) + preamble.fixed
    return weights


def _split(
    weights: Mapping[str, float], sources: tuple[CountSource, CountSource], *, doubt: float, within: float
) -> PreambleSplit:
    """The split into `weights`; `sources` are those of the prompts and of the tools, `doubt` and `within` shares."""
    whole = sum(weights.values())
    flexible = Flexible(whole, doubt * whole, (1 - within) * whole, (1 + within) * whole)
    prompts, tools = sources
    return PreambleSplit(weights, {**dict.fromkeys(SECTION_ROWS, prompts), "tools": tools}, flexible)

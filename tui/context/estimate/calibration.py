"""What is learned from a model's measured calls: correction factors for estimates, and the errors that remain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil
from operator import mul
from statistics import median, quantiles
from threading import Lock
from typing import Any, NamedTuple

from tui.context.counting.tokenizers import get_tokenizer
from tui.context.counting.words import CLASSES, LATIN, total, unpack
from tui.text.numbers import plural

KEPT_ERRORS = 128  # the latest: errors shrink while a session goes on
BOUND_CALLS = 8  # from here on the upper bound is based on the model's own errors
COVERAGE = 0.95  # share of calls that the upper bound covers
EARLY_SPREAD = 6.0  # of the fixed margin, until then: 95 % of 700 recorded early calls were within it
SURE_CALLS = 19  # with fewer even the largest error covers less than `COVERAGE` of the next calls ...
MIN_SPREAD = 0.2  # ... so the bound is no narrower than this: 4 tokens, and a hundredth of new text
MEDIA_LOW, MEDIA_HIGH = 0.1, 500.0  # some gateways bill an image as base64 text: up to 83 times the formula
KEPT = 64  # observations kept for each model
ENOUGH_TOKENS = 200  # of a class: from here on it counts as measured
KEPT_PREAMBLES = 16
AGREE_SHARE, AGREE_SLACK = 0.05, 20.0  # largest difference between two observations that agree: share, tokens
FACTOR_LOW, FACTOR_HIGH = 0.5, 2.5  # learned factors stay within these
ROUNDS = 25  # of the fit, at most
CONVERGED = 1e-7  # of a factor: smaller steps change no number
EXPLAINED, EXPLAINED_SLACK = 0.75, 8.0  # share of the observations that one vocabulary explains; tokens

# Standard deviations of the prior around 1, and of one observation, for the fit below.
SIGMA_FACTOR, SIGMA_MARKUP = 0.12, 0.25
SIGMA_VOCABULARY = 0.03  # of the factor, where the model's own vocabulary counts ...
PRIOR_SCALE = 2.0  # ... and how many of these it has to be off before the prior gives way
SIGMA_TOKENS, SIGMA_CONTENT = 3.0, 0.04


class Observation(NamedTuple):
    """The estimate of new messages, in tokens before learning, and their actual cost.

    `content` is text as the tokenizer has it, by class in `classes`; `markup` what roles and wrappers cost. `sure`: the
    report was confirmed (evidence.py).
    """

    content: float
    markup: float
    actual: float
    classes: tuple[tuple[int, float], ...] = ()
    sure: bool = True


class Fit(NamedTuple):
    """Factors of content by class and of markup, and how much there was of each class, in estimated tokens."""

    factors: Mapping[int, float]
    markup: float
    tokens: Mapping[int, float]

    def explains(self, seen: Observation) -> bool:
        """Whether `seen`, one of those it was fitted to, cost about what these factors say."""
        expected = sum(self.factors[kind] * tokens for kind, tokens in seen.classes) + self.markup * seen.markup
        return abs(seen.actual - expected) <= AGREE_SHARE * seen.actual + EXPLAINED_SLACK


def fit(observations: Sequence[Observation], sigma: float = SIGMA_FACTOR) -> Fit:
    """The factors of content by class, and of markup, that explain `observations` best, all within 0.5 to 2.5.

    Robust least squares (Huber weights) with a prior at 1 for each, so that few or outlying observations move little,
    and one class none of the others. Minimises, by coordinates,

        sum w (actual - sum f_c content_c - g markup)^2 / s^2
        + sum ((f_c - 1) / sigma)^2 + ((g - 1) / SIGMA_MARKUP)^2
    """
    columns: dict[int, tuple[list[int], list[float]]] = {}  # class: observations and their tokens; markup is class -1
    for index, seen in enumerate(observations):
        for kind, tokens in (*seen.classes, (-1, seen.markup)):
            indices, sizes = columns.setdefault(kind, ([], []))
            indices.append(index)
            sizes.append(tokens)
    factors = dict.fromkeys(columns, 1.0)
    errors = [seen.actual - sum(tokens for _, tokens in seen.classes) - seen.markup for seen in observations]
    spreads = [SIGMA_TOKENS + SIGMA_CONTENT * seen.content for seen in observations]
    limits, largest_weights = [1.5 * spread for spread in spreads], [spread**-2 for spread in spreads]
    for _ in range(ROUNDS):
        weights = [
            most if -limit <= error <= limit else most * limit / abs(error)
            for error, limit, most in zip(errors, limits, largest_weights, strict=True)
        ]
        largest_step = 0.0
        for kind, (indices, sizes) in columns.items():
            before = factors[kind]
            prior = 1 / SIGMA_MARKUP**2 if kind < 0 else _prior_weight(before, sigma)
            weighted = list(map(mul, map(weights.__getitem__, indices), sizes))
            pull = prior * (1 - before) + sum(map(mul, weighted, map(errors.__getitem__, indices)))
            step = pull / (prior + sum(map(mul, weighted, sizes)))
            factors[kind] = min(max(before + step, FACTOR_LOW), FACTOR_HIGH)
            step = factors[kind] - before
            largest_step = max(largest_step, abs(step))
            for index, tokens in zip(indices, sizes, strict=True):
                errors[index] -= step * tokens
        if largest_step < CONVERGED:
            break
    markup = factors.pop(-1, 1.0)
    return Fit(factors, markup, {kind: sum(columns[kind][1]) for kind in factors})


def _prior_weight(factor: float, sigma: float) -> float:
    """How much the prior weighs against observations: the less, the further they have moved `factor` from 1 (Cauchy).

    So a vocabulary is trusted to be the model's own until calls show that it isn't.
    """
    narrow = 1 / (sigma**2 * (1 + ((factor - 1) / (PRIOR_SCALE * sigma)) ** 2))
    return max(narrow, 1 / SIGMA_FACTOR**2)


@dataclass(frozen=True)
class Errors:
    """The errors of one kind of prediction, latest last.

    `scaled` are (actual - predicted) in units of the fixed margin, `relative` shares of the actual number. `calls` is
    how many there were in all.
    """

    scaled: tuple[float, ...] = ()
    relative: tuple[float, ...] = ()
    calls: int = 0

    def add(self, predicted: float, actual: float, margin: float) -> Errors:
        """Return this with one more error of a total, in tokens; `margin` is the fixed one it had."""
        if margin <= 0 or actual <= 0:
            return self
        error = actual - predicted
        return Errors(
            (*self.scaled, error / margin)[-KEPT_ERRORS:],
            (*self.relative, error / actual)[-KEPT_ERRORS:],
            self.calls + 1,
        )

    @cached_property
    def spread(self) -> float | None:
        """What the fixed margin is multiplied by for the upper bound; None before `BOUND_CALLS` calls.

        It is the order statistic of conformal prediction: the next error does not exceed it with a chance of
        `COVERAGE`, whatever the distribution.
        """
        calls = len(self.scaled)
        if calls < BOUND_CALLS:
            return None
        covering = sorted(self.scaled)[min(calls, ceil(COVERAGE * (calls + 1))) - 1]
        return max(MIN_SPREAD, covering) if calls < SURE_CALLS else covering

    @cached_property
    def p95_percent(self) -> float | None:
        """95th percentile of the absolute error in percent; None before the second call."""
        if len(self.relative) < 2:
            return None
        return 100 * quantiles(map(abs, self.relative), n=20, method="inclusive")[-1]


class PreambleCost(NamedTuple):
    """Estimated and actual tokens of a system prompt with its tools; `agreed`: confirmed by a second call."""

    estimated: float
    actual: float
    agreed: bool = False


def agree(one: float, other: float) -> bool:
    """Whether two observations of the same tokens agree."""
    return abs(one - other) <= AGREE_SHARE * max(one, other) + AGREE_SLACK


@dataclass(frozen=True)
class Calibration:
    """The learned state of one (provider, model).

    `errors` are those of predictions based on a measured call, `first_errors` those of the others. `media` are ratios
    of the tokens of images and PDFs to the formula's. `returned` and `unseen` are shares that were in the next input:
    of reasoning that was sent back, and of output that no part of the reply explains. `excesses` are the tokens by
    which first calls of conversations exceeded their text: a prompt that the server adds. `preambles` are costs of
    system prompt and tools together, by digest. `floor` is the least factor that refusals leave possible, for servers
    that never reported usage; 0 for none. `sigma` is how far factors of this model are expected to be from 1, set by
    `CalibrationBook`. The latest of everything comes last.
    """

    observations: tuple[Observation, ...] = ()
    errors: Errors = field(default_factory=Errors)
    first_errors: Errors = field(default_factory=Errors)
    media: tuple[float, ...] = ()
    returned: tuple[float, ...] = ()
    preambles: dict[bytes, PreambleCost] = field(default_factory=dict)
    floor: float = 0.0
    excesses: tuple[float, ...] = ()
    unseen: tuple[float, ...] = ()
    sigma: float = field(default=SIGMA_FACTOR, compare=False)

    @cached_property
    def _fit(self) -> Fit:
        """Fitted to all observations if that explains most of the sure ones and most of the others, else to the sure.

        A vocabulary may differ most in what was added last (digits), where a wrong server differs in all.
        """
        sure = [seen for seen in self.observations if seen.sure]
        unsure = [seen for seen in self.observations if not seen.sure]
        if len(unsure) >= 2:
            fitted = fit(self.observations, self.sigma)
            if all(sum(map(fitted.explains, some)) >= EXPLAINED * len(some) for some in (sure, unsure)):
                return fitted
        return fit(sure, self.sigma)

    def class_factor(self, kind: int) -> float:
        """What estimated content of one class of text is multiplied by."""
        return max(self._fit.factors.get(kind, 1.0), self.floor)

    @cached_property
    def factor(self) -> float:
        """What estimated content is multiplied by, over all observations."""
        tokens = self._fit.tokens
        whole = sum(tokens.values())
        if whole <= 0:
            return max(1.0, self.floor)
        return sum(self.class_factor(kind) * tokens[kind] for kind in tokens) / whole

    def measured_tokens(self, kind: int) -> float:
        """How much of a class of text was measured for this model, in estimated tokens."""
        return self._fit.tokens.get(kind, 0.0)

    def knows(self, kind: int) -> bool:
        """Whether a class of text was measured for this model."""
        return self.measured_tokens(kind) >= ENOUGH_TOKENS

    def text(self, content: float, classes: int) -> float:
        """Tokens of `content` (`classes` packed) with the learned factors. Unclassified content counts as Latin."""
        by_class = unpack(classes)
        rest = content - total(classes)
        learned = sum(self.class_factor(kind) * tokens for kind, tokens in by_class)
        return learned + self.class_factor(LATIN) * rest

    @property
    def markup_factor(self) -> float:
        """What estimated markup is multiplied by."""
        return self._fit.markup

    @cached_property
    def media_factor(self) -> float:
        """What the formulas' tokens of images and PDFs are multiplied by."""
        if not self.media:
            return 1.0
        low, high = (FACTOR_LOW, FACTOR_HIGH) if len(self.media) == 1 else (MEDIA_LOW, MEDIA_HIGH)
        return min(max(median(self.media), low), high)

    @property
    def reasoning_share(self) -> float:
        """1 where reasoning sent back is part of the input, 0 for servers that drop it or do not count it."""
        return 0.0 if len(self.returned) >= 3 and median(self.returned) < 0.25 else 1.0

    @property
    def unseen_share(self) -> float | None:
        """The share of unexplained output that is sent back with it; None before two observations."""
        if len(self.unseen) < 2:
            return None
        share = median(self.unseen)
        return 0.0 if share < 0.1 else 1.0 if share > 0.9 else share

    def learn_unseen(self, share: float) -> Calibration:
        """Return this with the share of a reply's unexplained output that was in the next input."""
        return replace(self, unseen=_with_share(self.unseen, share))

    def learn_returned(self, share: float) -> Calibration:
        """Return this with the share of a reply's reasoning that was in the next input."""
        return replace(self, returned=_with_share(self.returned, share))

    def learn(
        self, content: float, markup: float, actual: float, classes: int = 0, *, sure: bool = True
    ) -> Calibration:
        """Return this with one more observation, in tokens; `classes` as in `text`. Ignores unusable ones.

        Of those that are not `sure` one alone teaches nothing.
        """
        if content + markup <= 0 or actual < 0:
            return self
        by_class = tuple(unpack(classes)) or ((LATIN, content),)
        observation = Observation(content, markup, actual, by_class, sure)
        return replace(self, observations=(*self.observations, observation)[-KEPT:])

    def learn_media(self, formula: float, actual: float) -> Calibration:
        """Return this with the ratio of actual to estimated tokens of images and PDFs."""
        if formula <= 0 or actual <= 0:
            return self
        return replace(self, media=(*self.media, actual / formula)[-5:])

    def learn_excess(self, excess: float, *, sure: bool = False) -> Calibration:
        """Return this with the tokens of a first call beyond its text; `sure`: two calls agreed on them."""
        return replace(self, excesses=(*self.excesses, *([excess] * (2 if sure else 1)))[-2:])

    @property
    def hidden(self) -> float:
        """Tokens that the server adds to every request: what the last two conversations agree on, else 0."""
        return self.excesses[-1] if len(self.excesses) == 2 and agree(*self.excesses) else 0.0

    def note(self, predicted: float, actual: float, margin: float, *, first: bool = False) -> Calibration:
        """Return this with the error of one more prediction, in tokens; `margin` is the fixed one it had.

        `first`: the prediction was not based on a measured call.
        """
        if first:
            return replace(self, first_errors=self.first_errors.add(predicted, actual, margin))
        errors = self.errors.add(predicted, actual, margin)
        return self if errors is self.errors else replace(self, errors=errors, floor=0.0)  # measured by now

    @property
    def spread(self) -> float:
        """What the fixed margin of a prediction from a confirmed call is multiplied by for its upper bound."""
        learned = self.errors.spread
        return max(EARLY_SPREAD, *self.errors.scaled, 0.0) if learned is None else learned

    @property
    def first_spread(self) -> float:
        """The same for a prediction that is not based on a measured call."""
        learned = self.first_errors.spread
        return 1.0 if learned is None else max(1.0, learned)

    def learn_preamble(self, digest: bytes, estimated: float, actual: float) -> Calibration:
        """Return this with the cost in tokens of the system prompt and tools with this digest."""
        if actual <= 0:
            return self
        preambles = dict(self.preambles)
        before = preambles.pop(digest, None)
        preambles[digest] = PreambleCost(estimated, actual, before is not None and agree(actual, before.actual))
        return replace(self, preambles=dict(list(preambles.items())[-KEPT_PREAMBLES:]))

    def confirm_preamble(self, digest: bytes, actual: float) -> Calibration:
        """Return this after a later call of the same conversation, by which they cost `actual` tokens."""
        cost = self.preambles.get(digest)
        if cost is None or cost.agreed or not agree(actual, cost.actual):
            return self
        return replace(self, preambles={**self.preambles, digest: cost._replace(agreed=True)})

    def knows_preamble(self, digest: bytes) -> bool:
        """Whether two calls agreed on what system prompt and tools of this digest cost."""
        cost = self.preambles.get(digest)
        return cost is not None and cost.agreed

    def preamble_tokens(self, digest: bytes, estimated: float) -> float:
        """Tokens of system prompt and tools: as learned, or the latest learned and the `estimated` difference."""
        if self.knows_preamble(digest):
            return self.preambles[digest].actual
        for cost in reversed(self.preambles.values()):
            if cost.agreed:
                return max(0.0, cost.actual + estimated - cost.estimated)
        return estimated * max(1.0, self.floor)

    def preamble_change(self, before: tuple[bytes, float], after: tuple[bytes, float]) -> float:
        """Tokens that a change of system prompt and tools adds; `before` and `after` are a digest and an estimate."""
        costs = self.preambles.get(before[0]), self.preambles.get(after[0])
        if costs[0] is not None and costs[1] is not None:
            return costs[1].actual - costs[0].actual
        return after[1] - before[1]

    @property
    def lessons(self) -> tuple[str, ...]:
        """What was learned that changes estimates, one line each."""
        lines = []
        if self.errors.calls and abs(self.factor - 1) >= 0.01:
            lines.append(f"Its text costs {self.factor:.2f} times the estimate ({plural(self.errors.calls, 'call')})")
        if self.hidden:
            lines.append(f"Its server adds about {round(self.hidden):,} tokens to every request")
        if abs(self.media_factor - 1) >= 0.01:
            lines.append(f"Its images cost {self.media_factor:.2f} times the published formula")
        if self.reasoning_share < 1:
            lines.append("Reasoning that is sent back is not in its input")
        if self.unseen_share is not None and self.unseen_share < 1:
            lines.append("Output that is billed and not shown does not go back")
        if agreed := sum(cost.agreed for cost in self.preambles.values()):
            lines.append(f"What {agreed:,} of its system prompts and sets of tools cost")
        return tuple(lines)

    def to_json(self) -> dict[str, object]:
        """A JSON object for the store."""
        return {
            "observations": [
                [*seen[:3], {CLASSES[kind]: tokens for kind, tokens in seen.classes}, seen.sure]
                for seen in self.observations
            ],
            "errors": [self.errors.scaled, self.errors.relative, self.errors.calls],
            "first_errors": [self.first_errors.scaled, self.first_errors.relative, self.first_errors.calls],
            "preambles": {digest.hex(): cost for digest, cost in self.preambles.items()},
            "media": self.media,
            "returned": self.returned,
            "unseen": self.unseen,
            "excesses": self.excesses,
            "floor": self.floor,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Calibration:
        """The inverse of `to_json`. Malformed data raises what `CalibrationBook.get` catches."""
        observations = [
            Observation(
                float(content),
                float(markup),
                float(actual),
                tuple((CLASSES.index(name), float(tokens)) for name, tokens in classes.items()),
                bool(sure),
            )
            for content, markup, actual, classes, sure in data["observations"]
        ]
        errors, first_errors = (
            Errors(tuple(map(float, scaled)), tuple(map(float, relative)), int(calls))
            for scaled, relative, calls in (data["errors"], data["first_errors"])
        )
        costs = {
            bytes.fromhex(digest): PreambleCost(float(estimated), float(actual), bool(agreed))
            for digest, (estimated, actual, agreed) in data["preambles"].items()
        }
        return cls(
            tuple(observations),
            errors,
            first_errors,
            preambles=costs,
            media=tuple(map(float, data["media"])),
            returned=tuple(map(float, data["returned"])),
            unseen=tuple(map(float, data["unseen"])),
            excesses=tuple(map(float, data["excesses"]))[-2:],
            floor=float(data["floor"]),
        )


def _with_share(shares: tuple[float, ...], share: float) -> tuple[float, ...]:
    """The last five of `shares` and `share`, which errors of the estimate may put outside of 0 to 1."""
    return (*shares, min(max(share, -1.0), 2.0))[-5:]


class CalibrationStore:
    """Persistent storage for calibrations; this base class stores nothing."""

    def load(self, provider: str, model: str) -> Mapping[str, Any] | None:
        """The calibration saved last, or None."""
        return None

    def save(self, provider: str, model: str, data: Mapping[str, object]) -> None:
        """Replace the saved calibration."""


class CalibrationBook:
    """The calibrations of all models. Safe to use from several threads."""

    def __init__(self, store: CalibrationStore | None = None) -> None:
        self._store = store or CalibrationStore()
        self._models: dict[tuple[str, str], Calibration] = {}
        self._lock = Lock()

    def copy(self) -> CalibrationBook:
        """A book of the calibrations in memory that stores nothing."""
        book = CalibrationBook()
        with self._lock:
            book._models = dict(self._models)
        return book

    def get(self, provider: str, model: str) -> Calibration:
        """The calibration of a model; a new one if nothing is stored or it can't be read."""
        with self._lock:
            calibration = self._models.get((provider, model))
            if calibration is None:
                try:
                    data = self._store.load(provider, model)
                    calibration = Calibration() if data is None else Calibration.from_json(data)
                except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                    calibration = Calibration()
                sigma = SIGMA_VOCABULARY if get_tokenizer(model).method == "vocabulary" else SIGMA_FACTOR
                calibration = self._models[provider, model] = replace(calibration, sigma=sigma)
            return calibration

    def put(self, provider: str, model: str, calibration: Calibration) -> None:
        """Replace the calibration of a model, in the store too."""
        with self._lock:
            self._models[provider, model] = calibration
        self._store.save(provider, model, calibration.to_json())

    def forget(self, provider: str, model: str) -> None:
        """Forget what was learned of a model, in the store too."""
        self.put(provider, model, Calibration())
        with self._lock:
            self._models.pop((provider, model), None)  # read again, with what is expected of the model

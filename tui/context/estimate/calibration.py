"""What is learned from a model's measured calls: correction factors for estimates, and the errors that remain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil
from statistics import median
from threading import Lock
from typing import Any, NamedTuple, Protocol

from tui.context.counting.classes import CLASSES, LATIN, unpack
from tui.context.counting.tokenizers import get_tokenizer

FACTOR_LOW, FACTOR_HIGH = 0.5, 2.5  # learned factors stay within these
MEDIA_LOW, MEDIA_HIGH = 0.1, 500.0  # some gateways bill an image as base64 text: up to 83 times the formula
KEPT = 64  # observations kept for each model
KEPT_ERRORS = 256
ENOUGH_TOKENS = 200  # of a class: from here on it counts as measured
FIT_ROUNDS = 25
KEPT_PREAMBLES = 16
KEPT_EXCESSES = 4
ALIKE = 1.25  # largest ratio between the factors of two observations that agree
AGREE_SHARE, AGREE_SLACK = 0.05, 20.0  # largest difference between two observations that agree: share, tokens
ENOUGH_CALLS = 20  # from here on the upper bound is based on the model's own errors
COVERAGE = 0.95  # share of calls that the upper bound covers
EARLY_SPREAD = 4.0  # of the fixed margin, until then: nearly all of 700 recorded first calls were within it
MARGIN_CALL = 20.0  # tokens that a call may add to a confirmed one beside its text: reminders, marks of roles
MARGIN_KNOWN, MARGIN_TOKENIZER, MARGIN_HEURISTIC = 0.02, 0.05, 0.10  # shares of the total, until then

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


class PreambleCost(NamedTuple):
    """Estimated and actual tokens of a system prompt with its tools; `agreed`: confirmed by a second call."""

    estimated: float
    actual: float
    agreed: bool = False


@dataclass(frozen=True)
class Calibration:
    """The learned state of one (provider, model).

    `errors` are (actual - predicted) in units of the fixed margin, latest last. `media` are ratios of what images and
    PDFs cost to what the formula says, `returned` shares of sent reasoning that the next input had. `preambles` are
    what system prompt and tools cost, by their digest (hex), `tool_changes` pairs (estimated, actual) of what a changed
    preamble added. `excesses` are what the first calls of conversations had beyond their text, latest last: a prompt
    that the server adds. `unseen` are shares of output that no part of a reply explained which the next input had.
    `floor` is the least factor that refusals leave possible, for servers whose usage was never
    seen; 0 for none. `sigma` is how far factors of this model are expected from 1; the book sets it.
    """

    observations: tuple[Observation, ...] = ()
    errors: tuple[float, ...] = ()
    relative: tuple[float, ...] = ()  # (actual - predicted) / actual, for people
    media: tuple[float, ...] = ()
    calls: int = 0
    returned: tuple[float, ...] = ()
    preambles: Mapping[str, PreambleCost] = field(default_factory=dict)
    tool_changes: tuple[tuple[float, float], ...] = ()
    floor: float = 0.0
    excesses: tuple[float, ...] = ()
    unseen: tuple[float, ...] = ()
    sigma: float = field(default=SIGMA_FACTOR, compare=False)

    @cached_property
    def _fit(self) -> tuple[dict[int, float], float]:
        return fit(self._taught, self.sigma)

    @cached_property
    def _taught(self) -> Sequence[Observation]:
        """The observations that count: the sure ones, or while there are none, those that agree."""
        sure = [seen for seen in self.observations if seen.sure]
        unsure = [seen for seen in self.observations[-2:] if not seen.sure]
        return sure if len(sure) >= 2 or len(unsure) < 2 or not _alike(*unsure) else self.observations

    @cached_property
    def _seen(self) -> dict[int, float]:
        """Tokens of the observations by class."""
        seen: dict[int, float] = {}
        for observation in self._taught:
            for kind, tokens in observation.classes:
                seen[kind] = seen.get(kind, 0.0) + tokens
        return seen

    def class_factor(self, kind: int) -> float:
        """What estimated content of one class of text is multiplied by."""
        return max(self._fit[0].get(kind, 1.0), self.floor)

    @cached_property
    def factor(self) -> float:
        """What estimated content is multiplied by, over all observations."""
        whole = sum(self._seen.values())
        if whole <= 0:
            return max(1.0, self.floor)
        return sum(self.class_factor(kind) * tokens for kind, tokens in self._seen.items()) / whole

    def knows(self, kind: int) -> bool:
        """Whether a class of text was measured for this model."""
        return self._seen.get(kind, 0.0) >= ENOUGH_TOKENS

    def text(self, content: float, classes: int) -> float:
        """Tokens of `content` (`classes` packed) with the learned factors. Unclassified content counts as Latin."""
        by_class = unpack(classes)
        rest = content - sum(tokens for _, tokens in by_class)
        learned = sum(self.class_factor(kind) * tokens for kind, tokens in by_class)
        return learned + self.class_factor(LATIN) * rest

    @property
    def markup_factor(self) -> float:
        """What estimated markup is multiplied by."""
        return self._fit[1]

    @cached_property
    def media_factor(self) -> float:
        """What the formulas' tokens of images and PDFs are multiplied by."""
        if not self.media:
            return 1.0
        if len(self.media) == 1:  # a single observation
            return min(max(self.media[0], FACTOR_LOW), FACTOR_HIGH)
        return min(max(median(self.media), MEDIA_LOW), MEDIA_HIGH)

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
        return replace(self, unseen=(*self.unseen, min(max(share, -1.0), 2.0))[-5:])

    def learn_returned(self, share: float) -> Calibration:
        """Return this with the share of a reply's reasoning that was in the next input."""
        return replace(self, returned=(*self.returned, min(max(share, -1.0), 2.0))[-5:])

    def learn_floor(self, excess: float) -> Calibration:
        """Return this after a refusal which showed that estimates are at least this share too low."""
        return replace(self, floor=min(FACTOR_HIGH, self.factor * (1 + excess)))

    def learn(
        self, content: float, markup: float, actual: float, classes: int = 0, *, sure: bool = True
    ) -> Calibration:
        """Return this with one more observation, in tokens; `classes` as in `text`. Ignores unusable ones.

        Those that are not `sure` count once two in a row agree, and no longer than two sure ones are there.
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

    def learn_preamble(self, digest: str, estimated: float, actual: float) -> Calibration:
        """Return this with the cost in tokens of the system prompt and tools with this digest."""
        if actual <= 0:
            return self
        before = self.preambles.get(digest)
        agreed = before is not None and abs(actual - before.actual) <= AGREE_SHARE * before.actual + AGREE_SLACK
        others = {key: value for key, value in self.preambles.items() if key != digest}
        others[digest] = PreambleCost(estimated, actual, agreed)
        return replace(self, preambles=dict(list(others.items())[-KEPT_PREAMBLES:]))

    def learn_excess(self, excess: float, *, sure: bool = False) -> Calibration:
        """Return this with the tokens of a first call beyond its text; `sure`: two calls agreed on them."""
        return replace(self, excesses=(*self.excesses, *([excess] * (2 if sure else 1)))[-KEPT_EXCESSES:])

    @property
    def hidden(self) -> float:
        """Tokens that the server adds to every request: what the last two conversations agree on, else 0."""
        if len(self.excesses) < 2:
            return 0.0
        one, other = self.excesses[-2:]
        return other if abs(one - other) <= AGREE_SHARE * max(one, other) + AGREE_SLACK else 0.0

    def learn_change(self, estimated: float, actual: float) -> Calibration:
        """Return this with the actual tokens that a change of system prompt or tools added."""
        if abs(estimated) < 1 or actual / estimated <= 0:
            return self
        return replace(self, tool_changes=(*self.tool_changes, (estimated, actual))[-KEPT_PREAMBLES:])

    def preamble_tokens(self, digest: str, estimated: float) -> float:
        """Tokens of system prompt and tools.

        The learned figure, or the latest learned one plus the estimated difference, or the estimate.
        """
        agreed = {key: cost for key, cost in self.preambles.items() if cost.agreed}
        if digest in agreed:
            return agreed[digest].actual
        if not agreed:
            return estimated * max(1.0, self.floor)
        nearest = list(agreed.values())[-1]
        return max(0.0, nearest.actual + (estimated - nearest.estimated) * self.schema_factor)

    def knows_preamble(self, digest: str) -> bool:
        """Whether two calls agreed on what system prompt and tools of this digest cost."""
        cost = self.preambles.get(digest)
        return cost is not None and cost.agreed

    def preamble_change(self, before: tuple[str, float], after: tuple[str, float]) -> float:
        """What system prompt and tools add when they change, in tokens; both given as digest and estimate."""
        costs = self.preambles.get(before[0]), self.preambles.get(after[0])
        if costs[0] is not None and costs[1] is not None:
            return costs[1].actual - costs[0].actual
        return (after[1] - before[1]) * self.schema_factor

    @cached_property
    def schema_factor(self) -> float:
        """What the estimated difference of two preambles is multiplied by."""
        if len(self.tool_changes) < 2:  # a single observation
            return 1.0
        ratio = median(actual / estimated for estimated, actual in self.tool_changes)
        return min(max(ratio, FACTOR_LOW), FACTOR_HIGH)

    def note(self, predicted: float, actual: float, scale: float) -> Calibration:
        """Return this with one more error of a total, in tokens; `scale` is the fixed margin it had."""
        if scale <= 0 or actual <= 0:
            return self
        return replace(
            self,
            errors=(*self.errors, (actual - predicted) / scale)[-KEPT_ERRORS:],
            relative=(*self.relative, (actual - predicted) / actual)[-KEPT_ERRORS:],
            calls=self.calls + 1,
            floor=0.0,  # measured by now
        )

    @cached_property
    def spread(self) -> float:
        """What the fixed margin of a confirmed base is multiplied by for the upper bound."""
        if len(self.errors) < ENOUGH_CALLS:
            return max(EARLY_SPREAD, *self.errors) if self.errors else EARLY_SPREAD
        # The order statistic of conformal prediction: it covers the next call with this chance for any distribution.
        ordered = sorted(self.errors)
        place = min(len(ordered), ceil(COVERAGE * (len(ordered) + 1)))
        return max(0.0, ordered[place - 1])

    @cached_property
    def p95_percent(self) -> float | None:
        """95th percentile of the absolute error in percent; None before the second call."""
        if len(self.relative) < 2:
            return None
        return 100 * _quantile([abs(error) for error in self.relative], 0.95)

    @property
    def lessons(self) -> tuple[str, ...]:
        """What was learned that changes estimates, one line each."""
        lines = []
        if self.calls and abs(self.factor - 1) >= 0.01:
            lines.append(f"Its text costs {self.factor:.2f} times the estimate ({self.calls:,} calls)")
        if self.hidden:
            lines.append(f"Its server adds about {round(self.hidden):,} tokens to every request")
        if abs(self.media_factor - 1) >= 0.01:
            lines.append(f"Its images cost {self.media_factor:.2f} times the published formula")
        if self.reasoning_share < 1:
            lines.append("Reasoning that is sent back is not in its input")
        if self.unseen_share is not None and self.unseen_share < 1:
            lines.append("Output that is billed and not shown does not go back")
        agreed = sum(cost.agreed for cost in self.preambles.values())
        if agreed:
            lines.append(f"What {agreed:,} of its system prompts and sets of tools cost")
        return tuple(lines)

    def to_json(self) -> dict[str, object]:
        """A JSON object for the store."""
        return {
            "observations": [
                [*seen[:3], {CLASSES[kind]: tokens for kind, tokens in seen.classes}, seen.sure]
                for seen in self.observations
            ],
            "call_errors": list(self.errors),
            "relative": list(self.relative),
            "media": list(self.media),
            "returned": list(self.returned),
            "calls": self.calls,
            "preambles": {key: list(pair) for key, pair in self.preambles.items()},
            "tool_changes": [list(pair) for pair in self.tool_changes],
            "floor": self.floor,
            "excesses": list(self.excesses),
            "unseen": list(self.unseen),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Calibration:
        """The inverse of `to_json`. Raises `ValueError`, `TypeError` or `KeyError` for malformed data."""
        return cls(
            observations=tuple(map(_observation, data["observations"]))[-KEPT:],
            errors=tuple(map(float, data.get("call_errors", ())))[-KEPT_ERRORS:],
            relative=tuple(map(float, data["relative"]))[-KEPT_ERRORS:],
            media=tuple(map(float, data["media"])),
            returned=tuple(map(float, data.get("returned", ()))),
            calls=int(data["calls"]),
            preambles={
                str(key): PreambleCost(float(cost[0]), float(cost[1]), len(cost) > 2 and bool(cost[2]))
                for key, cost in data["preambles"].items()
            },
            tool_changes=tuple((float(old), float(new)) for old, new in data["tool_changes"]),
            floor=float(data.get("floor", 0.0)),
            excesses=tuple(map(float, data.get("excesses", ()))),
            unseen=tuple(map(float, data.get("unseen", ()))),
        )


def _observation(data: Sequence[Any]) -> Observation:
    """The inverse of its JSON form; older ones have no classes."""
    content, markup, actual = map(float, data[:3])
    named: Mapping[str, float] = data[3] if len(data) > 3 else {}
    classes = tuple((CLASSES.index(name), float(tokens)) for name, tokens in named.items())
    return Observation(
        content, markup, actual, classes or ((LATIN, content),), bool(data[4]) if len(data) > 4 else True
    )


def fit(observations: Sequence[Observation], sigma: float = SIGMA_FACTOR) -> tuple[dict[int, float], float]:
    """The factors of content by class, and of markup, that explain `observations` best, all within 0.5 to 2.5.

    Robust least squares (Huber weights) with a prior at 1 for each, so that few or outlying observations move little,
    and one class none of the others. Minimises, by coordinates,

        sum w (actual - sum f_c content_c - g markup)^2 / s^2
        + sum ((f_c - 1) / sigma)^2 + ((g - 1) / SIGMA_MARKUP)^2
    """
    columns: dict[int, list[tuple[int, float]]] = {}  # class: observation and its tokens; markup is class -1
    for index, seen in enumerate(observations):
        for kind, tokens in (*seen.classes, (-1, seen.markup)):
            columns.setdefault(kind, []).append((index, tokens))
    factors = dict.fromkeys(columns, 1.0)
    errors = [seen.actual - sum(tokens for _, tokens in seen.classes) - seen.markup for seen in observations]
    spreads = [SIGMA_TOKENS + SIGMA_CONTENT * seen.content for seen in observations]
    for _ in range(FIT_ROUNDS):
        weights = [
            min(1.0, 1.5 * spread / abs(error) if error else 1.0) / spread**2
            for error, spread in zip(errors, spreads, strict=True)
        ]
        for kind, column in columns.items():
            before = factors[kind]
            below = above = 1 / SIGMA_MARKUP**2 if kind < 0 else _prior_weight(before, sigma)
            for index, tokens in column:
                below += weights[index] * tokens**2
                above += weights[index] * tokens * (errors[index] + before * tokens)
            factors[kind] = min(max(above / below, FACTOR_LOW), FACTOR_HIGH)
            step = factors[kind] - before
            for index, tokens in column:
                errors[index] -= step * tokens
    return factors, factors.pop(-1, 1.0)


def _prior_weight(factor: float, sigma: float) -> float:
    """How much the prior weighs against observations: the less, the further they have moved `factor` from 1 (Cauchy).

    So a vocabulary is trusted to be the model's own until calls show that it isn't.
    """
    narrow = 1 / (sigma**2 * (1 + ((factor - 1) / (PRIOR_SCALE * sigma)) ** 2))
    return max(narrow, 1 / SIGMA_FACTOR**2)


def _alike(one: Observation, other: Observation) -> bool:
    """Whether both imply the same factor."""
    low, high = sorted(seen.actual / max(1.0, seen.content + seen.markup) for seen in (one, other))
    return high <= ALIKE * low


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def _with_sigma(calibration: Calibration, model: str) -> Calibration:
    sigma = SIGMA_VOCABULARY if get_tokenizer(model).how == "vocabulary" else SIGMA_FACTOR
    return calibration if calibration.sigma == sigma else replace(calibration, sigma=sigma)


class CalibrationStore(Protocol):
    """Persistent storage for calibrations."""

    def load(self, provider: str, model: str) -> Mapping[str, Any] | None:
        """The calibration saved last, or None."""
        ...

    def save(self, provider: str, model: str, data: Mapping[str, object]) -> None:
        """Replace the saved calibration."""
        ...


class CalibrationBook:
    """The calibrations of all models. Safe to use from several threads."""

    def __init__(self, store: CalibrationStore | None = None) -> None:
        self._store = store
        self._models: dict[tuple[str, str], Calibration] = {}
        self._lock = Lock()

    def get(self, provider: str, model: str) -> Calibration:
        """The calibration of a model; a new one if nothing is stored or it can't be read."""
        with self._lock:
            calibration = self._models.get((provider, model))
            if calibration is None:
                data = self._store.load(provider, model) if self._store is not None else None
                try:
                    calibration = Calibration() if data is None else Calibration.from_json(data)
                except (ValueError, TypeError, KeyError):
                    calibration = Calibration()
                calibration = self._models[provider, model] = _with_sigma(calibration, model)
            return calibration

    def put(self, provider: str, model: str, calibration: Calibration) -> None:
        """Replace the calibration of a model, in the store too."""
        with self._lock:
            self._models[provider, model] = _with_sigma(calibration, model)
        if self._store is not None:
            self._store.save(provider, model, calibration.to_json())

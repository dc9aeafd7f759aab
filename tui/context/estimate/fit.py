"""The factors by which estimates of text are corrected, fitted to the actual cost of messages."""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import NamedTuple

FACTOR_LOW, FACTOR_HIGH = 0.5, 2.5  # learned factors stay within these
ROUNDS = 25
SETTLED = 1e-7  # of a factor: smaller steps change no number
ALIKE = 1.25  # largest ratio between the factors of two observations that agree

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


def fit(observations: Sequence[Observation], sigma: float = SIGMA_FACTOR) -> tuple[dict[int, float], float]:
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
        if largest_step < SETTLED:
            break
    return factors, factors.pop(-1, 1.0)


def _prior_weight(factor: float, sigma: float) -> float:
    """How much the prior weighs against observations: the less, the further they have moved `factor` from 1 (Cauchy).

    So a vocabulary is trusted to be the model's own until calls show that it isn't.
    """
    narrow = 1 / (sigma**2 * (1 + ((factor - 1) / (PRIOR_SCALE * sigma)) ** 2))
    return max(narrow, 1 / SIGMA_FACTOR**2)


def alike(one: Observation, other: Observation) -> bool:
    """Whether both imply the same factor."""
    low, high = sorted(seen.actual / max(1.0, seen.content + seen.markup) for seen in (one, other))
    return high <= ALIKE * low

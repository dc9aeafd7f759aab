"""What a model's measured calls teach: the correction factor of estimates, and how wrong they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import quantiles
from threading import Lock
from typing import Protocol

FACTOR_LOW, FACTOR_HIGH = 0.5, 2.5
KEPT_PAIRS = 64  # learned pairs (estimated, actual) kept for each model
KEPT_ERRORS = 256  # errors kept for each model
ENOUGH_CALLS = 20  # from here on the model's own errors give the upper bound
PRIOR_WEIGHT = 500.0  # tokens: as if so many had been seen that match the prior exactly


@dataclass(frozen=True, slots=True)
class Calibration:
    """The learned state of one (provider, model): pairs of tokens (estimated, actual), relative errors of the total."""

    pairs: tuple[tuple[float, float], ...] = ()
    errors: tuple[float, ...] = ()  # (actual - predicted) / predicted, latest last
    calls: int = 0

    @property
    def factor(self) -> float:
        """What an estimate is multiplied by: the weighted median of actual / estimated, drawn to 1 by the prior."""
        ratios = sorted((actual / estimated, estimated) for estimated, actual in self.pairs if estimated > 0)
        ratios = sorted([*ratios, (1.0, PRIOR_WEIGHT)])
        half, passed = sum(weight for _, weight in ratios) / 2, 0.0
        for ratio, weight in ratios:
            passed += weight
            if passed >= half:
                return min(max(ratio, FACTOR_LOW), FACTOR_HIGH)
        return 1.0

    def learn(self, estimated: float, actual: float) -> Calibration:
        """This with one more pair, in tokens. Ignores pairs that cannot teach a ratio."""
        if estimated <= 0 or actual < 0:
            return self
        return replace(self, pairs=(*self.pairs, (estimated, actual))[-KEPT_PAIRS:])

    def note(self, predicted: float, actual: float) -> Calibration:
        """This with one more relative error of a total."""
        if predicted <= 0:
            return self
        errors = (*self.errors, (actual - predicted) / predicted)[-KEPT_ERRORS:]
        return replace(self, errors=errors, calls=self.calls + 1)

    @property
    def p95(self) -> float | None:
        """95th percentile of actual over predicted, as a fraction of the total; None before `ENOUGH_CALLS` calls."""
        if len(self.errors) < ENOUGH_CALLS:
            return None
        return max(0.0, quantiles(self.errors, n=20, method="inclusive")[-1])

    @property
    def abs_p95_percent(self) -> float | None:
        """95th percentile of the absolute error in percent; None before the second call."""
        if len(self.errors) < 2:
            return None
        return 100 * quantiles([abs(error) for error in self.errors], n=20, method="inclusive")[-1]

    def to_json(self) -> dict[str, object]:
        """For a store."""
        return {"pairs": self.pairs, "errors": self.errors, "calls": self.calls}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Calibration:
        """From a store. Raises `ValueError` for data that is none."""
        pairs, errors, calls = data.get("pairs"), data.get("errors"), data.get("calls")
        if not isinstance(pairs, Sequence) or not isinstance(errors, Sequence) or not isinstance(calls, int):
            raise ValueError("not a stored calibration")
        return cls(
            tuple((float(estimated), float(actual)) for estimated, actual in pairs)[-KEPT_PAIRS:],
            tuple(map(float, errors))[-KEPT_ERRORS:],
            calls,
        )


class CalibrationStore(Protocol):
    """Where calibrations outlive the process."""

    def load(self, provider: str, model: str) -> Mapping[str, object] | None:
        """What was saved last, or None."""
        ...

    def save(self, provider: str, model: str, data: Mapping[str, object]) -> None:
        """Replace what was saved."""
        ...


class CalibrationBook:
    """The calibrations of all models. Safe to use from several threads."""

    def __init__(self, store: CalibrationStore | None = None) -> None:
        self._store = store
        self._models: dict[tuple[str, str], Calibration] = {}
        self._lock = Lock()

    def get(self, provider: str, model: str) -> Calibration:
        """What is known of a model; a fresh one where nothing is, or what was stored cannot be read."""
        with self._lock:
            found = self._models.get((provider, model))
            if found is None:
                data = self._store.load(provider, model) if self._store is not None else None
                try:
                    found = Calibration() if data is None else Calibration.from_json(data)
                except (ValueError, TypeError):
                    found = Calibration()
                self._models[provider, model] = found
            return found

    def put(self, provider: str, model: str, calibration: Calibration) -> None:
        """Replace what is known of a model; the store gets it too."""
        with self._lock:
            self._models[provider, model] = calibration
        if self._store is not None:
            self._store.save(provider, model, calibration.to_json())

"""A row of the bench's table, and how to time things fairly."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True, slots=True)
class BenchRow:
    """`seconds` of the thing, `reference` of what it is compared with, and the largest ratio that is allowed.

    `at_most` is a second limit, in seconds, where one is promised (a frame of the screen).
    """

    name: str
    seconds: float
    reference: float
    limit: float
    at_most: float | None = None
    unit: str = "s"  # or "MB": then `seconds` and `reference` are megabytes

    def show(self, value: float) -> str:
        """`value` for people."""
        return f"{1000 * value:.3f} ms" if self.unit == "s" else f"{value:.1f} {self.unit}"

    @property
    def ratio(self) -> float:
        """Thing over reference."""
        return self.seconds / self.reference

    @property
    def ok(self) -> bool:
        """Within both limits."""
        return self.ratio <= self.limit and (self.at_most is None or self.seconds <= self.at_most)


def rows_of(group: str) -> list[BenchRow]:
    """The rows of a group, a module of this folder."""
    return list(import_module(f"tests.bench.{group}").rows())


def fastest(function: Callable[[], object], *, rounds: int = 7, times: int = 1) -> float:
    """Processor seconds of one call: the best of `rounds`, each over `times` calls. The collector is off."""
    return both(function, None, rounds=rounds, times=times)[0]


def both(
    function: Callable[[], object], reference: Callable[[], object] | None, *, rounds: int = 9, times: int = 1
) -> tuple[float, float]:
    """Processor seconds of one call of each, taken in turns on a busy machine; the best of `rounds`."""
    runs = [function] if reference is None else [function, reference]
    best = [float("inf")] * 2
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for index, run in enumerate(runs):
                began = time.process_time()
                for _ in range(times):
                    run()
                best[index] = min(best[index], (time.process_time() - began) / times)
    finally:
        if was_on:
            gc.enable()
    return best[0], best[1]


def table(rows: Sequence[BenchRow]) -> str:
    """The rows for people."""
    lines = [("what", "time", "reference", "ratio", "limit", "")]
    for row in rows:
        limit = f"{row.limit:g}x" if row.at_most is None else f"{row.limit:g}x, {1000 * row.at_most:g} ms"
        lines.append(
            (
                row.name,
                row.show(row.seconds),
                row.show(row.reference),
                f"{row.ratio:.3g}x",
                limit,
                "" if row.ok else "OVER",
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    shown = []
    for name, *numbers, mark in lines:
        cells = [number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)]
        shown.append("  ".join([name.ljust(widths[0]), *cells, mark]).rstrip())
    return "\n".join(shown)

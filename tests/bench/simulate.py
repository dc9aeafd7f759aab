"""`python -m tests.bench simulate`: long conversations over a grid of windows, servers and wrong estimates.

Each one is the real `ChatSession` on a store of its own, against a server that refuses what does not fit, is not paired
or not signed for what stands before it. Exit code 0 when nothing is wrong, 1 otherwise.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, fields

from tests.bench.liars import Lying, converse, matrix
from tests.bench.simulate_driver import Mode, Outcome, Scenario, Talk, simulate
from tests.bench.simulate_prefix import TURNS as PREFIX_TURNS
from tests.bench.simulate_prefix import WINDOW as PREFIX_WINDOW
from tests.bench.simulate_prefix import lines, prefix_report
from tests.bench.simulate_server import ReasoningKind, ServerKind, Summariser

WINDOWS = (2_048, 8_192, 32_768, 131_072, 1_000_000)
TALKS: tuple[Talk, ...] = ("chat", "agent", "cjk", "images")
MODES: tuple[Mode, ...] = ("rolling", "compaction")
OFFS = (-0.30, -0.15, 0.0, 0.30, 0.60)
SERVERS: tuple[ServerKind, ...] = ("named", "bare", "hidden", "truncating", "unknown")
OVERHEADS = (0.02, 0.40, 0.72)  # of the window; the input budget is three quarters of a small one
REASONINGS: tuple[ReasoningKind, ...] = ("none", "tool_loop", "bound")
SUMMARISERS: tuple[Summariser, ...] = ("faithful", "faithful", "babbling", "empty", "failing")
TURNS = 90
QUICK_TURNS = 45
QUICK_EVERY = 53  # of the grid; a prime, so that every value of every axis is in the slice
WORKERS = 2

MUST_BE_ZERO = (
    "overflows",
    "pairing_errors",
    "signature_errors",
    "loops",
    "lost_messages",
    "lost_facts",
    "wrong_refusals",
    "failures",
)


def grid(turns: int = TURNS) -> Iterator[Scenario]:
    """Every combination of the main axes; the others are drawn, the same each time."""
    combinations = itertools.product(WINDOWS, TALKS, MODES, OFFS, SERVERS, OVERHEADS)
    for number, (window, talk, mode, off, server, overhead) in enumerate(combinations):
        chance = random.Random(number)
        yield Scenario(
            talk=talk,
            mode="off" if number % 41 == 40 else mode,
            window=window,
            overhead=overhead if number % 37 else 1.2,  # now and then more than any window
            off=off,
            server=server,
            reasoning=chance.choice(REASONINGS),
            summariser=chance.choice(SUMMARISERS),
            turns=turns,
            seed=number,
        )


def run_all(scenarios: Sequence[Scenario], workers: int = WORKERS) -> Iterator[tuple[Scenario, Outcome]]:
    """Every scenario with its outcome, in order."""
    with ProcessPoolExecutor(workers, initializer=_quiet) as pool:
        yield from zip(scenarios, pool.map(simulate, scenarios, chunksize=4), strict=True)


def _quiet() -> None:
    logging.disable(logging.CRITICAL)


def total(outcomes: Iterable[Outcome]) -> Outcome:
    """All of them added up."""
    result = Outcome(conversations=0)
    for outcome in outcomes:
        result.add(outcome)
    return result


def _wrong(outcome: Outcome) -> dict[str, int]:
    """The figures that must be zero and are not."""
    return {name: getattr(outcome, name) for name in MUST_BE_ZERO if getattr(outcome, name)}


def to_json(outcome: Outcome) -> dict[str, object]:
    """The figures by name."""
    return {f.name: getattr(outcome, f.name) for f in fields(outcome) if f.name != "samples"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `simulate`."""
    parser.add_argument("--quick", action="store_true", help="a slice of the grid, in under a minute")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--turns", type=int, help=f"turns of each conversation ({TURNS}; quick: {QUICK_TURNS})")
    parser.add_argument("--every", type=int, default=1, help="take one scenario in so many")
    parser.add_argument("--liars", action="store_true", help="servers that report their usage wrongly (liars.py)")
    parser.add_argument("--seed", type=int, default=0, help="with --liars: other texts, sizes and client errors")
    parser.add_argument("--workers", type=int, default=WORKERS, help="processes")


def run(arguments: argparse.Namespace) -> int:
    """Run the grid and print it. Returns the exit code."""
    if arguments.liars:
        every = QUICK_EVERY if arguments.quick else arguments.every
        return liars(list(matrix(every, arguments.seed)), arguments.workers)
    every = QUICK_EVERY if arguments.quick else arguments.every
    turns = arguments.turns or (QUICK_TURNS if arguments.quick else TURNS)
    scenarios = list(grid(turns))[::every]
    started = time.monotonic()
    results = []
    for done in run_all(scenarios, arguments.workers):
        results.append(done)
        if len(results) % 50 == 0:
            wrong = _wrong(total(outcome for _, outcome in results))
            print(f"{len(results)} of {len(scenarios)} conversations, wrong: {wrong or 'nothing'}", file=sys.stderr)
    seconds = time.monotonic() - started
    figures = total(outcome for _, outcome in results)
    wrong = _wrong(figures)
    if arguments.json:
        prefix = {name: asdict(part) for name, part in zip(("sticky", "every_turn"), prefix_report(), strict=True)}
        print(json.dumps({**to_json(figures), "seconds": round(seconds, 1), "wrong": wrong, "prefix": prefix}))
    else:
        _print_grid(results)
        for name, value in to_json(figures).items():
            print(f"{name.replace('_', ' '):26}{value:>12,}")
        print(f"{'seconds':26}{seconds:>12,.1f}")
        for sample in figures.samples[:20]:
            print(f"  {sample}")
        print(f"a {PREFIX_TURNS}-turn agent conversation in {PREFIX_WINDOW:,} tokens:", *lines(), sep="\n  ")
        print("nothing wrong" if not wrong else f"WRONG: {wrong}")
    return 1 if wrong else 0


def liars(cells: Sequence[Lying], workers: int) -> int:
    """Run cells of the matrix of liars and print what did not hold. Returns the exit code."""
    started = time.monotonic()
    with ProcessPoolExecutor(workers, initializer=_quiet) as pool:
        results = list(zip(cells, pool.map(converse, cells, chunksize=4), strict=True))
    for cell, held in results:
        for text in held.wrong:
            where = f"{cell.liar}, {cell.dialect}, window {cell.window}, {cell.honest}+{cell.lies} turns"
            print(f"{where}: {text}")
    wrong = sum(bool(held.wrong) for _, held in results)
    calls, exact = (sum(getattr(held, name) for _, held in results) for name in ("calls", "exact"))
    seconds = round(time.monotonic() - started)
    kinds = len({cell.liar for cell in cells})
    print(f"{len(cells):,} conversations with {kinds} liars, {calls:,} calls, {exact:,} numbers without ~, {seconds} s")
    print("nothing wrong" if not wrong else f"WRONG: {wrong} conversations")
    return 1 if wrong else 0


def _print_grid(results: Sequence[tuple[Scenario, Outcome]]) -> None:
    """One line for each value of each axis."""
    columns = ("conversations", "turns", "requests", "surprises", "refusals", "trims", "compactions", "overflows")
    print(f"{'':28}" + "".join(f"{name:>14}" for name in (*columns, "wrong")))
    for axis in ("window", "talk", "mode", "server", "off", "overhead", "reasoning", "summariser"):
        for value in dict.fromkeys(getattr(scenario, axis) for scenario, _ in results):
            part = total(outcome for scenario, outcome in results if getattr(scenario, axis) == value)
            cells = [getattr(part, name) for name in columns]
            cells.append(sum(getattr(part, name) for name in MUST_BE_ZERO))
            print(f"{axis + ' ' + str(value):28}" + "".join(f"{cell:>14,}" for cell in cells))


def main(argv: Sequence[str] | None = None) -> int:
    """Entry for running the module itself."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench simulate", description=__doc__)
    add_arguments(parser)
    return run(parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())

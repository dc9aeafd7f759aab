"""`python -m tests.bench [GROUP ...]`: what is fast, as ratios against a reference measured beside it.

`python -m tests.bench` runs every group of rows; a name runs that group alone. The `PROGRAMS` (`simulate`, `trace`,
...) take arguments of their own. Exit code 1 when a row is over its limit.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context

from tests.bench.rows import rows_of, table

# One module for each group of rows: it has `rows() -> Iterable[BenchRow]`. Add yours here.
GROUPS = ("accounting", "transcript", "startup", "resources", "growth", "streaming", "commands")
# One module for each program: it has `main(arguments) -> int`.
PROGRAMS = (
    "actions",
    "fit_classes",
    "fit_priors",
    "fuzz",
    "languages",
    "peers",
    "losses",
    "real_windows",
    "simulate",
    "structure",
    "switching",
    "tools",
    "trace",
    "vocabularies",
)


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for."""
    if arguments and arguments[0] in PROGRAMS:
        code: int = import_module(f"tests.bench.{arguments[0]}").main(list(arguments[1:]))
        return code
    unknown = [name for name in arguments if name not in GROUPS]
    if unknown:
        print(f"no group {unknown[0]}: {', '.join((*GROUPS, *PROGRAMS))}", file=sys.stderr)
        return 2
    # A process for each group: what one leaves in memory is not measured by the next.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
        rows = [row for group in processes.map(rows_of, arguments or GROUPS) for row in group]
    print(table(rows))
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

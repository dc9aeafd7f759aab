"""A few kills and failing stores; `python -m tests.bench losses` has many."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.losses import failing


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_no_word_is_lost_where_store_and_tools_fail_by_chance(seed: int, tmp_path: Path) -> None:
    assert (await failing(seed, tmp_path))[0] == []


@pytest.mark.slow
def test_a_kill_loses_less_than_a_second() -> None:
    """In a process of its own, which forks: this one has threads."""
    command = [sys.executable, "-m", "tests.bench", "losses", "--kills", "1", "--faults", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

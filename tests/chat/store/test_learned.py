"""Counts in the database: read in the order they were stored in, or one by one."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tui.chat.store.learned import StoredCounts
from tui.chat.store.store import SessionStore


@pytest.mark.parametrize("seed", range(4))
def test_what_was_stored_is_read_whatever_was_stored_between(tmp_path: Path, seed: int) -> None:
    store, chance = SessionStore(tmp_path / "chatctx.db"), Random(seed)
    counts = StoredCounts(store)
    names = [("one", 1), ("one", 2), ("other", 1)]
    stored: dict[tuple[str, int], dict[bytes, tuple[int, ...]]] = {name: {} for name in names}
    for number in range(2_500):
        name = names[0] if number < 600 else chance.choice(names)
        stored[name][number.to_bytes(32, "big")] = (number, chance.getrandbits(200))
    for name, values in stored.items():
        counts.put_many(*name, values)
    digests = [number.to_bytes(32, "big") for number in range(3_000)]
    if seed % 2:
        chance.shuffle(digests)
    for name in names:
        assert counts.get_many(*name, digests) == stored[name]
    store.close()

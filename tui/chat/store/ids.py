"""Identifiers that sort by time."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterable

_OURS = re.compile(r"0[0-9a-f]{23}")  # half of what 48 bits of milliseconds can say: until the year 2527
_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """A unique id of 24 hex digits: 48 bits of milliseconds since the epoch, 16 of sequence, 32 of chance.

    Ids made by one process grow strictly, also within a millisecond and when the clock steps back.
    """
    global _last
    with _lock:
        stamp = max(time.time_ns() // 1_000_000 << 16, _last + 1)
        _last = stamp
    return f"{stamp:016x}{os.urandom(4).hex()}"


def follow(idents: Iterable[str]) -> None:
    """Ids made from now on are greater than these of ours, also where the clock was set back since they were made."""
    global _last
    stamps = [int(ident[:16], 16) for ident in idents if _OURS.fullmatch(ident)]
    with _lock:
        _last = max([_last, *stamps])

"""Identifiers that sort by time."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterable

_OURS = re.compile(r"0[0-9a-f]{23}")  # half the range of 48 bits of milliseconds: until the year 2527
_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """A unique id of 24 hex digits: 48 bits of milliseconds since the epoch, 16 of sequence, 32 random.

    Ids made by one process increase strictly, also within a millisecond and when the clock is set back.
    """
    global _last
    with _lock:
        stamp = max(time.time_ns() // 1_000_000 << 16, _last + 1)
        _last = stamp
    return f"{stamp:016x}{os.urandom(4).hex()}"


def follow(idents: Iterable[str]) -> None:
    """Make later ids greater than these, even if the clock was set back since they were made."""
    global _last
    stamps = [int(ident[:16], 16) for ident in idents if _OURS.fullmatch(ident)]
    with _lock:
        _last = max([_last, *stamps])

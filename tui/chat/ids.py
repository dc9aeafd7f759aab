"""Identifiers that sort by time."""

from __future__ import annotations

import os
import threading
import time

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

"""Keeps the garbage collector off the many small objects of long conversations.

Messages and rows hold no cycles: they go when nobody needs them any more, without the collector. Its full passes would
look through them again and again, and stop the screen each time: 50 ms for 10,000 messages, 400 ms for the rows of a
megabyte.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def spared() -> Iterator[None]:
    """No passes while the body makes objects that stay, and none over them afterwards. From any thread."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()

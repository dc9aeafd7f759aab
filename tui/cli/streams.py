"""Standard streams as they may be: closed, full, left by their reader, or not in UTF-8. And ctrl+c."""

from __future__ import annotations

import errno
import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def ensure_open() -> None:
    """Give every stream something to write to and read from. Call it first of all.

    A closed one (`>&-`) becomes /dev/null: else the next file that is opened, the database perhaps, would be standard
    output. What an encoding other than UTF-8 lacks is escaped instead of ending the program.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.TextIOWrapper(io.FileIO(os.devnull, mode), encoding="utf-8"))
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def unwritable(error: BaseException) -> str | None:
    """Why standard output takes nothing any more: "" where its reader has left, a line for a person where it is full.

    None for every other error. The store has errors of its own: what comes as a bare OSError was written here.
    """
    match error:
        case BrokenPipeError():
            return ""
        case OSError(errno=number, filename=None) if number in FULL:
            return f"the output can't be written ({error.strerror}): make room, or send it elsewhere"
        case _:
            return None


def discard_buffers() -> None:
    """Discard what is still buffered: it would be a second error when the interpreter flushes it.

    See https://docs.python.org/3/library/signal.html#note-on-sigpipe
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())


def exit_code(code: int) -> int:
    """Returns `code`; ends the process at once where a thread is in a call that may never return (a silent pipe)."""
    import signal
    import threading

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # one more press must not undo the first
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        discard_buffers()
        os._exit(code)
    return code


def read_input(limit: int, wait: float | None = None) -> bytes | None:
    """All of standard input, at most `limit` bytes and one more.

    None where nothing has come after `wait` seconds: a pipe may be open although nobody writes to it (under cron, ssh,
    another program). Once something has come it is read to its end, however long that takes.
    """
    import threading

    data = bytearray()
    begun, ended = threading.Event(), threading.Event()

    def read() -> None:
        try:
            while len(data) <= limit and (piece := os.read(0, 1 << 16)):
                data.extend(piece)
                begun.set()
        except OSError:
            pass  # closed, or nothing that can be read: what came is all there is
        begun.set()
        ended.set()

    threading.Thread(target=read, name="input", daemon=True).start()  # `os.read` on Windows can't be timed otherwise
    if not begun.wait(wait):
        return None
    ended.wait()
    return bytes(data[: limit + 1])


def on_interrupt(act: Callable[[], None]) -> None:
    """From now on ctrl+c calls `act` on the running loop, and ends nothing by itself.

    The loop of Windows has no handlers for signals: there the signal's own handler wakes it.
    """
    import asyncio
    import signal

    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGINT, act)
    except NotImplementedError:
        signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(act))

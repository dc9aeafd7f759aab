"""Standard streams that are closed, full, abandoned by their reader, or not UTF-8; lines of standard input."""

from __future__ import annotations

import errno
import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TextIO

FENCE = '"""'
"""A line that begins and ends a message of several lines, in `Lines`."""

THREAD_SECONDS = 0.2
"""Seconds that idle threads are given to end."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def ensure_open() -> None:
    """Make sure that every standard stream exists. Call it first of all.

    A closed one (`>&-`) becomes /dev/null: otherwise the next file opened, such as the database, would be standard
    output. Writing to a closed output still fails. Characters missing in an encoding other than UTF-8 are escaped.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            descriptor = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            setattr(sys, name, io.TextIOWrapper(io.FileIO(descriptor, mode), encoding="utf-8"))
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def shows(stream: TextIO, text: str) -> bool:
    """Whether the encoding of a stream (its locale's) has all characters of `text`."""
    try:
        text.encode(stream.encoding)
    except UnicodeEncodeError:
        return False
    return True


def unwritable(error: BaseException) -> str | None:
    """Why standard output can't be written: "" if its reader has gone, a line for a person if it is full.

    None for every other error. The store has its own errors: a bare OSError comes from writing output.
    """
    match error:
        case BrokenPipeError():
            return ""
        case OSError(errno=errno.EBADF, filename=None):
            return "standard output is closed: leave it open, or discard it with >/dev/null"
        case OSError(errno=number, filename=None) if number in FULL:
            return f"the output can't be written ({error.strerror}): make room, or send it elsewhere"
        case _:
            return None


def discard_buffers() -> None:
    """Discard buffered output, which would cause a second error when the interpreter flushes it.

    See https://docs.python.org/3/library/signal.html#note-on-sigpipe
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())


def exit_code(code: int) -> int:
    """Returns `code`; exits soon if a thread is in a call that takes long, or may never return (a silent pipe)."""
    import signal
    import threading
    import time

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second press must not undo the first
    end = time.monotonic() + THREAD_SECONDS
    others = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    for thread in others:
        thread.join(max(0.0, end - time.monotonic()))
    if any(thread.is_alive() for thread in others):
        discard_buffers()
        os._exit(code)
    return code


def read_input(limit: int, wait: float | None = None) -> bytes | None:
    """All of standard input, at most `limit` bytes and one more.

    None if nothing arrives within `wait` seconds: a pipe may stay open although nobody writes to it (under cron, ssh,
    another program). Once something has arrived it is read to the end, however long that takes.
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
            pass  # closed, or unreadable: return what has arrived
        begun.set()
        ended.set()

    threading.Thread(target=read, name="input", daemon=True).start()  # Windows has no timeout for `os.read`
    if not begun.wait(wait):
        return None
    ended.wait()
    return bytes(data[: limit + 1])


class Lines:
    """Standard input, line by line, from a thread.

    `os.read` rather than `sys.stdin`: a thread waiting in the buffered reader would keep the interpreter from exiting.
    """

    def __init__(self, descriptor: int = 0) -> None:
        import asyncio
        import threading

        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._arrived: asyncio.Queue[str | None] = asyncio.Queue()
        self._ended = False
        threading.Thread(target=self._read, name="lines", daemon=True).start()

    def _read(self) -> None:
        rest = b""
        while True:
            try:
                data = os.read(self._descriptor, 1 << 16)
            except OSError:
                data = b""
            *complete, rest = (rest + data).split(b"\n")
            lines: list[str | None] = [line.decode("utf-8", "replace").removesuffix("\r") for line in complete]
            if not data:
                lines += [rest.decode("utf-8", "replace"), None] if rest else [None]
            try:
                for line in lines:
                    self._loop.call_soon_threadsafe(self._arrived.put_nowait, line)
            except RuntimeError:
                return  # the event loop has been closed
            if not data:
                return

    def end(self) -> None:
        """End the input: pending readers get None at once."""
        self._ended = True
        self._arrived.put_nowait(None)

    async def next(self) -> str | None:
        """The next line without its end; None at the end of the input."""
        line = None if self._ended else await self._arrived.get()
        self._ended = self._ended or line is None
        return None if self._ended else line

    async def fresh(self, read: Callable[[], Awaitable[str | None]]) -> str | None:
        """The result of `read` (`next`, `message`) on lines that are not written yet.

        Earlier lines are no answer to a question, and stay queued.
        """
        early = self._drained()
        answer = None if None in early else await read()
        for line in (*early, *self._drained()):
            self._arrived.put_nowait(line)
        return answer

    def unread(self) -> list[str]:
        """The lines that nobody has taken."""
        return [line for line in self._drained() if line and line.strip()]

    def _drained(self) -> list[str | None]:
        return [self._arrived.get_nowait() for _ in range(self._arrived.qsize())]

    async def message(self) -> str | None:
        """The next line, or all lines between two fences."""
        line = await self.next()
        if line is None or line.strip() != FENCE:
            return line
        text: list[str] = []
        while (line := await self.next()) is not None and line.strip() != FENCE:
            text.append(line)
        return "\n".join(text)

"""The program and its terminal: keys typed while Textual loads, and signals that ask it to end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType
from typing import Any

ENDING = ("SIGTERM", "SIGHUP", "SIGQUIT")
"""Signals that ask the program to end. ctrl+c is SIGINT."""
ENDED = "the terminal was closed, or the program ended"
"""The reason stored with an answer that they interrupt."""


def on_signals(names: Iterable[str], act: Callable[[], object]) -> None:
    """Call `act` on the running loop at these signals, instead of ending the process or raising KeyboardInterrupt.

    Event loops on Windows have no signal handlers: there the signal's own handler wakes the loop.
    """
    import asyncio  # not before the terminal is taken

    loop = asyncio.get_running_loop()
    for name in names:
        if (number := getattr(signal, name, None)) is None:
            continue
        try:
            loop.add_signal_handler(number, act)
        except NotImplementedError:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(act))


def on_interrupt(act: Callable[[], object]) -> None:
    """Call `act` on the running loop at SIGINT, unless another handler is set for a while, as for an editor.

    A handler of the loop itself would be called after that while. A second SIGINT raises KeyboardInterrupt: the loop
    may not come to its end.
    """
    import asyncio  # not before the terminal is taken

    loop = asyncio.get_running_loop()

    def handle(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if loop.is_closed():
            signal.default_int_handler(number, frame)
        loop.call_soon_threadsafe(act)

    signal.signal(signal.SIGINT, handle)


if sys.platform != "win32":
    import fcntl
    import termios
    import tty

_ENTER = (
    "\x1b[?1049h\x1b[?2004h\x1b[{row};1H › "  # alternate screen, bracketed paste, the prompt where Textual draws it
)
_LEAVE = "\x1b[?2004l\x1b[?1049l"


class EarlyTerminal:
    """Raw mode and a prompt while the context is open. It ends as it began, unless Textual took over (`hand_over`).

    `in_line_mode` is how many bytes were typed before. A signal that asks the program to end raises SystemExit here.
    """

    def __init__(self) -> None:
        self.in_line_mode = 0
        self._before: list[Any] | None = None
        self._screen_taken = False
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> EarlyTerminal:
        if sys.platform == "win32" or "TEXTUAL_DRIVER" in os.environ:
            return self
        with suppress(OSError, ValueError, termios.error):  # Textual says what is wrong
            terminal = sys.__stdin__.fileno() if sys.__stdin__ else -1
            before = termios.tcgetattr(terminal)
            for name in ENDING:
                number = getattr(signal, name)
                self._handlers[number] = signal.signal(number, self._end)
            self._before = before
            raw = termios.tcgetattr(terminal)
            raw[tty.IFLAG] &= ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR)
            raw[tty.LFLAG] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
            termios.tcsetattr(terminal, termios.TCSANOW, raw)  # unlike TCSAFLUSH it keeps what was typed
            self.in_line_mode = int.from_bytes(fcntl.ioctl(terminal, termios.FIONREAD, bytes(4)), sys.byteorder)
            self._screen_taken = True
            self._write(_ENTER.format(row=os.get_terminal_size(terminal).lines - 1))
        return self

    def hand_over(self) -> list[Any] | None:
        """Textual has the terminal now, and restores the screen.

        Returns the attributes that it has to restore; None: those that it found.
        """
        self._screen_taken = False
        self._restore_handlers()
        return self._before

    def __exit__(self, *_: object) -> None:
        if sys.platform == "win32" or self._before is None:
            return
        if self._screen_taken:
            self._write(_LEAVE)
        self._restore_handlers()
        assert sys.__stdin__ is not None
        with suppress(termios.error):  # it may be gone
            termios.tcsetattr(sys.__stdin__.fileno(), termios.TCSANOW, self._before)

    def _end(self, number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    def _restore_handlers(self) -> None:
        handlers, self._handlers = self._handlers, {}
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def _write(self, text: str) -> None:
        if sys.__stderr__ is not None:  # where Textual draws
            sys.__stderr__.write(text)
            sys.__stderr__.flush()

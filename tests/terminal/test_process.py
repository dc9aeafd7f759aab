from __future__ import annotations

import asyncio
import os
import pty
import signal
import sys
import termios
from collections.abc import Iterator
from io import FileIO, TextIOWrapper
from select import select

import pytest

from tui.terminal.input import with_enter
from tui.terminal.process import EarlyTerminal, on_interrupt


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Both ends of a terminal that is this program's: where a person is, where the program reads and writes."""
    person, program = pty.openpty()
    termios.tcsetwinsize(program, (24, 80))
    stream = TextIOWrapper(FileIO(program, "w", closefd=False), encoding="utf-8")
    monkeypatch.setattr(sys, "__stdin__", stream)
    monkeypatch.setattr(sys, "__stderr__", stream)
    monkeypatch.delenv("TEXTUAL_DRIVER", raising=False)
    yield person, program
    stream.close()
    os.close(person)
    os.close(program)


def written(person: int, program: int) -> str:
    os.write(program, b"END")
    text = b""
    while not text.endswith(b"END"):
        text += os.read(person, 1_000)
    return text.removesuffix(b"END").decode()


def test_what_is_typed_is_kept_and_enter_is_enter(terminal: tuple[int, int]) -> None:
    person, program = terminal
    os.write(person, b"hello\r")
    assert select([program], [], [], 10)[0]  # a line has arrived
    with EarlyTerminal() as early:
        os.write(person, b" you\r")
        typed = b""
        while not typed.endswith(b"\r"):
            typed += os.read(program, 100)
        assert typed == b"hello\n you\r"
        assert early.in_line_mode == len("hello\n")
        assert with_enter("hello\n you\r", early.in_line_mode) == "hello\r you\r"


def test_the_terminal_is_left_as_it_was_whatever_happens(terminal: tuple[int, int]) -> None:
    person, program = terminal
    before, handler = termios.tcgetattr(program), signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit, match="143"), EarlyTerminal():
        assert termios.tcgetattr(program) != before
        os.kill(os.getpid(), signal.SIGTERM)
    assert termios.tcgetattr(program) == before
    assert signal.getsignal(signal.SIGTERM) is handler
    assert written(person, program).endswith("\x1b[?2004l\x1b[?1049l")


def test_textual_gets_the_attributes_from_before_and_the_screen(terminal: tuple[int, int]) -> None:
    person, program = terminal
    before = termios.tcgetattr(program)
    with EarlyTerminal() as early:
        assert early.hand_over() == before
    assert termios.tcgetattr(program) == before
    assert "\x1b[?1049l" not in written(person, program)


def test_without_a_terminal_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "__stdin__", None)
    with EarlyTerminal() as early:
        assert early.hand_over() is None


@pytest.mark.parametrize(
    ("data", "size", "read"),
    [
        ("hello\n", 6, "hello\r"),
        ("grüße\nx", 8, "grüße\rx"),
        ("one\ntwo\n", 8, "one\ntwo\n"),  # a paste, perhaps
        ("half", 4, "half"),
        ("\n", 1, "\r"),
        ("x\n", 1, "x\n"),  # ctrl+j, in raw mode
    ],
)
def test_enter_in_line_mode(data: str, size: int, read: str) -> None:
    assert with_enter(data, size) == read


def test_ctrl_c_ends_a_program_that_does_not_end_itself() -> None:
    async def interrupted() -> None:
        ending = asyncio.Event()
        on_interrupt(ending.set)
        signal.raise_signal(signal.SIGINT)
        await ending.wait()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    handler = signal.getsignal(signal.SIGINT)
    try:
        asyncio.run(interrupted())
    finally:
        signal.signal(signal.SIGINT, handler)

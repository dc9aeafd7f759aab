"""Signals, and a terminal that goes away, end the program as ctrl+q does."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.terminal import FOREIGN
from tui.chat.store.store import SessionStore
from tui.config.files import unsent_files
from tui.messages import Message
from tui.terminal.process import ENDED

pytestmark = pytest.mark.slow


class Pty:
    """`chatctx ARGS` in a pseudo-terminal; `shown` is all that it wrote there."""

    def __init__(self, folder: Path, *args: str) -> None:
        (folder / "config.toml").write_text('model = "demo"\n')
        self.data = folder / "data"
        environ = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY") and k not in FOREIGN}
        environ |= {
            "CHATCTX_CONFIG": str(folder / "config.toml"),
            "CHATCTX_DATA_DIR": str(self.data),
            "CHATCTX_LOG_DIR": str(folder / "log"),
            "TERM": "xterm-256color",
        }
        self.master: int | None
        self.master, self.terminal = pty.openpty()
        termios.tcsetwinsize(self.terminal, (40, 120))
        self.before = termios.tcgetattr(self.terminal)
        self.shown = ""
        self.program = subprocess.Popen(
            [sys.executable, "-m", "tui", *args],
            stdin=self.terminal,
            stdout=self.terminal,
            stderr=self.terminal,
            env=environ,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )

    def type(self, text: str) -> None:
        assert self.master is not None
        os.write(self.master, text.encode())

    def read(self) -> None:
        if self.master is not None and select.select([self.master], [], [], 0.05)[0]:
            self.shown += os.read(self.master, 65_536).decode("utf-8", "replace")

    def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        """Read until `condition` holds."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.shown[-2000:]
            self.read()

    def hang_up(self) -> None:
        """The terminal's window is closed."""
        assert self.master is not None
        os.close(self.terminal)
        os.close(self.master)
        self.master = None

    def ended(self) -> int:
        """The exit code, once there is one."""
        self.until(lambda: self.program.poll() is not None)
        for _ in range(20):
            self.read()
        assert self.program.returncode is not None
        return self.program.returncode

    def close(self) -> None:
        if self.program.poll() is None:
            self.program.kill()
            self.program.wait()
        if self.master is not None:
            os.close(self.terminal)
            os.close(self.master)

    def stored(self) -> tuple[str, list[Message]]:
        """The draft and the messages of the last conversation."""
        store = SessionStore(self.data / "chatctx.db")
        try:
            info = store.sessions()[0]
            return info.draft, store.messages(info.id)
        finally:
            store.close()


def _take_terminal() -> None:
    import fcntl

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Pty]:
    """The chat on screen."""
    program = Pty(tmp_path)
    try:
        yield program
    finally:
        program.close()


def answering(chat: Pty) -> None:
    """In the middle of an answer, with a draft."""
    chat.until(lambda: "demo/guide" in chat.shown)
    chat.type("hello\r")
    chat.until(lambda: "This is the demo" in chat.shown)
    chat.type("a draft")
    chat.until(lambda: chat.stored()[0].endswith("a draft"))  # what the program has not read goes with the terminal


def check_answer(reply: Message) -> None:
    assert reply.role == "assistant" and reply.text.startswith("**This is the demo")
    assert reply.status == "complete" or (reply.status, reply.error) == ("interrupted", ENDED)


def check_kept(chat: Pty) -> None:
    draft, messages = chat.stored()
    assert draft.endswith("a draft")
    assert [message.role for message in messages] == ["user", "assistant"]
    check_answer(messages[1])
    assert list((chat.data / "running").iterdir()) == []


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT], ids=lambda number: number.name
)
def test_a_signal_ends_the_chat_as_ctrl_q_does(chat: Pty, number: signal.Signals) -> None:
    answering(chat)
    chat.program.send_signal(number)
    assert chat.ended() == 0
    assert termios.tcgetattr(chat.terminal) == chat.before
    assert "\x1b[?1049l" in chat.shown and chat.shown.rindex("\x1b[?25h") > chat.shown.rindex("\x1b[?25l")
    check_kept(chat)


def in_editor(chat: Pty) -> Path:
    """A draft goes to the editor. Returns its file, once the editor has written "more" behind it."""
    chat.until(lambda: "demo/guide" in chat.shown)
    chat.type("a draft\x07")
    chat.until(lambda: [path.read_text() for path in chat.data.glob("*/draft.md")] == ["a draft\nmore"])
    assert unsent_files([chat.data]) == []  # another program does not offer it
    return next(chat.data.glob("*/draft.md"))


@pytest.fixture
def editor(monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor that waits to be interrupted."""
    monkeypatch.setenv("VISUAL", """sh -c 'printf more >> "$1"; exec sleep 100' editor""")


@pytest.mark.usefixtures("editor")
def test_ctrl_c_in_an_editor_ends_only_that(tmp_path: Path) -> None:
    chat = Pty(tmp_path)
    try:
        file = in_editor(chat)
        chat.type("\x03")
        chat.until(lambda: "ended with code" in chat.shown)
        assert not file.exists()
        chat.type("\x11")
        assert chat.ended() == 0
    finally:
        chat.close()


@pytest.mark.usefixtures("editor")
def test_what_an_editor_has_is_found_after_a_kill(tmp_path: Path) -> None:
    chat = Pty(tmp_path)
    try:
        file = in_editor(chat)
        os.killpg(chat.program.pid, signal.SIGKILL)
        chat.program.wait(60)
        assert unsent_files([chat.data]) == [file]
        assert file.read_text() == "a draft\nmore" and file.parent.stat().st_mode & 0o077 == 0
        store = SessionStore(chat.data / "chatctx.db")
        assert store.recover_drafts("") == 1 and store.prompts() == ["a draft"]
        store.close()
    finally:
        chat.close()


def test_a_terminal_that_goes_away_costs_nothing(chat: Pty) -> None:
    answering(chat)
    chat.hang_up()
    chat.program.wait(60)
    check_kept(chat)


def test_a_terminal_that_takes_no_output_holds_nothing_up(chat: Pty) -> None:
    answering(chat)
    for number in range(100):  # more than it and a queue of thirty take
        termios.tcsetwinsize(chat.terminal, (40 + number % 2, 120))
        time.sleep(0.05)
    chat.type("s go on")
    end = time.monotonic() + 30
    while not chat.stored()[0].endswith("a drafts go on"):
        assert time.monotonic() < end
        time.sleep(0.1)
    chat.shown = ""
    chat.until(lambda: "a drafts go on" in chat.shown)
    chat.program.send_signal(signal.SIGTERM)
    assert chat.ended() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT], ids=lambda number: number.name)
def test_a_signal_ends_the_chat_by_lines_and_the_answer_is_kept(tmp_path: Path, number: signal.Signals) -> None:
    program = Pty(tmp_path, "--plain")
    try:
        program.until(lambda: "you: " in program.shown)
        program.type("hello\r")
        program.until(lambda: "This is the demo" in program.shown)
        program.program.send_signal(number)
        assert program.ended() == 130
        assert termios.tcgetattr(program.terminal) == program.before
        check_answer(program.stored()[1][-1])
        assert list((program.data / "running").iterdir()) == []
    finally:
        program.close()


def test_a_signal_ends_an_asking_program_and_the_answer_is_kept(tmp_path: Path) -> None:
    program = Pty(tmp_path, "ask", "hello")
    try:
        program.until(lambda: "This is the demo" in program.shown)
        program.program.send_signal(signal.SIGHUP)
        assert program.ended() in (0, 130)
        check_answer(program.stored()[1][-1])
        assert list((program.data / "running").iterdir()) == []
    finally:
        program.close()

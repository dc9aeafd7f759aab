"""Standard streams as they may be found: left by their reader, full, closed, in another encoding."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import one_line

Shell = Callable[..., "subprocess.CompletedProcess[str]"]
FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Runs a line of shell in which `$C` is the program with the demo, and its files in a folder of their own."""

    def call(line: str, **env: str) -> subprocess.CompletedProcess[str]:
        settings = {"CHATCTX_DATA_DIR": str(tmp_path), "CHATCTX_LOG_DIR": str(tmp_path), "CHATCTX_MODEL": "demo"}
        program = f"{shlex.quote(sys.executable)} -m tui"
        return subprocess.run(
            ["bash", "-c", line.replace("$C", program)],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "HOME": str(tmp_path), **settings, **env},
        )

    return call


@pytest.mark.slow
def test_a_reader_that_has_left_is_told_nothing(shell: Shell) -> None:
    done = shell("{ $C ask hello; echo $? >&2; } | sleep 0; echo 1 | { $C --plain; echo $? >&2; } | sleep 0")
    assert done.stderr.split() == ["1", "1"]


@pytest.mark.slow
def test_lines_that_nobody_reads_the_answers_to_are_not_sent(shell: Shell) -> None:
    shell("printf 'one\\ntwo\\n' | $C --plain | sleep 0")
    assert "one" in shell("$C sessions").stdout
    assert "No session contains" in shell("$C sessions two").stdout


@pytest.mark.slow
@FULL
def test_a_full_disk_is_said_once(shell: Shell) -> None:
    assert "No space left" in one_line(shell("$C sessions > /dev/full").stderr)
    assert "No space left" in one_line(shell("printf 'one\\ntwo\\n' | $C --plain > /dev/full").stderr)


@pytest.mark.slow
def test_a_closed_output_is_an_error_where_something_is_written(shell: Shell) -> None:
    for command in ("ask hello", "sessions"):
        done = shell(f"$C {command} >&-")
        assert "standard output is closed" in one_line(done.stderr)
        assert done.returncode == 1
    assert shell("$C sessions >&- 2>&-").returncode == 1
    assert shell("$C sessions 2>&-").returncode == 0
    assert "needs a terminal" in one_line(shell("$C <&- >&-").stderr)


def test_what_an_encoding_lacks_is_escaped(shell: Shell) -> None:
    done = shell("$C doctor", PYTHONIOENCODING="ascii")
    assert "\\u2713  chatctx" in done.stdout
    assert done.stderr == ""


@pytest.mark.slow
def test_bytes_that_are_no_text_and_a_folder_that_is_gone(shell: Shell, tmp_path: Path) -> None:
    assert "not UTF-8" in one_line(shell("$C sessions $'\\xff'").stderr)
    gone = f"mkdir {tmp_path}/x && cd {tmp_path}/x && rmdir {tmp_path}/x && $C ask hi"
    assert "working directory is gone" in one_line(shell(gone, PYTHONPATH=str(Path.cwd())).stderr)


@pytest.mark.slow
def test_ctrl_c_ends_a_command_whose_file_never_comes(tmp_path: Path) -> None:
    """A pipe that nobody writes to holds a thread: the first press ends the command, the second the wait for it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    env = {**os.environ, "CHATCTX_DATA_DIR": str(tmp_path), "CHATCTX_LOG_DIR": str(tmp_path), "CHATCTX_MODEL": "demo"}
    words = [sys.executable, "-m", "tui", "ask", "-a", str(pipe), "hello"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as program:
        try:
            until = time.monotonic() + 30
            while not (tmp_path / "chatctx.db").exists() and time.monotonic() < until:
                time.sleep(0.02)
            for _ in range(10):
                program.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    program.wait(0.5)
                    break
            assert (program.wait(5), *program.communicate()) == (130, "", "")
        finally:
            program.kill()


ENDING = """
import asyncio, sys, threading
from tui.app import LeftThreads
from tui.cli import streams

async def chat():
    asyncio.get_running_loop().set_default_executor(LeftThreads())
    await asyncio.to_thread(print, "stored")
    counting = asyncio.create_task(asyncio.to_thread(threading.Event().wait))
    await asyncio.sleep(0)
    counting.cancel()

asyncio.run(chat())
sys.exit(streams.exit_code(7))
"""


def test_the_end_does_not_wait_for_a_thread_that_counts() -> None:
    done = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (7, "stored\n")

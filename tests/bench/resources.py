"""What the program takes: memory when idle, after one exchange and after a hundred, and what one question costs.

Whole processes in a pseudo-terminal before a model server on loopback, beside a bare Textual app or a script that asks
through the official SDK. Compile the bytecode first (`uv sync --compile-bytecode`), or its compilation is what is
measured.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from tests.bench.model_server import MODEL, ModelServer
from tests.bench.peers import IDLE, PROMPT, chatctx
from tests.bench.program import Program, run_to_end
from tests.bench.rows import BenchRow
from tests.bench.startup import BARE

EXCHANGES, SIZE = 100, 2_000  # characters of a message and of an answer
HISTORY = 50_000  # messages of 400 characters
ROUNDS = 3
KINDS = {"openai": (60, 95), "anthropic": (60, 110)}
"""Megabytes at most, when idle and after one exchange."""

WITH_SDK = f"""
import sys
from openai import OpenAI
client = OpenAI(base_url=sys.argv[1] + "/v1", api_key="key")
for event in client.responses.create(model="{MODEL}", input="hello", stream=True):
    pass
"""

CHATCTX = [sys.executable, "-m", "tui"]


def rows() -> Iterable[BenchRow]:
    """Every row of this group."""
    bare = _bare()
    for kind, (idle, after) in KINDS.items():
        figures = _exchanges(kind, 1, "Hello there.", "hello")
        yield _memory(f"idle, {kind}", figures[0], bare, idle)
        yield _memory(f"after an exchange, {kind}", figures[1], bare, after)
    text = "Some words of an answer, and a few more. " * (SIZE // 41)
    yield _memory(f"after {EXCHANGES} exchanges of 2 KB", _exchanges("openai", EXCHANGES, text, text)[1], bare, 110)
    yield _memory(f"{HISTORY:,} messages open", _history(HISTORY), bare, 180)
    for kind in KINDS:
        yield from _question(kind)
    for kind in KINDS:
        yield from _first_request(kind)


def _memory(name: str, megabytes: float, bare: float, most: float) -> BenchRow:
    return BenchRow(f"memory {name}", megabytes, bare, most / bare, unit="MB")


def _env(folder: Path, url: str, kind: str) -> dict[str, str]:
    env = {**os.environ, "PYTHONPATH": str(Path.cwd()), **chatctx(kind)(folder, url)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return env


def _bare() -> float:
    """Megabytes of an app that has a line and a prompt."""
    with tempfile.TemporaryDirectory() as name, Program([sys.executable, "-c", BARE], os.environ, Path(name)) as app:
        app.wait_for(PROMPT.encode())
        time.sleep(IDLE)
        return app.memory()


def _exchanges(kind: str, count: int, answer: str, question: str) -> tuple[float, float]:
    """Megabytes when idle, and after `count` exchanges."""
    with tempfile.TemporaryDirectory() as name, ModelServer(answer) as server:
        folder = Path(name)
        with Program(CHATCTX, _env(folder, server.url, kind), folder) as program:
            program.wait_for(PROMPT.encode())
            time.sleep(IDLE)
            idle = program.memory()
            for number in range(count):
                program.type(f"\x1b[200~{question}\x1b[201~")
                time.sleep(0.2)
                program.type("\r")
                server.wait(number + 1)
                time.sleep(0.2)
            time.sleep(IDLE)
            return idle, program.memory()


def _history(messages: int) -> float:
    """Megabytes with a conversation of so many messages open, once it is measured."""
    from tui.chat.store.database import new_id
    from tui.chat.store.store import SessionInfo, SessionStore
    from tui.messages import Message, Text

    with tempfile.TemporaryDirectory() as name, ModelServer() as server:
        folder = Path(name)
        store = SessionStore(folder / "chatctx.db")
        store.create_session(SessionInfo(ident := new_id(), "long", "bench", MODEL, 0, 0))
        with store.transaction():
            for number in range(messages):
                text = (Text(f"{number} " + "some words here " * 25),)
                message = Message("user", text, new_id(), created_at=float(number))
                if number % 2:
                    message = replace(message, role="assistant", provider="bench", model=MODEL)
                store.add_message(ident, message)
        store.close()
        with Program([*CHATCTX, "--continue"], _env(folder, server.url, "openai"), folder) as program:
            program.wait_for(PROMPT.encode())
            time.sleep(2 * IDLE)
            return program.memory()


def _question(kind: str) -> Iterable[BenchRow]:
    """One short answer of `chatctx ask`, its first in a folder, beside the SDK alone."""
    with ModelServer() as server:
        runs: list[tuple[Sequence[float], Sequence[float]]] = []
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                env = _env(folder, server.url, kind)
                ours = run_to_end([*CHATCTX, "ask", "hello"], env, folder)
                runs.append((ours, run_to_end([sys.executable, "-c", WITH_SDK, server.url], env, folder)))
    own_seconds, seconds = (min(run[index][1] for run in runs) for index in (0, 1))
    own_memory, memory = (median(run[index][2] for run in runs) for index in (0, 1))
    yield BenchRow(f"ask, {kind}, processor time", own_seconds, seconds, 0.9)
    yield BenchRow(f"ask, {kind}, largest memory", own_memory, memory, 70 / memory, unit="MB")


def _first_request(kind: str) -> Iterable[BenchRow]:
    """From the start to the request of a chat whose message was typed before it took keys."""
    runs: list[tuple[Sequence[float], Sequence[float]]] = []
    with tempfile.TemporaryDirectory() as name, ModelServer() as server:
        folder = Path(name)
        env = _env(folder, server.url, kind)
        for _ in range(ROUNDS):
            with Program(CHATCTX, env, folder) as program:
                program.type("hello\r")
                server.wait(server.answered + 1)
                ours = server.request_times[-1] - program.began, program.processor_seconds()
            began, seconds, _ = run_to_end([sys.executable, "-c", WITH_SDK, server.url], env, folder)
            runs.append((ours, (server.request_times[-1] - began, seconds)))
    for index, what in enumerate(("by the clock", "processor time")):
        own_seconds, reference = (median(run[side][index] for run in runs) for side in (0, 1))
        yield BenchRow(f"first request, {kind}, {what}", own_seconds, reference, 1.0)

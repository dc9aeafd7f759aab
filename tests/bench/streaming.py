"""A whole program while an answer streams: bytes written to the terminal, and how often it waits for the disk.

Linux only; the disk rows need `strace` and are left out without it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.bench.model_server import MODEL, ModelServer
from tests.bench.program import Program
from tests.bench.rows import BenchRow

RATE, PIECE = 250.0, 4  # pieces a second, characters of one: a fast model
SECONDS = 8.0
PROMISED = 60.0  # kB/s
SLOW_SECONDS, ANSWER = 20.0, 4_000  # characters
SYNCS = 15

PROSE = "The loop stops one short: the last token is never visited, so everything after the final comma is lost. " * 5
CODE = 'def function(first, second):\n    value = first * 12 + second  # comment\n    return f"{value}"\n\n'
ROW = "| model name | 123,456 | 78.9 % | a longer remark on this line |\n"
TEXTS = {
    "prose": f"{PROSE}\n\n" * 20,
    "code": "```python\n" + CODE * 120,
    "a table": "| name | input | share | remark |\n|---|---:|---:|---|\n" + ROW * 160,
}


def rows() -> Iterable[BenchRow]:
    """Every row of this group."""
    for kind, text in TEXTS.items():
        sent = RATE * PIECE / 1_000
        written = _written(text[: int(RATE * PIECE * SECONDS)]) / 1_000
        name = f"bytes to the terminal, {kind} at {RATE:g} pieces a second, against its text"
        yield BenchRow(name, written, sent, PROMISED / sent, unit="kB/s")
    if (strace := shutil.which("strace")) is not None:
        name = f"fsyncs of an answer of 4 kB over {SLOW_SECONDS:g} s, against the promise"
        yield BenchRow(name, _syncs(strace), SYNCS, 1.0, unit="fsyncs")


def _written(text: str) -> float:
    """Bytes a second from the answer's begin to its end."""
    with ModelServer(text, PIECE, RATE) as server, _program(server) as program:
        _ask(program, server)
        time.sleep(1.0)  # the beginning: the screen is drawn whole
        before, began = len(program.shown), time.perf_counter()
        server.wait(1)
        return (len(program.shown) - before) / (time.perf_counter() - began)


def _syncs(strace: str) -> int:
    pieces = ANSWER / PIECE
    with tempfile.NamedTemporaryFile("r") as log, ModelServer(PROSE * 8, PIECE, pieces / SLOW_SECONDS) as server:
        server.text = server.text[:ANSWER]
        tracing = (strace, "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", log.name)
        with _program(server, tracing) as program:
            time.sleep(2.0)
            before = _count(Path(log.name))
            _ask(program, server)
            server.wait(1)
            time.sleep(2.0)
            return _count(Path(log.name)) - before


def _count(log: Path) -> int:
    return sum("sync(" in line for line in log.read_text(encoding="utf-8").splitlines())


def _ask(program: Program, server: ModelServer) -> None:
    program.wait_for(b"or / for commands")
    time.sleep(2.0)  # what follows the first frame
    program.type("hello\r")
    while not server.request_times:
        time.sleep(0.01)


class _Started(Program):
    """A program with a folder that goes when it ends."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], folder: str) -> None:
        super().__init__(command, env, Path(folder))
        self._path = folder

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        shutil.rmtree(self._path, ignore_errors=True)


def _program(server: ModelServer, before: Sequence[str] = ()) -> _Started:
    folder = tempfile.mkdtemp()
    config = Path(folder) / "config.toml"
    config.write_text(
        f'model = "bench/{MODEL}"\n[providers.bench]\nkind = "openai-compatible"\nbase_url = "{server.url}/v1"\n',
        encoding="utf-8",
    )
    env = {**os.environ, "CHATCTX_CONFIG": str(config), "CHATCTX_DATA_DIR": folder, "CHATCTX_LOG_DIR": folder}
    env["PYTHONPATH"] = str(Path(__file__).parents[2])
    return _Started([*before, sys.executable, "-m", "tui"], env, folder)

"""Commands over much data: whole processes, their processor time and memory beside what SQLite or json need for it."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from tests.bench.corpus import corpus_path
from tests.bench.rows import BenchRow, fastest
from tui.chat.store.calls import CallRow
from tui.chat.store.database import new_id
from tui.chat.store.store import SessionStore

CALLS = 100_000
USAGE_SECONDS, USAGE_MB = 0.25, 60.0
MESSAGES = 50_000
CONTEXT_SECONDS = 1.0
IMPORT_BYTES, IMPORT_SECONDS = 55_000_000, 3.0
_TEXT = re.compile(r'("(?:text|content|thinking)":")(?=[A-Za-z])')  # each copy is another conversation

SUMS = "count(*), sum(input_total), sum(output_total), sum(cost)"
GROUPED = f"SELECT provider, model, {SUMS} FROM calls NOT INDEXED GROUP BY 1, 2"


def rows() -> Iterable[BenchRow]:
    """Every row of this group."""
    for work in (_usage, _context, _import):
        with tempfile.TemporaryDirectory() as folder:
            yield from work(Path(folder))


def _usage(folder: Path) -> Iterable[BenchRow]:
    store = SessionStore(folder / "chatctx.db")
    chance, now = random.Random(1), time.time()
    names = ", ".join(CallRow.__dataclass_fields__)
    marks = ", ".join("?" * len(CallRow.__dataclass_fields__))
    with store.transaction() as db:
        db.executemany(
            f"INSERT INTO calls ({names}) VALUES ({marks})",
            ([getattr(call, name) for name in names.split(", ")] for call in _calls(chance, now)),
        )
    grouped = fastest(lambda: store.query(GROUPED), rounds=5)
    store.close()
    seconds, megabytes = min(_chatctx(folder, "usage") for _ in range(3))
    yield BenchRow(f"chatctx usage, {CALLS:,} calls, against GROUP BY", seconds, grouped, 20, at_most=USAGE_SECONDS)
    yield BenchRow("... its memory, against the promise", megabytes, USAGE_MB, 1.0, unit="MB")


def _calls(chance: random.Random, now: float) -> Iterable[CallRow]:
    models = [("anthropic", "claude-x"), ("openai", "gpt-5"), ("gemini", "gemini-3"), ("ollama", "qwen3")]
    for _ in range(CALLS):
        tokens = chance.randrange(1_000, 200_000)
        yield CallRow(
            new_id(), f"s{chance.randrange(200)}", None, "chat", *chance.choice(models),
            now - chance.random() * 300 * 86_400, "success", round(tokens * chance.gauss(1, 0.01)), tokens, "delta",
            tokens, 0, tokens, tokens // 2, 0, chance.randrange(5_000), 0, "provider", cost=chance.random(),
        )  # fmt: skip


def _context(folder: Path) -> Iterable[BenchRow]:
    from tests.bench.growth import fill

    fill(folder, MESSAGES)
    (folder / "config.toml").write_text('[providers.bench]\nbase_url = "http://127.0.0.1:9/v1"\n', encoding="utf-8")
    _chatctx(folder, "context", "s")  # counted once
    store = SessionStore(folder / "chatctx.db")
    read = fastest(lambda: store.messages("s"), rounds=3)
    store.close()
    seconds, _ = _chatctx(folder, "context", "s")
    name = f"chatctx context, {MESSAGES:,} messages, against reading them"
    yield BenchRow(name, seconds, read, 8, at_most=CONTEXT_SECONDS)


def _import(folder: Path) -> Iterable[BenchRow]:
    texts = [path.read_text(encoding="utf-8") for path in sorted(corpus_path("sessions/claude-code").glob("*.jsonl"))]
    if not texts:
        return
    files: list[Path] = []
    while sum(file.stat().st_size for file in files) < IMPORT_BYTES:
        files.append(folder / f"{len(files)}.jsonl")
        copy, number = divmod(len(files) - 1, len(texts))
        files[-1].write_text(_TEXT.sub(rf"\g<1>{copy} ", texts[number]), encoding="utf-8")
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines() if line]
    parsed = fastest(lambda: [json.loads(line) for line in lines], rounds=3)
    seconds, _ = _chatctx(folder, "import", *map(str, files))
    name = f"chatctx import, {IMPORT_BYTES / 1e6:.0f} MB of Claude Code, against json.loads"
    yield BenchRow(name, seconds, parsed, 20, at_most=IMPORT_SECONDS)


# A child's `ru_maxrss` begins with what its parent had; this is its own.
_RUN = """
import atexit, runpy, sys
report = sys.argv.pop(1)
def note():
    with open("/proc/self/status") as status, open(report, "w") as file:
        file.write(status.read().split("VmHWM:")[1].split()[0])
atexit.register(note)
runpy.run_module("tui", run_name="__main__", alter_sys=True)
"""


def _chatctx(folder: Path, *arguments: str) -> tuple[float, float]:
    """Processor seconds of a command, and the megabytes that it had at most."""
    (folder / "config.toml").touch()
    env = {
        **os.environ,
        "CHATCTX_CONFIG": str(folder / "config.toml"),
        "CHATCTX_DATA_DIR": str(folder),
        "CHATCTX_LOG_DIR": str(folder),
    }
    report = folder / "memory"
    command = [sys.executable, "-c", _RUN, str(report), *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=env) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return used.ru_utime + used.ru_stime, int(report.read_text(encoding="ascii")) / 1024

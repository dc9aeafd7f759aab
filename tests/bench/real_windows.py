"""`python -m tests.bench real_windows`: long conversations with a real llama.cpp server in a small window, each mode.

The embedded SmolLM2 in a window of 2,048 tokens, 200 turns of questions between a few and 900 tokens. Prints what each
mode did and what the server's log shows. Exit code 1 when a request was refused, a turn failed or something is lost.
It takes about ten minutes a mode on one core, so it is run by hand.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles

from tests import local_server
from tests.real.conftest import LlamaServer
from tui.chat.conversation.events import CompactionFinished, ContextTrimmed, Notice, TurnFailed
from tui.chat.turn.session import ChatSession
from tui.chat.workspace import Workspace
from tui.config.settings import ProviderSettings, Settings
from tui.providers.local import LocalServer, missing_part

MODES = ("rolling", "compaction")
TURNS = 200
WINDOW = 2_048
ANSWER = 24  # tokens kept free for an answer
SENTENCES = (
    "The harbour keeps nine boats and a crane that squeaks.",
    "In src/parser.py the loop stops one short, says line 412.",
    "港に船が九そうあり、赤い帆は誰にも直せない。",
    "error: expected ';' before '}' token (exit code 2)",
    "Die Wärterin schrieb die Zahl 5,127 in das Buch.",
    "def f(x):\n    return [x * 2 for _ in range(3)]",
)


@dataclass(frozen=True, slots=True)
class Figures:
    """What came of one conversation. Errors of predictions in tokens, sizes in tokens."""

    mode: str
    turns: int
    requests: int
    summary_calls: int
    trims: int
    compactions: int
    failed_turns: int
    refused_by_server: int
    lost: int
    largest_input: int
    median_error: float
    error_95: float
    warnings: int
    seconds: float


def questions(turns: int, seed: int = 1) -> Iterator[str]:
    """Short and long ones, in several scripts, the same each time."""
    chance = random.Random(seed)
    for number in range(turns):
        count = chance.choice((1, 1, 2, 3, 3, 6)) if chance.random() > 0.04 else 45  # now and then a paste
        yield f"{number}: {' '.join(chance.choice(SENTENCES) for _ in range(count))} What is number {number}?"


async def converse(server: LlamaServer, mode: str, turns: int, folder: Path) -> Figures:
    """One conversation of so many turns."""
    settings = Settings(
        model=f"real/{server.model}",
        providers={"real": ProviderSettings(base_url=f"{server.url}/v1")},
        data_dir=folder,
        log_dir=folder,
        rolling_context=mode == "rolling",
        reserve_output=ANSWER,
    )
    since, started = server.mark(), time.monotonic()
    counts = dict.fromkeys((ContextTrimmed, CompactionFinished, TurnFailed, Notice), 0)
    texts = list(questions(turns))
    workspace = await Workspace.open(settings)
    try:
        session = await workspace.new_session()
        for number, text in enumerate(texts):
            async for event in session.send(text):
                if type(event) in counts and getattr(event, "level", "") != "info":
                    counts[type(event)] += 1
            if number % 20 == 19:
                print(f"{mode}: {number + 1} turns, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
        return _figures(session, mode, texts, counts, len(server.refusals(since)), time.monotonic() - started)
    finally:
        await workspace.close()


def _figures(
    session: ChatSession, mode: str, texts: Sequence[str], counts: dict[type, int], refused: int, seconds: float
) -> Figures:
    stored = session.conversation.store.messages(session.id)
    calls = session._services.calls.rows(session.id)
    chat = [call for call in calls if call.kind == "chat"]
    pairs = [(c.predicted, c.input_total) for c in chat if c.predicted is not None and c.input_total is not None]
    errors = [abs(predicted - measured) for predicted, measured in pairs]
    stored_texts = [m.text for m in stored if m.role == "user" and m.kind == "chat"]
    answers = [m for m in stored if m.role == "assistant"]
    return Figures(
        mode=mode,
        turns=len(texts),
        requests=len(chat),
        summary_calls=len(calls) - len(chat),
        trims=counts[ContextTrimmed],
        compactions=counts[CompactionFinished],
        failed_turns=counts[TurnFailed],
        refused_by_server=refused,
        lost=sum(a != b for a, b in zip(stored_texts, texts, strict=False))
        + abs(len(texts) - len(stored_texts))
        + len(texts)
        - len(answers),
        largest_input=max((measured for _, measured in pairs), default=0),
        median_error=median(errors) if errors else 0.0,
        error_95=quantiles(errors, n=20)[-1] if len(errors) > 1 else 0.0,
        warnings=counts[Notice],
        seconds=round(seconds, 1),
    )


def measure(mode: str, turns: int, window: int) -> Figures:
    """Start a server of its own and talk to it."""
    with tempfile.TemporaryDirectory() as name:
        log_file = Path(name) / "server.log"
        with log_file.open("wb") as log:
            process = LocalServer(window=window, api_key="", log=log)
            try:
                server = LlamaServer(local_server.start(process), process.model, window, "", log_file, process)
                return asyncio.run(converse(server, mode, turns, Path(name)))
            finally:
                process.stop()


def main(argv: Sequence[str] | None = None) -> int:
    """Run and print. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench real_windows", description=__doc__)
    parser.add_argument("--mode", choices=MODES, action="append", help="one mode only; may be given again")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--window", type=int, default=WINDOW, help="tokens")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    arguments = parser.parse_args(argv)
    if problem := missing_part():
        print(problem, file=sys.stderr)
        return 2
    results = [measure(mode, arguments.turns, arguments.window) for mode in arguments.mode or MODES]
    if arguments.json:
        print(json.dumps([asdict(result) for result in results]))
    else:
        for name in asdict(results[0]):
            print(f"{name.replace('_', ' '):20}" + "".join(f"{getattr(result, name):>14}" for result in results))
    wrong = sum(r.failed_turns + r.refused_by_server + r.lost for r in results)
    print("nothing refused, nothing lost" if not wrong else "WRONG", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

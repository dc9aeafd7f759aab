"""`python -m tests.bench losses`: what is lost when the program is killed, or its store fails, at any moment.

A person writes, sends, queues, edits and leaves while answers stream, tools run and the conversation is compacted.
Either the process is killed at a random moment, or calls of the store (reads, writes, commits) and tools fail by
chance. Then the store is opened again and compared with what was typed and what had arrived. Exit code 1 when a word
was lost, more than a second of a stream, or the store did not open.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from tests.chat.fakes import FakeWorkspace, ScriptedProvider, Tools
from tests.screens.conftest import Running, wait_until
from tests.screens.scenarios import Scenario
from tui.app import ChatApp
from tui.chat.store.database import Database, StoreError
from tui.chat.store.store import SessionStore
from tui.chat.workspace import Workspace
from tui.config.settings import ProviderSettings, Settings
from tui.messages import FinishKind, Request
from tui.providers.base import StreamEnd, StreamEvent, TextDelta, ToolCallDelta
from tui.screens.chat.screen import OpenWorkspace

WINDOW = 1_800  # tokens: a few turns, then it is compacted
SETTLED = 1.0  # seconds after which nothing that was typed or had arrived may be lost
BEAT = 0.02  # seconds between two signs of life of the program, by which its time is told on a busy machine
ACTIONS = 12  # of a person before they leave
WAYS = (
    *("enter",) * 8,
    *("ctrl+c", "up", "down", "escape", "ctrl+n", "edit", "retry", "/new", "/compact", "/rename", "/system"),
)
FILLER = "The keeper counts the boats in the harbour and writes the number into the book. " * 4

Note = Callable[[str, str], None]
"""Takes "typed" or "arrived", and the word."""


@dataclass
class SlowServer(ScriptedProvider):
    """Streams answers of numbered words, calls a tool now and then, and summarises when asked."""

    window: int | None = WINDOW
    note: Note = lambda _kind, _word: None
    chance: random.Random = field(default_factory=random.Random)
    sent: int = 0

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        if request.messages[-1].id == "summary-request" or not request.session:
            self.fallback = lambda _: [TextDelta("They spoke of boats."), StreamEnd("stop", "stop")]
            async for event in super().stream(request):
                yield event
            return
        calls = request.messages[-1].role == "user" and self.chance.random() < 0.3
        words = [f"s{self.sent + number}t " for number in range(self.chance.randrange(1, 40))]
        self.sent += len(words)
        end: FinishKind = "tool_calls" if calls else "stop"
        call = [ToolCallDelta(0, f"c{self.sent}", "fetch", '{"id": 1}')] if calls else []
        answer: list[StreamEvent] = [*map(TextDelta, words), *call, StreamEnd(end, end)]
        self.fallback = lambda _: [*answer]
        async for event in super().stream(request):
            yield event
            if isinstance(event, TextDelta):
                self.note("arrived", event.text.strip())
                await asyncio.sleep(0.005)


class WatchedApp(ChatApp):
    """Remembers what it says when it ends."""

    def __init__(self, settings: Settings, open_workspace: OpenWorkspace) -> None:
        super().__init__(settings, open_workspace)
        self.last_words: list[str] = []

    def exit(self, result: None = None, return_code: int = 0, message: Any = None) -> None:
        """End the program."""
        self.last_words.append(str(message or ""))
        super().exit(result, return_code)


class Program(Running):
    """The program in a headless terminal, and what it says when it ends."""

    def __init__(self, app: WatchedApp, pilot: Any) -> None:
        super().__init__(app, pilot, Scenario())
        self.last_words = app.last_words


def settings_in(folder: Path) -> Settings:
    """Settings with everything in one folder."""
    providers = {"scripted": ProviderSettings(base_url="http://127.0.0.1:9")}
    return Settings(
        model="scripted/m", providers=providers, config_file=folder / "config.toml", data_dir=folder, log_dir=folder
    )


@asynccontextmanager
async def running(folder: Path, server: SlowServer, tools: Tools) -> AsyncIterator[Program]:
    """Start the program in `folder`."""
    settings = settings_in(folder)

    async def open_workspace() -> Workspace:
        workspace = await FakeWorkspace.open(settings)
        assert isinstance(workspace, FakeWorkspace)
        workspace.fake = server
        workspace.services.tools.sources = {tools.name: tools}
        return workspace

    app = WatchedApp(settings, open_workspace)
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        program = Program(app, pilot)
        await wait_until(pilot, lambda: app.chat.session is not None, seconds=60)
        yield program


async def use(program: Program, chance: random.Random, words: Iterator[str], note: Note) -> None:
    """Write a word, and let it leave the prompt in some way."""
    word, area = next(words), program.chat.composer.area
    area.move_cursor(area.document.end)  # or the word would stand in the middle of another
    await program.type(f" {word}" if area.text else word)
    note("typed", word)
    match chance.choice(WAYS):
        case "/new" | "/compact" | "/rename" | "/system" as command:
            await program.press("enter")
            if not program.chat.composer.value:  # else it was given back
                argument = f"{word}c" if command in ("/rename", "/system") else ""
                await program.type(f"{command} {argument}".rstrip())
                if argument:
                    note("typed", argument)
                await program.press("enter")
        case "edit":
            await program.press("enter", "alt+up", "e")
            await program.press("x")
        case "retry":
            await program.press("enter")
            if not program.chat.composer.value:
                await program.type("/retry")
                await program.press("enter")
        case "enter":
            await program.type(" " + FILLER[: chance.randrange(len(FILLER))])
            await program.press("enter")
            for _ in range(chance.randrange(12)):
                await program.pilot.pause(0.01)
        case key:
            await program.press(key)


def stored_text(folder: Path) -> str:
    """Opens the store and reads all that it has of words: messages, drafts and put-away prompts, also of answers."""
    store = SessionStore(settings_in(folder).database)
    try:
        store.recover()
        sessions = [row[0] for row in store.query("SELECT id FROM sessions")]
        texts = [message.text for session in sessions for message in store.messages(session)]
        texts += [text for row in store.query("SELECT draft, title FROM sessions") for text in row]
        texts += [json.dumps(record.data) for session in sessions for record in store.records(session)]
        return "\n".join([*texts, *store.prompts(10_000)])
    finally:
        store.close()


# -- kills -------------------------------------------------------------------------------------------------------------


@dataclass
class Loss:
    """What a kill cost: the program's own seconds between the oldest lost word and the kill.

    `words` are those that may not be lost.
    """

    typed: float = 0.0
    stream: float = 0.0
    words: list[str] = field(default_factory=list)
    opened: bool = True


def killed(seed: int, folder: Path) -> Loss:
    """Run the program in a process of its own, kill it at a random moment, and look at what is there."""
    log = folder / "typed.log"
    moment = random.Random(seed).uniform(0.5, 6.0)
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            asyncio.run(_live(seed, folder, log))
        os._exit(0)
    while not log.exists():  # the program is ready
        if os.waitpid(child, os.WNOHANG)[0]:
            raise RuntimeError("the program ended before it was ready")
        time.sleep(0.02)
    time.sleep(moment)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    loss = Loss()
    try:
        text = stored_text(folder)
    except StoreError:
        return Loss(opened=False)
    beats = 0
    for kind, word in (line.split() for line in reversed(log.read_text().splitlines())):
        beats += kind == "beat"
        if kind != "beat" and word not in text:
            if kind == "typed":
                loss.typed = beats * BEAT
            else:
                loss.stream = beats * BEAT
            if beats * BEAT >= SETTLED:
                loss.words.append(word)
    return loss


async def _live(seed: int, folder: Path, log: Path) -> None:
    chance = random.Random(seed)
    descriptor = os.open(log.with_suffix(".part"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(kind: str, word: str) -> None:
        os.write(descriptor, f"{kind} {word}\n".encode())

    async def beat() -> None:
        while True:
            await asyncio.sleep(BEAT)
            note("beat", "-")

    words = (f"w{seed}q{number}z" for number in range(1_000_000))
    async with running(folder, SlowServer(note=note, chance=chance), Tools()) as program:
        log.with_suffix(".part").rename(log)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(beat())
            while True:
                await use(program, chance, words, note)


# -- faults ------------------------------------------------------------------------------------------------------------


class Faults:
    """Lets calls of the store fail by chance: before they begin, or (a write) just before it is committed."""

    def __init__(self, chance: random.Random) -> None:
        self.share = 0.0
        self.failed = 0
        self._chance = chance

    def strike(self) -> None:
        """Raise `StoreError`, or not."""
        if self._chance.random() < self.share:
            self.failed += 1
            raise StoreError("the disk is full: free some space and try again")

    @contextmanager
    def in_store(self) -> Iterator[None]:
        """Every `Database` fails like that."""
        transaction, query = Database.transaction, Database.query
        faults = self

        @contextmanager
        def failing(store: Database, **how: bool) -> Iterator[Any]:
            faults.strike()
            with transaction(store, **how) as db:
                yield db
                faults.strike()

        def reading(store: Database, sql: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[Any]:
            faults.strike()
            return query(store, sql, values)

        with mock.patch.object(Database, "transaction", failing), mock.patch.object(Database, "query", reading):
            yield

    def fetch(self, arguments: Mapping[str, Any]) -> str:
        """A tool that fails as often, with what a tool may raise."""
        if self._chance.random() < self.share:
            raise self._chance.choice((OSError("no"), ValueError("no"), RecursionError(), StoreError("no")))
        return f"result of {json.dumps(dict(arguments))} " * 20


async def failing(seed: int, folder: Path) -> tuple[list[str], int]:
    """Use the program while its store and tools fail by chance. The words that are nowhere, and how often it failed."""
    chance = random.Random(seed)
    faults = Faults(random.Random(seed + 1))
    typed: list[str] = []
    server = SlowServer(chance=chance)
    words = (f"w{seed}q{number}z" for number in range(ACTIONS))
    with faults.in_store():
        async with running(folder, server, Tools(faults.fetch)) as program:
            faults.share = chance.choice((0.02, 0.1, 0.3, 1.0))
            for _ in range(ACTIONS):
                await use(program, chance, words, lambda kind, word: typed.append(word) if kind == "typed" else None)
            await program.press("ctrl+q")
            await wait_until(program.pilot, lambda: bool(program.last_words), seconds=60)
            faults.share = 0.0
        everywhere = stored_text(folder) + "\n".join(program.last_words)
    return [word for word in typed if word not in everywhere], faults.failed


# -- the program -------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; prints a line for each loss, then the sums."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench losses", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    lost = 0
    worst = Loss()
    for seed in range(options.seed, options.seed + options.kills):
        with tempfile.TemporaryDirectory() as folder:
            loss = killed(seed, Path(folder))
        worst.typed, worst.stream = max(worst.typed, loss.typed), max(worst.stream, loss.stream)
        if loss.words or not loss.opened:
            lost += 1
            what = f"lost {' '.join(reversed(loss.words))}" if loss.opened else "the store does not open"
            print(f"kill {seed}: {what}", flush=True)
    if options.kills:
        print(f"{options.kills} kills: at most {worst.typed:.2f} s of typing and {worst.stream:.2f} s of a stream lost")
    failed = 0
    for seed in range(options.seed, options.seed + options.faults):
        with tempfile.TemporaryDirectory() as folder:
            words, faults = asyncio.run(failing(seed, Path(folder)))
        failed += faults
        if words:
            lost += 1
            print(f"faults {seed}: lost {' '.join(words)}", flush=True)
    if options.faults:
        print(f"{options.faults} runs with {failed:,} calls of the store that failed")
    print(f"{lost} with losses")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

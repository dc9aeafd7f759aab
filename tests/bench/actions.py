"""`python -m tests.bench actions`: everything a person can do in a conversation, in any order, against an odd server.

After each action the laws are held against what is there: rows add up, looking changes nothing, history only grows,
memory and store say the same, no answer that was read is gone, nothing unpaired or too large is sent. Exit code 1 when
one was broken.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from tests.bench.actions_server import ODD, PICTURE, OddServer, OddTools
from tests.chat.fakes import FakeWorkspace, open_workspace
from tui.chat.attachments import make_attachment
from tui.chat.conversation.events import ApprovalAsked, ReplyDelta, SessionEvent
from tui.chat.store import database
from tui.chat.store.database import Database, StoreError
from tui.chat.turn.session import ChatSession
from tui.config.settings import ToolSettings
from tui.errors import ExpectedError
from tui.messages import Attachment, Message
from tui.providers.base import Capabilities
from tui.tools.approval import Decision

ACTIONS = (
    *("send",) * 5,
    *("stop", "stop", "retry", "edit", "undo", "compact", "preview", "summary", "rolling", "pin", "exclude", "fork"),
    *("model", "model", "window", "reopen", "second", "system", "effort", "tools", "measured", "switch", "full"),
    *("export", "clock"),
)
_ANSWERS: tuple[Decision, ...] = ("once", "session", "always", "no", "never")
_ABLE = (
    Capabilities(),
    Capabilities(reasoning_return="always", needs_signature=True),
    Capabilities(reasoning_return="tool_loop"),
    Capabilities(count_endpoint=True, count_freely=True),
    Capabilities(tools=False),
    Capabilities(images=False),
    Capabilities(count_endpoint=True),
    Capabilities(reasoning_return="always"),
)


@dataclass
class Person:
    """One conversation of `steps` actions. `faults` are the laws that were broken, `done` the actions so far."""

    seed: int
    faults: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    async def run(self, steps: int) -> None:
        """All of it; ends with the first fault."""
        self._chance = random.Random(self.seed)
        self._server = OddServer(able=self._chance.choice(_ABLE), chance=self._chance, believes=self._believed)
        self._full, self._behind = False, False
        self._kept: dict[str, Message] = {}
        self._read: set[str] = set()  # answers of which something was on screen
        with tempfile.TemporaryDirectory() as folder, _clock() as self._clock, self._disk():
            self._folder = Path(folder)
            await self._open(None)
            while len(self.done) < steps and not self.faults:
                self.done.append(self._chance.choice(ACTIONS))
                await asyncio.wait_for(self._act(self.done[-1]), 60)
                await self._check()
                self.faults += self._server.faults
            await self._stack.aclose()

    def _believed(self, request: Any) -> Any:
        return self._session.usage if request.session == self._session.id and not self._behind else None

    # -- what a person does --------------------------------------------------------------------------------------------

    async def _open(self, resume: str | None) -> None:
        self._stack = contextlib.AsyncExitStack()
        self._workspace = await self._stack.enter_async_context(self._another())
        self._session = await (self._workspace.resume(resume) if resume else self._workspace.new_session())
        self._behind = False

    def _another(self) -> contextlib.AbstractAsyncContextManager[FakeWorkspace]:
        tools, settings = OddTools(self._chance), ToolSettings(steps=5)
        return open_workspace(
            self._folder,
            self._server,
            tools=tools,
            tool_settings=settings,
            preserve_recent_turns=self._chance.choice((1, 4)),
        )

    async def _act(self, action: str) -> None:
        chance, session = self._chance, self._session
        messages = session.messages
        model = f"scripted/{chance.choice(('m', 'm', 'small', 'unknown'))}"
        match action:
            case "send" | "stop":
                await self._hear(
                    session.send(self._words(), self._files()), chance.randrange(1, 9) if action == "stop" else 0
                )
            case "retry":
                await self._hear(session.retry())
            case "edit" if questions := [m for m in messages if m.role == "user" and m.kind == "chat"]:
                await session.rewind(chance.choice(questions[-4:]).id)
                await self._hear(session.send(self._words()))
            case "undo":
                await session.undo()
            case "compact":
                await self._hear(session.compact(), chance.choice((0, 0, 1, 2)))
            case "preview" | "summary":
                with contextlib.suppress(ExpectedError):
                    await self._summary(action == "preview")
            case "rolling":
                await session.set_rolling(not session.conversation.info.rolling)
            case "pin" | "exclude" if messages:
                await getattr(session, action)(chance.choice(messages).id, chance.random() < 0.6)
            case "fork" if whole := [m for m in messages if m.kind == "chat" and m.status == "complete"]:
                if not session.conversation.unsaved:
                    self._session, self._kept = await self._workspace.fork(session.id, chance.choice(whole).id), {}
                    self._read = set()
            case "model":
                await session.set_model(model)
            case "switch":
                await self._hear(session.compact_for(model))
            case "measured":
                await session.measured_for(model)
            case "window":
                await session.set_window(chance.choice((None, None, 500, 3_000)))
            case "reopen":
                await session.conversation.save_draft("")  # as the screen does on leaving
                await self._stack.aclose()
                database._last = 0  # as in another run of the program
                await self._open(session.id)
            case "second":
                await self._elsewhere()
            case "system":
                await session.set_system(chance.choice(("", "Be short.", "system " * 100)))
            case "effort":
                await session.set_reasoning(chance.choice((None, "off", "high")))
            case "tools":
                await session.tools.switch(chance.choice(("fetch", "*")), chance.random() < 0.7)
            case "full":
                await self._on_a_full_disk()
            case "export" if messages and not self._behind and not session.conversation.unsaved:
                await self._there_and_back()
            case "clock":
                self._clock[0] -= 3_600_000_000_000

    async def _hear(
        self, events: AsyncIterator[SessionEvent], stop_after: int = 0, session: ChatSession | None = None
    ) -> None:
        session = session or self._session
        number = 0
        async for event in events:
            number += 1
            if isinstance(event, ReplyDelta) and session is self._session:
                self._read.add(event.message_id)
            if isinstance(event, ApprovalAsked):
                session.tools.approve(event.id, self._chance.choice(_ANSWERS))
            if number == stop_after:
                session.cancel()

    def _words(self) -> str:
        if self._chance.random() < 0.15:
            return self._chance.choice(ODD)
        return f"{len(self.done)} " + "lorem ipsum " * self._chance.choice((2, 5, 20, 60, 200))

    def _files(self) -> Sequence[Attachment]:
        if self._chance.random() > 0.15:
            return ()
        data = self._chance.choice((b"some text " * 90, PICTURE))
        attachment = make_attachment("file", data)
        self._workspace.store.put_blob(attachment.sha256, data)
        return (attachment,)

    async def _summary(self, new: bool) -> None:
        compactor = self._session.compactor
        text = self._chance.choice(("short", " ", "long " * 800, "\ud800"))
        if new:
            draft = await compactor.draft_summary()
            await draft.measure(text)
            await draft.accept(text)
        elif (current := compactor.current_summary()) is not None:
            await current.accept(text)

    async def _elsewhere(self) -> None:
        """Another program has the same conversation open and talks in it at the same time."""
        self._behind = True
        async with self._another() as workspace:
            other = await workspace.resume(self._session.id)
            mine = self._session.send("here " * 9)
            theirs = self._chance.choice((other.compact, lambda: other.send("there " * 9)))()
            await asyncio.gather(self._hear(mine), self._hear(theirs, session=other))

    async def _on_a_full_disk(self) -> None:
        self._full = True
        try:
            with contextlib.suppress(StoreError):
                await self._hear(self._session.send(self._words()))
                await self._session.conversation.update(title="x")
                await self._hear(self._session.compact())
        finally:
            self._full = False

    async def _there_and_back(self) -> None:
        path = self._folder / f"{len(self.done)}.jsonl"
        await self._session.export(path)
        info = (await self._workspace.import_file(path, again=True)).info
        both = [
            [(m.role, m.parts, m.kind) for m in self._workspace.store.messages(i)] for i in (self._session.id, info.id)
        ]
        if both[0] != both[1]:
            self.faults.append("an export came back changed")

    @contextlib.contextmanager
    def _disk(self) -> Iterator[None]:
        """While `_full` is set, every second write fails."""
        write = Database.transaction

        @contextlib.contextmanager
        def transaction(database: Database, **how: bool) -> Iterator[Any]:
            if self._full and self._chance.random() < 0.5:
                raise StoreError("the disk is full")
            with write(database, **how) as db:
                yield db

        with mock.patch.object(Database, "transaction", transaction):
            yield

    # -- the laws ------------------------------------------------------------------------------------------------------

    async def _check(self) -> None:
        session, query = self._session, self._workspace.store.query
        tables = ("messages", "records", "calls")
        before = [query(f"SELECT * FROM {table}") for table in tables]
        usage = await session.refresh_usage()
        parts = [usage.space.reserve, usage.space.buffer, usage.space.free, usage.space.over]
        numbers = [
            usage.total,
            usage.upper_bound,
            *(row.tokens for row in usage.rows),
            *(p for p in parts if p is not None),
        ]
        if any(number < 0 for number in numbers) or sum(row.tokens for row in usage.rows) != usage.total:
            self.faults.append(f"rows do not add up: {numbers}")
        if (
            usage.limits.context is not None
            and usage.total + sum(p or 0 for p in parts[:3]) - (usage.space.over or 0) != usage.limits.context
        ):
            self.faults.append(f"the window does not add up: {usage.total}, {parts} of {usage.limits.context}")
        assert session.conversation.not_sent() is not None
        if [query(f"SELECT * FROM {table}") for table in tables] != before:
            self.faults.append("looking changed something")
        waiting = {m.id for m in session.conversation.unsaved}
        stored = [m for m in self._workspace.store.messages(session.id) if m.id not in waiting]
        if not self._behind and stored != [m for m in session.messages if m.id not in waiting]:
            self.faults.append("memory and store differ")
        there = {m.id: m for m in stored}
        if [ident for ident, message in self._kept.items() if there.get(ident) != message]:
            self.faults.append("history was changed")
        if lost := self._read - {m.id for m in session.messages}:
            self.faults.append(f"{len(lost)} answers that were read are gone")
        self._kept = {ident: message for ident, message in there.items() if message.status != "streaming"}


@contextlib.contextmanager
def _clock() -> Iterator[list[int]]:
    """What the clock is set back by, in nanoseconds."""
    offset, now = [0], time.time_ns
    with mock.patch("tui.chat.store.database.time.time_ns", lambda: now() + offset[0]):
        yield offset


def main(argv: Sequence[str] | None = None) -> int:
    """Run and print. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench actions", description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--people", type=int, default=100, help="conversations")
    parser.add_argument("--steps", type=int, default=60, help="actions of each")
    arguments = parser.parse_args(argv)
    logging.disable(logging.CRITICAL)
    wrong = 0
    for seed in range(arguments.first, arguments.first + arguments.people):
        person = Person(seed)
        asyncio.run(person.run(arguments.steps))
        wrong += bool(person.faults)
        for fault in person.faults:
            print(f"{seed}: {fault}, after {' '.join(person.done[-8:])}")
    print(f"{arguments.people} people, {arguments.people * arguments.steps} actions, {wrong} with a fault")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""What a person wrote is in the conversation, the draft, the prompt history or on the terminal, whatever fails."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.test_app import Real, running, settings_in
from tui.chat.store.database import Database, StoreError
from tui.chat.store.store import SessionInfo, SessionStore
from tui.config.settings import Settings

RUNS = int(os.environ.get("CHATCTX_FAULT_RUNS", "8"))


@pytest.fixture(autouse=True)
def quick_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses between the words of the demo."""
    monkeypatch.setattr("tui.providers.local.demo.PAUSE", 0)


class Faults:
    """Lets each transaction of the store fail by chance, before it begins or before it is committed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
        self.share = 0.0
        self.failed = 0
        self._chance = random.Random(seed)
        whole = Database.transaction
        faults = self

        @contextmanager
        def transaction(database: Database) -> Iterator[sqlite3.Connection]:
            if faults._strikes():
                raise StoreError("the disk is full: free some space and try again")
            with whole(database) as db:
                yield db
                if faults._strikes():
                    raise StoreError("the store is held by another program")

        monkeypatch.setattr(Database, "transaction", transaction)

    def _strikes(self) -> bool:
        strikes = self._chance.random() < self.share
        self.failed += strikes
        return strikes


@contextmanager
def last_words(run: Real) -> Iterator[list[str]]:
    """What the program says on the terminal when it ends."""
    said: list[str] = []
    whole = run.app.exit

    def leave(result: None = None, return_code: int = 0, message: object = None) -> None:
        said.append(str(message or ""))
        whole(result, return_code)

    run.app.exit = leave  # type: ignore[method-assign]
    yield said


def stored(settings: Settings) -> str:
    """All that the store holds of a person's words."""
    store = SessionStore(settings.database)
    try:
        sessions = [row[0] for row in store.query("SELECT id FROM sessions")]
        texts = [message.text for session in sessions for message in store.messages(session)]
        texts += [row[0] for row in store.query("SELECT draft FROM sessions")]
        return "\n".join([*texts, *store.prompts(10_000)])
    finally:
        store.close()


WAYS = ("enter", "enter", "enter", "ctrl+c", "up", "up", "down", "escape", "/new", "/system", "ctrl+n", "edit")


async def act(run: Real, chance: random.Random, word: str) -> None:
    """Write `word`, and let it leave the prompt in some way."""
    await run.press(*word)
    match chance.choice(WAYS):
        case "/new" | "/system" as command:
            await run.press("enter")
            if not run.chat.composer.value:  # else it was given back
                await run.press(*f"{command} {word}s", "enter")
        case "edit":
            await run.press("enter", "alt+up", "e")
            await run.press("x")
        case "enter":
            await run.press("enter")
            for _ in range(chance.randrange(3)):
                await run.pilot.pause()
        case key:
            await run.press(key)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(RUNS))
async def test_no_word_is_lost_where_the_store_fails_by_chance(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_in(tmp_path)
    chance = random.Random(seed)
    faults = Faults(monkeypatch, seed)
    words = [f"w{seed}q{number}z" for number in range(6)]
    async with running(settings) as run:
        with last_words(run) as said:
            faults.share = chance.choice((0.2, 0.5, 1.0))
            for word in words:
                await act(run, chance, word)
            await run.press("ctrl+q")
            await run.until(lambda: bool(said))
    faults.share = 0.0
    everywhere = stored(settings) + "\n".join(said)
    assert faults.failed
    assert [word for word in words if word not in everywhere] == []


async def test_a_message_that_cannot_be_stored_is_a_draft_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_in(tmp_path)
    faults = Faults(monkeypatch, 0)
    async with running(settings) as run:
        faults.share = 1.0
        await run.type("a long thought")
        await run.press("enter")
        await run.shows("was not sent")
        await run.answered()
        assert run.chat.composer.value == "a long thought"
        faults.share = 0.0
        await run.press("enter")
        await run.answered()
        assert [message.text for message in run.session.messages if message.role == "user"] == ["a long thought"]


async def test_two_programs_on_one_session_lose_neither_draft(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    async with running(settings) as one:
        await one.type("hello")
        await one.press("enter")
        await one.answered()
        async with running(settings, resume="") as two:
            assert two.session.id == one.session.id
            await one.type("draft of the first")
            await two.type("draft of the second")
            await one.chat.drafts.save()
            await two.chat.drafts.save()
            await one.press(*" and more")
            await one.chat.drafts.save()
        everywhere = stored(settings)
        assert "draft of the second" in everywhere and "draft of the first and more" in everywhere
    everywhere = stored(settings)
    assert "draft of the second" in everywhere and "draft of the first and more" in everywhere


def test_a_draft_is_not_replaced_by_what_another_program_did_not_see(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "chatctx.db")
    store.create_session(SessionInfo("s", "", "demo", "guide", 0, 0))
    store.save_draft("s", "mine", "")
    store.save_draft("s", "theirs", "")
    assert store.prompts() == ["mine"]
    store.save_draft("s", "", "theirs")
    assert store.prompts() == ["mine"]
    store.close()

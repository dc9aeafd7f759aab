"""What a person wrote is in the conversation, the draft, the prompt history or on the terminal, whatever fails."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.bench.losses import Faults, stored_text
from tests.e2e.test_app import running, settings_in
from tui.chat.store.store import SessionInfo, SessionStore
from tui.config.files import unsent_files

pytestmark = pytest.mark.usefixtures("quick_demo")


async def test_a_message_that_cannot_be_stored_is_a_draft_again(tmp_path: Path) -> None:
    faults = Faults(random.Random(0))
    with faults.in_store():
        async with running(settings_in(tmp_path)) as run:
            faults.share = 1.0
            await run.type("a long thought")
            await run.press("enter")
            await run.shows("was not sent")
            await run.answered()
            assert run.chat.composer.value == "a long thought"
            faults.share = 0.0
            await run.press("enter")
            await run.answered()
            sent = [message.text for message in run.session.messages if message.role == "user"]
            assert sent == ["a long thought"]


async def test_what_can_not_be_stored_is_in_a_file_where_no_terminal_shows_it(tmp_path: Path) -> None:
    faults = Faults(random.Random(0))
    with faults.in_store():
        async with running(settings_in(tmp_path)) as run:
            await run.type("hello")
            await run.press("enter")
            await run.answered()
            faults.share = 1.0
            await run.type("a long thought")
            await run.press("ctrl+q")
            await run.until(lambda: not run.app.is_running)
    (file,) = unsent_files([tmp_path])
    assert file.read_text() == "a long thought" and file.stat().st_mode & 0o077 == 0
    async with running(settings_in(tmp_path)) as run:
        await run.shows("Text that was not stored is in")


async def test_a_draft_that_can_not_be_stored_goes_to_the_editor(tmp_path: Path) -> None:
    faults = Faults(random.Random(0))
    with faults.in_store():
        async with running(settings_in(tmp_path)) as run:
            await run.type("a long thought")
            faults.share = 1.0
            await run.press("ctrl+g")
            await run.shows("An editor needs a terminal")
            faults.share = 0.0


async def test_the_draft_of_a_conversation_that_was_never_begun_is_recalled_at_the_next_start(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    async with running(settings) as run:
        await run.type("a thought")
        await run.chat.drafts.save()
    async with running(settings) as run:
        await run.shows("The up key brings back your last draft")
        await run.press("up")
        await run.until(lambda: run.chat.composer.value == "a thought")
    async with running(settings) as run:  # it is a draft again, and is not lost the second time either
        await run.press("up")
        await run.until(lambda: run.chat.composer.value == "a thought")


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
        everywhere = stored_text(tmp_path)
        assert "draft of the second" in everywhere and "draft of the first and more" in everywhere
    everywhere = stored_text(tmp_path)
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

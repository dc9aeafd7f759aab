"""`/provider` as a person meets it: from the first screen to a chat that works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from textual.events import Key

from tests.providers.replay import Answer, ReplayServer, model_server
from tests.screens.conftest import SIZES, Running, running
from tests.screens.scenarios import Scenario
from tui.views.view import Field, Form, may_be_secret

SECRET = "sk-test-4711-do-not-tell"


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ReplayServer]:
    monkeypatch.setenv("LAB_KEY", SECRET)
    async with model_server("one") as running:
        yield running


LOCAL = Scenario(provider="local", model="smol")


async def fill(run: Running, *values: str) -> None:
    """Type into one field after the other."""
    for value in values:
        await run.press("ctrl+a", "ctrl+k")  # to the beginning, then all of it away
        await run.type(value)
        await run.press("tab")


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES[:2])
async def test_from_the_first_screen_to_another_server(
    size: tuple[int, int], server: ReplayServer, tmp_path: Path
) -> None:
    async with running(LOCAL, folder=tmp_path, size=size) as run:
        await run.shows("/provider", "OpenAI, Anthropic, or any other server")
        await run.command("/provider")
        await run.shows("Anthropic", "needs a key", "Which provider?")
        await run.type("compatible")
        await run.shows("Other: an OpenAI-compatible server")
        await run.press("enter")
        await run.shows("Keys are not stored")
        await fill(run, "lab", f"{server.url}/v1", "NOT_SET_ANYWHERE")
        await run.press("enter")
        await run.shows("✗ NOT_SET_ANYWHERE is not set")
        await run.press("shift+tab")
        await fill(run, "LAB_KEY")
        server.by_path["/v1/models"] = Answer(
            [b'{"error": {"message": "Incorrect API key"}}'], 401, content_type="application/json"
        )
        await run.press("enter")
        await run.shows("✗ lab: HTTP 401")
        assert not (tmp_path / "config.toml").exists() and run.model == "local/smol"
        server.json({"data": [{"id": "one"}]}, path="/v1/models")
        await run.press("enter")
        await run.until(lambda: run.session.provider == "lab")
        await run.shows("lab is ready")
        assert 'api_key_env = "LAB_KEY"' in (tmp_path / "config.toml").read_text()
        assert SECRET not in run.text and SECRET not in (tmp_path / "config.toml").read_text()


@pytest.mark.slow
async def test_a_key_typed_into_the_form_is_neither_shown_again_nor_kept(tmp_path: Path) -> None:
    async with running(LOCAL, folder=tmp_path) as run:
        await run.command("/login anthropic")
        await run.shows("Anthropic", "ANTHROPIC_API_KEY")
        await fill(run, SECRET)
        await run.press("enter")
        await run.shows("✗ That is not the name of a variable")
        await run.until(lambda: SECRET not in run.text)
        await run.press("escape")
        await run.until(lambda: run.app.screen is run.chat)
        assert run.model == "local/smol" and not (tmp_path / "config.toml").exists()


async def test_keys_typed_ahead_go_to_the_field_that_they_were_meant_for() -> None:
    form = Form("A form", "", (Field("city", "City"), Field("street", "Street")), "send", "")
    async with running() as run:
        asking = asyncio.create_task(run.chat.ui.ask(form))
        await run.shows("A form")
        keys = [*"Paris", "tab", *"RueX", "enter"]
        for key in keys:
            run.app.post_message(Key(key, key if len(key) == 1 else None))
        assert await asking == {"city": "Paris", "street": "RueX"}


@pytest.mark.slow
async def test_a_half_filled_form_is_a_part_of_the_draft_until_it_is_closed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tui.screens.chat.drafts.SAVE_PAUSE", 0.0)
    form = Form(
        "The server asks",
        "",
        (
            Field("city", "City"),
            Field("street", "Street", "High Street"),
            Field("pin", "PIN", secret=may_be_secret("pin", "PIN")),
        ),
        "send",
        "",
    )
    async with running(folder=tmp_path) as run:
        await run.type("my draft")
        asking = asyncio.create_task(run.chat.ui.ask(form))
        await run.shows("The server asks")
        for text in ("Paris", f" {SECRET}", "4711"):
            await run.type(text)
            await run.press("tab")
        await run.until(
            lambda: run.session.conversation.info.draft.startswith("city: Paris\nstreet: High Street [key]")
        )
        assert run.session.conversation.info.draft.endswith("my draft")
        assert "4711" not in run.session.conversation.info.draft and "pin" not in run.session.conversation.info.draft
        await run.press("escape")
        assert await asking is None
        await run.until(lambda: run.session.conversation.info.draft == "my draft")

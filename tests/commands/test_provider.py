"""`/provider`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.commands.scripted_ui import Commands
from tests.providers.replay import ReplayServer, model_server
from tui.views.view import Form, Menu, RejectedError

SECRET = "sk-test-4711-do-not-tell"


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ReplayServer]:
    """A server with one model, whose key is in LAB_KEY."""
    monkeypatch.setenv("LAB_KEY", SECRET)
    async with model_server("one") as running:
        yield running


async def test_a_server_of_ones_own_is_tried_and_used(commands: Commands, server: ReplayServer) -> None:
    values = {"name": "Lab", "address": f"{server.url}/v1", "variable": "LAB_KEY", "command": ""}
    ui = await commands.run("/provider", "+openai-compatible", values)
    menu, form = ui.questions
    assert isinstance(menu, Menu) and isinstance(form, Form)
    assert any(option.key == "anthropic" for option in await menu.source(""))
    assert "lab is ready" in ui.output[0] and "is the model from now on" in ui.output[1]
    assert commands.session.provider == "lab"
    assert SECRET not in str(ui.output)


async def test_a_key_typed_as_an_argument_is_neither_repeated_nor_stored(commands: Commands) -> None:
    for key in (SECRET, "AIzaSyA1234567890abcdefghijklmnopqrstu"):
        assert key.lower() not in (await commands.refusal(f"/provider openai {key}")).lower()
        await commands.workspace.add_prompt(f"/provider openai {key}")
    await commands.workspace.add_prompt(f"what is {SECRET}?")  # a message is the person's
    assert commands.workspace.store.prompts() == [*["/provider openai [key]"] * 2, f"what is {SECRET}?"]


async def test_what_is_no_variable_is_taken_off_the_screen(commands: Commands) -> None:
    with pytest.raises(RejectedError) as rejected:
        await commands.run("/provider anthropic", {"variable": SECRET, "command": ""})
    assert SECRET not in str(rejected.value)
    assert rejected.value.clear == ("variable",)


async def test_cancelled_nothing_is_changed(commands: Commands) -> None:
    assert (await commands.run("/login anthropic", None)).output == []
    assert (await commands.run("/provider", None)).output == []
    assert commands.session.provider == "scripted"


async def test_an_unknown_one_is_refused(commands: Commands) -> None:
    assert "There is no provider 'nobody'" in await commands.refusal("/provider nobody")
    assert "/provider anthropic" in await commands.completions("/provider anth")

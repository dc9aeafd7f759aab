"""What an MCP server asks, on the screen."""

from __future__ import annotations

import asyncio

import pytest
from textual.events import Paste

from tests.screens.conftest import running
from tests.screens.scenarios import Scenario
from tui.screens.question import QuestionPanel
from tui.tools.mcp.questions import Field, FormQuestion, Reply

QUESTION = FormQuestion("crm", "Who is it for?", (Field("name", "Name", required=True), Field("age", "Age", "integer")))


@pytest.mark.slow
async def test_a_question_is_a_panel_whose_first_answer_is_to_do_nothing() -> None:
    async with running(Scenario()) as run:
        asking = asyncio.create_task(run.chat.answer_server(QUESTION))
        await run.shows("The MCP server crm asks", "Who is it for?", "Not now")
        await run.press("enter")
        assert await asking == Reply("cancel")
        asking = asyncio.create_task(run.chat.answer_server(QUESTION))
        await run.shows("Answer   fill it in")
        await run.press("down", "down", "enter")
        await run.shows("send", "a whole number")
        await run.type("Ann")
        await run.press("enter")
        assert await asking == Reply("accept", {"name": "Ann"})


@pytest.mark.slow
async def test_a_question_that_has_become_pointless_goes_away() -> None:
    async with running(Scenario(), size=(60, 20)) as run:
        asking = asyncio.create_task(run.chat.answer_server(QUESTION))
        await run.shows("The MCP server crm asks")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await run.until(lambda: run.app.screen is run.chat)


@pytest.mark.slow
async def test_what_is_being_written_goes_on_in_the_prompt() -> None:
    async with running(Scenario()) as run:
        await run.type("hel")
        asking = asyncio.create_task(run.chat.answer_server(QUESTION))
        await run.shows("The MCP server crm asks")
        panel = run.app.screen
        assert isinstance(panel, QuestionPanel)
        panel._clock = lambda: 0.0  # no time passes
        await run.type("lo")
        await run.press("enter")
        panel.on_paste(Paste(" pasted"))
        assert run.chat.composer.value == "hello pasted" and not asking.done()
        panel._clock = lambda: 100.0
        await run.press("enter")
        assert await asking == Reply("cancel")

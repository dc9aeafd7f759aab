"""`/prompt`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.chat.fakes import ScriptedProvider
from tests.commands.scripted_ui import Commands
from tui.chat.servers import Servers
from tui.commands import CommandError
from tui.commands.prompt import call_form, parse_prompt
from tui.tools.base import ToolImage
from tui.tools.mcp.offer import Content, PromptArgument, ServerPrompt
from tui.views.view import Form, Menu, Question

WEATHER = ServerPrompt(
    "docs", "weather", "Tells the weather", (PromptArgument("city", "where", True), PromptArgument("day", "", False))
)
PLAIN = ServerPrompt("docs", "plain", "", ())


class Docs:
    """The server of both prompts."""

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> Content:
        images = (ToolImage("image/png", b""),) if name == PLAIN.name else ()
        return Content(f"{name} of {dict(arguments)} @notes.txt", images)


@pytest.fixture
def prompts(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """A conversation with a server that has two prompts."""
    monkeypatch.setattr(Servers, "prompts", (WEATHER, PLAIN))
    monkeypatch.setattr(Servers, "server", lambda _servers, name: {"docs": Docs()}[name])
    return commands


async def test_it_goes_into_the_draft_once_its_arguments_are_there(prompts: Commands, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes")
    ui = await prompts.run("/prompt", "docs:weather", {"city": "Paris", "day": ""})
    menu, form = ui.questions
    assert isinstance(menu, Menu) and isinstance(form, Form)
    assert [(field.name, field.required) for field in form.fields] == [("city", True), ("day", False)]
    assert prompts.screen is not None
    assert prompts.screen.draft == "weather of {'city': 'Paris'} @notes.txt"
    [warning] = ui.refusals
    assert "names files with @" in warning and "notes.txt" in warning


async def test_arguments_that_are_written_are_not_asked_for(prompts: Commands) -> None:
    await prompts.run("/prompt docs:weather 'New York' day=Monday")
    assert prompts.screen is not None
    assert "{'city': 'New York', 'day': 'Monday'}" in prompts.screen.draft
    assert (await prompts.run("/prompt docs:weather", None)).output == []
    assert (await prompts.run("/prompt", None)).output == []


async def test_pictures_are_left_out_and_said(prompts: Commands) -> None:
    ui = await prompts.run("/prompt docs:plain")
    assert ui.refusals[0] == "Left out of this prompt: 1 image; only the text is used."


@pytest.mark.parametrize(("answered", "sent"), [("y", True), (None, False)])
async def test_in_lines_it_is_sent_once_it_was_seen_and_attaches_nothing(
    prompts: Commands, provider: ScriptedProvider, tmp_path: Path, answered: str | None, sent: bool
) -> None:
    (tmp_path / "notes.txt").write_text("notes")
    prompts.screen = None
    ui = await prompts.run("/prompt docs:weather Oslo", answered)
    [question] = ui.questions
    assert isinstance(question, Question) and "Oslo" in question.text and question.default == "y"
    assert [message.text for message in prompts.session.messages[:1]] == [question.text] * sent
    assert len(provider.requests) == sent


async def test_without_prompts_it_says_so(commands: Commands) -> None:
    assert "No running MCP server offers prompts" in await commands.output("/prompt")


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ("docs:nothing", "There is no prompt 'docs:nothing'"),
        ("docs:weather a b c", "'c' is one argument too many: weather takes city, day"),
        ("docs:weather 'a", "write them like city=Paris"),
        ("docs:plain x", "plain takes none"),
    ],
)
def test_what_cant_be_read_is_one_line(args: str, why: str) -> None:
    with pytest.raises(CommandError, match=why):
        parse_prompt(args, (WEATHER, PLAIN))


async def test_how_it_is_written(prompts: Commands) -> None:
    assert call_form(WEATHER) == "docs:weather city [day]"
    assert await prompts.completions("/prompt docs:w") == ["/prompt docs:weather"]
    assert await prompts.completions("/prompt docs:weather ") == []

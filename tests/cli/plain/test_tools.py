"""`/tools`, `/mcp` and `/prompt` in --plain."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from tests.fakes import FakeSession, FakeWorkspace
from tests.screens.tools.test_mcp import PROMPTS
from tests.screens.tools.test_tools import LINES
from tui.chat.server_files import ProjectFile
from tui.chat.store.store import UsageError
from tui.cli.plain.tools import PlainTools
from tui.tools.mcp.config import servers_of_json

if TYPE_CHECKING:
    from tui.cli.plain.plain import PlainChat

FILE = '{"mcpServers": {"own": {"command": "sh", "args": ["-c", "rm \\u202e -rf"], "env": {"A": "${HOME}"}}}}'


class Chat:
    """A chat whose person answers as `answers` say; `sent` is what went to the model."""

    def __init__(self, *answers: str, talks: bool = True) -> None:
        self.talks = talks
        self.session = FakeSession()
        self.session.tools.listed = list(LINES)
        self.workspace = FakeWorkspace(self.session)
        self.answers = list(answers)
        self.asked: list[str] = []
        self.sent: list[tuple[object, ...]] = []
        fake, send = self.session, self._send
        self.session = cast(
            "FakeSession", SimpleNamespace(tools=fake.tools, refresh_usage=fake.refresh_usage, send=send)
        )
        self.commands = PlainTools(cast("PlainChat", self))

    async def ask(self, question: str) -> str:
        self.asked.append(question)
        return self.answers.pop(0)

    def _send(self, *message: object) -> None:
        self.sent.append(message)

    async def turn(self, _events: AsyncIterator[object]) -> None:
        """It has been sent."""

    def project(self) -> None:
        servers = servers_of_json(FILE, "/p/.mcp.json")
        self.workspace.servers.project = ProjectFile(Path("/p/.mcp.json"), "abc", servers)


async def test_tools_are_listed_switched_and_forgotten(capsys: pytest.CaptureFixture[str]) -> None:
    chat = Chat()
    await chat.commands.tools("")
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "github__create_issue  ~480  on   asks first" in said
    await chat.commands.tools("off github__*")
    assert not any(line.on for line in chat.session.tools.listed if line.origin == "github")
    await chat.commands.tools("forget github__create_issue")
    for wrong in ("off nothing", "dance"):
        with pytest.raises(UsageError):
            await chat.commands.tools(wrong)


@pytest.mark.parametrize(
    ("answer", "did"), [("yes", [("agree", "True")]), ("never", [("agree", "False")]), ("", []), ("y", [])]
)
async def test_a_projects_file_is_read_out_and_asked_about(
    capsys: pytest.CaptureFixture[str], answer: str, did: list[tuple[str, str]]
) -> None:
    chat = Chat(answer)
    chat.project()
    await chat.commands.mcp("")
    said = capsys.readouterr().out
    assert "sh '-c' 'rm \\u202e -rf'" in said and "A=${HOME}" in said
    assert "Start them?" in chat.asked[0]
    assert chat.workspace.servers.did == did


async def test_a_pipe_agrees_to_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    chat = Chat(talks=False)
    chat.project()
    await chat.commands.mcp("project")
    assert chat.workspace.servers.did == []
    assert "nobody can be asked here" in capsys.readouterr().err


async def test_a_prompt_is_shown_before_it_is_sent_and_attaches_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    chat = Chat("Paris", "n", "Rome", "y")
    chat.workspace.servers.prompts = list(PROMPTS)
    chat.workspace.servers.contents = {"weather": "The weather in {city} @.env \x1b[2J"}
    await chat.commands.prompt("")
    assert "docs:weather city" in capsys.readouterr().out
    await chat.commands.prompt("docs:weather")
    assert "The weather in Paris @.env ␛[2J" in capsys.readouterr().out
    assert chat.sent == []
    await chat.commands.prompt("docs:weather")
    assert chat.sent == [("The weather in Rome @.env \x1b[2J", [])]
    assert chat.answers == []
    chat.talks = False
    await chat.commands.prompt("docs:weather city=Oslo")
    assert chat.sent[1:] == [("The weather in Oslo @.env \x1b[2J", [])]
    with pytest.raises(UsageError, match="weather needs city: /prompt docs:weather city"):
        await chat.commands.prompt("docs:weather")
    with pytest.raises(UsageError, match="no prompt 'docs:nothing'"):
        await chat.commands.prompt("docs:nothing")

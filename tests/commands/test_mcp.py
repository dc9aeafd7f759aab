"""`/mcp`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from tests.chat.fakes import ScriptedProvider, open_workspace
from tests.commands.scripted_ui import Commands, ScriptedUI, printed
from tui.chat.servers import Servers
from tui.commands import Chat, mcp
from tui.tools.mcp.server import McpServer
from tui.views.view import Form, Question

PROJECT = '{"mcpServers": {"own": {"command": "sh", "args": ["-c", "rm \\u202e -rf"], "env": {"A": "${HOME}"}}}}'


@pytest.fixture
async def servers(
    tmp_path: Path, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Commands]:
    """A conversation with a server that does not start, in a folder with a file of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".mcp.json").write_text(PROJECT)
    table = {name: {"command": str(tmp_path / "not-there")} for name in ("mail", "io.x/My Notes")}
    async with open_workspace(tmp_path / "data", provider, mcp_servers=table) as workspace:
        yield Commands(workspace, await workspace.new_session())


async def test_servers_are_listed_with_what_the_folder_would_start(servers: Commands) -> None:
    [view] = (await servers.run("/mcp")).views
    text = await printed(view)
    assert "mail" in text and "switched off" not in text
    assert "/mcp project shows it and asks" in " ".join(text.split())


@pytest.mark.parametrize(("answered", "agreed"), [("yes", True), ("never", False), ("", None), (None, None)])
async def test_the_file_of_the_folder_is_shown_whole_and_asked_about(
    servers: Commands, monkeypatch: pytest.MonkeyPatch, answered: str | None, agreed: bool | None
) -> None:
    monkeypatch.setattr(Servers, "start", lambda _servers: None)  # which loads the SDK
    ui = await servers.run("/mcp project", answered)
    [question] = ui.questions
    assert isinstance(question, Question)
    assert "sh '-c' 'rm \\u202e -rf'" in question.text and "A=${HOME}" in question.text
    assert question.answers[0].key == "" and question.default is None
    project = servers.workspace.servers.project
    assert project is not None and project.agreed is agreed
    assert len(ui.output) == (1 if answered else 0)


async def test_one_is_switched_off_and_restarted(servers: Commands) -> None:
    assert await servers.output("/mcp off mail") == "mail is switched off; this is remembered."
    assert await servers.output("/mcp off io.x/My Notes") == "io.x/My Notes is switched off; this is remembered."
    assert [server.status.state for server in servers.workspace.servers.listed] == ["off", "off"]
    assert await servers.completions("/mcp on") == [
        "/mcp on io.x/My Notes",
        "/mcp on mail",
        "/mcp restart io.x/My Notes",
    ]
    refusal = await servers.refusal("/mcp restart x")
    assert refusal == "There is no MCP server 'x'; the servers are: io.x/My Notes, mail."


async def test_anything_else_is_refused(commands: Commands) -> None:
    assert "/mcp restart NAME" in await commands.refusal("/mcp dance")
    assert await commands.refusal("/mcp project") == "This folder has no .mcp.json."


class Waiting(ScriptedUI):
    """Somebody who fills in no form: the browser comes back by itself."""

    async def ask(self, form: Form) -> Mapping[str, str] | None:
        self.questions.append(form)
        await asyncio.Event().wait()
        return None


@pytest.mark.slow
@pytest.mark.parametrize("comes_back", [True, False])
async def test_signing_in_opens_the_page_and_waits_for_the_browser(
    tmp_path: Path, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch, *, comes_back: bool
) -> None:
    pytest.importorskip("mcp")
    from tests.tools.mcp.guarded import Authority, browse, guarded_server

    monkeypatch.setattr("tui.tools.mcp.oauth._keyring", lambda: None)
    opened: list[str] = []

    def open_it(address: str) -> bool:
        opened.append(address)
        if comes_back:
            asyncio.run(browse(address))
        return comes_back

    monkeypatch.setattr("tui.commands.mcp.open_in_browser", open_it)
    monkeypatch.setattr("tui.commands.mcp.has_browser", lambda: True)
    async with (
        guarded_server(Authority()) as url,
        open_workspace(tmp_path / "data", provider, mcp_servers={"g": {"url": url}}) as workspace,
    ):
        workspace.servers.start()
        await workspace.servers.until("g", lambda status: status.state == "failed")
        ui = Waiting() if comes_back else ScriptedUI(None)  # Esc
        ui.chat = chat = Chat(workspace, await workspace.new_session())
        await mcp.run.run(ui, chat, "login g")
        assert opened[0] in ui.output[0] and opened[0].startswith(url.removesuffix("/mcp"))
        assert (ui.output[1:], ui.refusals) == (
            (["g is ready."], []) if comes_back else ([], ["g is not ready: signing in did not work: it was cancelled"])
        )
        await mcp.run.run(ui, chat, "logout g")
        revoked = "; the tokens are revoked" if comes_back else ""
        assert ui.output[-1] == f"Signed out of g on this machine{revoked}."


async def test_tokens_that_are_still_valid_at_the_server_are_said_to_be(
    servers: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def sign_out(_server: McpServer) -> str:
        return "the server answered 503"

    monkeypatch.setattr(McpServer, "sign_out", sign_out)
    assert await servers.output("/mcp logout mail") == (
        "Signed out of mail on this machine; the tokens are not revoked (the server answered 503): they are valid"
        " until they expire."
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "output", "refusals"),
    [
        (None, [], ["g is not ready: signing in did not work: it was cancelled"]),
        ("wait", ["g is ready."], []),
    ],
)
async def test_without_a_browser_a_code_is_entered_on_another_device(
    tmp_path: Path,
    provider: ScriptedProvider,
    monkeypatch: pytest.MonkeyPatch,
    answer: str | None,
    output: list[str],
    refusals: list[str],
) -> None:
    pytest.importorskip("mcp")
    from tests.tools.mcp.guarded import Authority, Devices, guarded_server

    class Elsewhere(ScriptedUI):
        async def confirm(self, question: Question) -> str | None:
            self.questions.append(question)
            if answer == "wait":
                devices.entered = True
                await asyncio.Event().wait()
            return answer

    monkeypatch.setattr("tui.tools.mcp.oauth._keyring", lambda: None)
    monkeypatch.setattr("tui.commands.mcp.has_browser", lambda: False)
    authority = Authority()
    devices = Devices(authority)
    async with (
        guarded_server(authority, devices) as url,
        open_workspace(tmp_path / "data", provider, mcp_servers={"g": {"url": url}}) as workspace,
    ):
        workspace.servers.start()
        await workspace.servers.until("g", lambda status: status.state == "failed")
        ui = Elsewhere()
        ui.chat = chat = Chat(workspace, await workspace.new_session())
        await mcp.run.run(ui, chat, "login g")
        (question,) = ui.questions
        assert isinstance(question, Question) and "enter the code WDJB-MJHT" in question.text
        assert (ui.output, ui.refusals) == (output, refusals)


async def test_nobody_signs_in_to_a_program(servers: Commands) -> None:
    assert "There is no sign-in to mail" in await servers.refusal("/mcp login mail")

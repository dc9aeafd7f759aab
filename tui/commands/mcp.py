"""`/mcp`: MCP servers, their state, and what their tools cost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tui.commands import UI, Chat, CommandError, command
from tui.terminal.browser import has_browser, open_in_browser
from tui.text.cells import plain
from tui.views.view import Field, Form, Option, Question, RejectedError

if TYPE_CHECKING:
    from tui.chat.servers import Servers
    from tui.tools.mcp.config_files import ProjectFile
    from tui.tools.mcp.oauth import SignIn, SignInPage

ADDRESS_WAIT = 60.0
"""Seconds to wait for the address to sign in at, and for the server to be ready afterwards."""

NO_SIGN_IN = "It is not possible to sign in here."

USAGE = (
    "/mcp lists the servers; /mcp restart NAME, /mcp on NAME and /mcp off NAME change one;"
    " /mcp login NAME and /mcp logout NAME sign in and out;"
    " /mcp instructions on|off NAME sends its instructions to the model, or not;"
    " /mcp project asks about the servers of this folder."
)


async def complete(_ui: UI, chat: Chat, _args: str) -> Sequence[Option]:
    """The actions for each server."""
    servers = chat.workspace.servers
    choices = []
    for server in servers.listed:
        name, state = server.name, server.status.state
        actions: list[tuple[str, str]] = [("restart", state), ("on" if state == "off" else "off", state)]
        if server.config.oauth is not None and state != "off":
            actions += [("login", "sign in to it in a browser"), ("logout", "forget the sign-in")]
        if server.status.instructions:
            on = "off" if servers.instructs(name) else "on"
            actions.append((f"instructions {on}", "whether the model gets them"))
        choices += [Option(f"{action} {name}", f"{action} {plain(name)}", about) for action, about in actions]
    if servers.project is not None:
        choices.append(Option("project", "project", "the servers of this folder: what they would start"))
    return choices


@command(
    "MCP servers: their state, what their tools cost",
    "tools",
    args="[on|off|restart|login|logout NAME]",
    complete=complete,
    local_only=True,
)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """List the servers, change one, or ask whether those of this folder may be started."""
    servers = chat.workspace.servers
    word, _, name = args.partition(" ")
    name = name.strip()  # may contain spaces
    if word == "instructions":
        word, _, name = name.partition(" ")
        word, name = f"instructions {word}", name.strip()
    match word, name:
        case "", "":
            from tui.views.tools_mcp import McpView

            await ui.show(McpView(servers, chat.session))
        case "project", "":
            await _ask_project(ui, servers)
        case _, "":
            raise CommandError(USAGE)
        case "restart", _:
            await servers.restart(name)
            await ui.say(f"{plain(name)} is being restarted.")
        case "on" | "off", _:
            await servers.switch(name, word == "on")
            await ui.say(f"{plain(name)} is {'being started' if word == 'on' else 'switched off'}; this is remembered.")
        case "instructions on" | "instructions off", _:
            on = word == "instructions on"
            await servers.switch_instructions(name, on)
            await ui.changed()
            await ui.say(f"The instructions of {plain(name)} are {'' if on else 'not '}sent; this is remembered.")
        case "login", _:
            await _sign_in(ui, servers, name)
        case "logout", _:
            match await servers.server(name).sign_out():
                case None:
                    revoked = ""
                case "":
                    revoked = "; the tokens are revoked"
                case problem:
                    revoked = f"; the tokens are not revoked ({problem}): they are valid until they expire"
            await ui.say(f"Signed out of {plain(name)} on this machine{revoked}.")
        case _:
            raise CommandError(USAGE)


async def _ask_project(ui: UI, servers: Servers) -> None:
    """Ask whether the servers in the project's file may be started."""
    if servers.project is None:
        raise CommandError("This folder has no .mcp.json.")
    answer = await ui.confirm(_start_project(servers.project))
    if answer:
        await servers.agree(answer == "yes")
        await ui.changed()
        text = "are being started" if answer == "yes" else "are not started; /mcp project asks again"
        await ui.say(f"The servers of this folder {text}.", passing=True)


async def _sign_in(ui: UI, servers: Servers, name: str) -> None:
    """Sign in to a server: with this machine's browser, with a code, or with a browser elsewhere."""
    from tui.tools.mcp.oauth import SignInError

    attempt = await servers.sign_in(name, by_code=not has_browser())
    try:
        ended = servers.until(name, lambda status: status.state in ("ready", "failed"))
        await _first(asyncio.wrap_future(attempt.page), ended, seconds=ADDRESS_WAIT)
        if attempt.page.done() and not attempt.page.cancelled():  # else it failed before, or needs no sign-in
            page = attempt.page.result()
            if page.code:
                text = f"Open this page on any device and enter the code {page.code}\n\n{page.address}"
                question = Question(f"Sign in to {name}", text, (Option("cancel", "Cancel"),), NO_SIGN_IN)
                asked: Awaitable[Any] = ui.confirm(question)
            else:
                asked = await _browser(ui, name, page, attempt)
            with contextlib.suppress(SignInError):  # the server's status has it
                await _first(asked, asyncio.shield(asyncio.wrap_future(attempt.done)))
    finally:
        attempt.give_up()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(ADDRESS_WAIT):
            await servers.until(name, lambda status: status.state != "starting")
    status = servers.server(name).status
    if status.state == "ready":
        await ui.changed()
        await ui.say(f"{plain(name)} is ready.")
    else:
        await ui.refuse(f"{plain(name)} is not ready: {status.reason or 'it is still starting'}")


async def _browser(ui: UI, name: str, page: SignInPage, attempt: SignIn) -> Awaitable[Any]:
    """Open the page, and ask for the address that a browser elsewhere was redirected to."""
    from tui.tools.mcp.oauth import SignInError

    opened = await asyncio.to_thread(open_in_browser, page.address)
    shown = "Your browser shows" if opened else "Open"
    await ui.say(f"{shown} this page to sign in to {plain(name)}: {page.address}")
    if not opened and ui.screen is not None:
        await ui.copy(page.address)

    async def paste(values: Mapping[str, str]) -> str:
        if values["address"].strip():
            try:
                attempt.paste(values["address"])
            except SignInError as error:
                raise RejectedError(f"That did not work: {error}.") from None
        elif not attempt.done.done():
            raise RejectedError("The browser has not come back yet. Closing this gives up.")
        return ""

    shown = f"{page.address}\n\n" if ui.screen is not None else ""  # the panel covers the line above
    form = Form(
        f"Sign in to {name}",
        f"{shown}Waiting for the browser that opens this page. If it ends on one that can't be loaded, as on"
        " another machine, paste the address of that page here.",
        (Field("address", "address of the last page", hint="only if the page could not be loaded", secret=True),),
        "go on",
        NO_SIGN_IN,
        paste,
    )
    return ui.ask(form)


async def _first(*waiting: Awaitable[Any], seconds: float | None = None) -> None:
    """Wait for the first of them, `seconds` at most, and cancel the others. Raises its error."""
    tasks = [asyncio.ensure_future(each) for each in waiting]
    try:
        finished, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in finished:
        task.result()


def _start_project(project: ProjectFile) -> Question:
    """Show everything that the project's file would start, and ask. The first answer is to do nothing."""
    from tui.views.tools_mcp import project_text

    return Question(
        "Start the servers of this folder?",
        project_text(project),
        (
            Option("", "Not now", "nothing is started; asked again next time"),
            Option("yes", "Start them", "now, and whenever chatctx is started here"),
            Option("never", "Never", "not for this content of the file"),
        ),
        "Nothing of it was started: nobody can be asked here.",
        must_read=("yes",),
    )

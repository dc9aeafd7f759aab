"""`/mcp`: MCP servers, their state, and what their tools cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.commands.ui import UI, Chat, Command
from tui.text.cells import plain
from tui.views.view import Choice, Option, Question

if TYPE_CHECKING:
    from tui.chat.server_files import ProjectFile

USAGE = (
    "/mcp lists the servers; /mcp restart NAME, /mcp on NAME and /mcp off NAME change one;"
    " /mcp instructions on|off NAME sends its instructions to the model, or not."
)


async def run(ui: UI, chat: Chat, args: str) -> None:
    """List the servers, change one, or ask whether those of this folder may be started."""
    servers = chat.workspace.servers
    word, _, name = args.strip().partition(" ")
    name = name.strip()  # blanks in it are its own
    match word, name:
        case "", "":
            from tui.views.mcp_lines import McpView

            await ui.show(McpView(servers, chat.session))
        case "project", "" if servers.project is not None:
            answer = await ui.confirm(_start_project(servers.project))
            if answer:
                await servers.agree(answer == "yes")
                await ui.changed()
                text = "are being started" if answer == "yes" else "are not started; /mcp project asks again"
                await ui.say(f"The servers of this folder {text}.", passing=True)
        case "project", "":
            await ui.refuse("This folder has no .mcp.json.")
        case "restart", name if name:
            await servers.restart(name)
            await ui.say(f"{plain(name)} is being restarted.")
        case "instructions", words if (switch := words.partition(" "))[0] in ("on", "off") and switch[2].strip():
            on, server = switch[0] == "on", switch[2].strip()
            await servers.switch_instructions(server, on)
            await ui.changed()
            await ui.say(f"The instructions of {plain(server)} are {'' if on else 'not '}sent; this is remembered.")
        case "on" | "off", name if name:
            await servers.switch(name, word == "on")
            await ui.say(f"{plain(name)} is {'being started' if word == 'on' else 'switched off'}; this is remembered.")
        case _:
            await ui.refuse(USAGE)


def _start_project(project: ProjectFile) -> Question:
    """Show everything that the project's file would start, and ask. The first answer is to do nothing."""
    from tui.views.mcp_lines import project_text

    return Question(
        "Start the servers of this folder?",
        project_text(project),
        (
            Option("", "Not now", "nothing is started; asked again next time"),
            Option("yes", "Start them", "now, and whenever chatctx is started here"),
            Option("never", "Never", "not for this content of the file"),
        ),
        "Nothing of it was started: nobody can be asked here.",
    )


async def complete(_ui: UI, chat: Chat, _args: str) -> Sequence[Choice]:
    """The actions for each server."""
    servers = chat.workspace.servers
    choices = []
    for line in servers.lines:
        name, state = line.status.name, line.status.state
        word = "on" if state == "off" else "off"
        choices.append(Choice(f"restart {name}", f"restart {plain(name)}", state))
        choices.append(Choice(f"{word} {name}", f"{word} {plain(name)}", state))
        if line.status.instructions:
            change = "off" if servers.instructs(name) else "on"
            what = "whether the model gets them"
            choices.append(Choice(f"instructions {change} {name}", f"instructions {change} {plain(name)}", what))
    if servers.project is not None:
        choices.append(Choice("project", "project", "the servers of this folder: what they would start"))
    return choices


COMMAND = Command(
    "mcp",
    "MCP servers: their state, what their tools cost",
    run,
    "tools",
    args="[restart|on|off NAME]",
    complete=complete,
    local_only=True,
)

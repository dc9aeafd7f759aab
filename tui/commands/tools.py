"""`/tools`: the tools of the model, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence

from tui.commands import BUSY, UI, Chat, CommandError, command
from tui.text.cells import plain
from tui.views.view import Option

USAGE = "/tools lists the tools; /tools on NAME, /tools off NAME (github__* for several) and /tools forget NAME."


async def complete(_ui: UI, chat: Chat, args: str) -> Sequence[Option]:
    """on, off, and the tools."""
    word, space, _ = args.partition(" ")
    if not space or word not in ("on", "off"):
        return [Option("on ", "on", "offer a tool"), Option("off ", "off", "stop offering it")]
    lines = await chat.session.tools.lines()
    return [Option(f"{word} {line.name}", f"{word} {plain(line.name)}", "on" if line.on else "off") for line in lines]


@command(
    "the tools of the model, and what they cost", "tools", args="[on|off|forget NAME]", complete=complete, first=True
)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """List the tools, switch some, or forget stored answers."""
    match args.split():
        case []:
            from tui.views.tools_mcp import ToolsView

            await ui.show(ToolsView(chat.session))
        case ["on" | "off" as word, *names] if len(names) <= 1:
            if ui.busy:
                raise CommandError(BUSY)
            await _switch(ui, chat, names[0] if names else "*", word == "on")
        case ["forget", name]:
            tools = chat.session.tools
            tool_names = {line.name for line in await tools.lines()} | {
                answer.tool for answer in await tools.remembered()
            }
            if name not in tool_names:  # a wrong name must not pass for an approval that is gone
                raise CommandError(f"There is no tool {plain(name)!r}: /tools lists them.")
            await tools.forget(name)
            await ui.say(f"{plain(name)} asks again, unless it only reads or the config file says otherwise.")
        case _:
            raise CommandError(USAGE)


async def _switch(ui: UI, chat: Chat, pattern: str, on: bool) -> None:
    from tui.tools.tool_search import SEARCH

    tools = chat.session.tools
    names = await tools.switch(pattern, on)
    if pattern == SEARCH:
        raise CommandError(f'{SEARCH} is offered while tools are deferred: [tools] defer = "off" sends them all.')
    if not names:
        raise CommandError(f"There is no tool {plain(pattern)!r}: /tools lists them.")
    await ui.changed()
    subject = plain(names[0]) if len(names) == 1 else f"{len(names)} tools"
    verb = "is" if len(names) == 1 else "are"
    if on and not tools.takes_any:
        await ui.say(f"{subject} {verb} on, but this model does not support tools, as far as known: none are offered.")
    else:
        await ui.say(f"{subject} {verb} {'offered' if on else 'not offered any more'} in this conversation.")

"""`/prompt`: use a prompt of an MCP server."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui.commands import UI, Chat, CommandError, command
from tui.text.cells import plain
from tui.text.numbers import plural
from tui.views.view import Field, Form, Menu, Option, Question, filtered, may_be_secret

if TYPE_CHECKING:
    from tui.tools.mcp.offer import ServerPrompt


async def complete(_ui: UI, chat: Chat, args: str) -> Sequence[Option]:
    """Prompts by name; nothing once the arguments have begun."""
    if " " in args:
        return []
    return [
        Option(f"{prompt.server}:{prompt.name}", plain(call_form(prompt)), plain(prompt.description))
        for prompt in chat.workspace.servers.prompts
    ]


@command("put a prompt of an MCP server into the draft", "tools", args="[SERVER:NAME] [arguments]", complete=complete)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Fetch the named prompt, or one chosen from the list. Missing arguments are asked for.

    The text goes into the draft; in `--plain` it is sent once the person has seen it.
    """
    servers = chat.workspace.servers
    if not servers.prompts:
        await ui.say("No running MCP server offers prompts. /mcp lists the servers.")
        return
    source = filtered(lambda: complete(ui, chat, ""))
    call = args or await ui.choose(Menu("Prompts of MCP servers", source, "/prompt SERVER:NAME", "search prompts"))
    if not call:
        return
    prompt, arguments = parse_prompt(call, servers.prompts)
    missing = [argument for argument in prompt.arguments if argument.name not in arguments]
    if any(argument.required for argument in missing):
        answers = await ui.ask(_form(prompt, arguments))
        if answers is None:
            return
        arguments = {**arguments, **answers}
    written = {name: value for name, value in arguments.items() if value}
    content = await servers.server(prompt.server).prompt(prompt.name, written)
    if content.images:
        await ui.refuse(f"Left out of this prompt: {plural(len(content.images), 'image')}; only the text is used.")
    if ui.screen is not None:
        from tui.chat.attachments import mentioned

        await ui.screen.append_to_draft(content.text)
        if files := await asyncio.to_thread(mentioned, content.text, Path.cwd()):
            paths = ", ".join(plain(str(path)) for path in files)
            await ui.refuse(f"The server's prompt names files with @; sending attaches them: {paths}")
        return
    question = Question(f"{prompt.server}:{prompt.name}", content.text, (Option("y", "Send it"),), default="y")
    if await ui.confirm(question):
        # Sent literally: @names in a server's text must not attach files.
        await ui.turn(chat.session.send(content.text, []))


def parse_prompt(args: str, prompts: Sequence[ServerPrompt]) -> tuple[ServerPrompt, dict[str, str]]:
    """The prompt that `SERVER:NAME arguments` names, and its arguments. Raises `CommandError`."""
    by_name = {f"{prompt.server}:{prompt.name}": prompt for prompt in prompts}
    name = max((name for name in by_name if f"{args} ".startswith(f"{name} ")), key=len, default=None)
    if name is None:
        raise CommandError(f"There is no prompt {plain(args.split()[0])!r}: /prompt lists them.")
    return by_name[name], _arguments(by_name[name], args.removeprefix(name))


def _arguments(prompt: ServerPrompt, text: str) -> dict[str, str]:
    """Parse `city=Paris state="New York"`; values without a name are assigned in order."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        problem = f"The arguments can't be read ({error}): write them like city=Paris or city='New York'."
        raise CommandError(problem) from None
    names = [argument.name for argument in prompt.arguments]
    arguments: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name in names:
            arguments[name] = value
            continue
        free = next((name for name in names if name not in arguments), None)
        if free is None:
            takes = ", ".join(names) or "none"
            raise CommandError(f"{word!r} is one argument too many: {plain(prompt.name)} takes {plain(takes)}.")
        arguments[free] = word
    return arguments


def call_form(prompt: ServerPrompt) -> str:
    """`server:name city [state]`: how to call the prompt."""
    wants = " ".join(a.name if a.required else f"[{a.name}]" for a in prompt.arguments)
    return f"{prompt.server}:{prompt.name} {wants}".rstrip()


def _form(prompt: ServerPrompt, arguments: dict[str, str]) -> Form:
    return Form(
        f"{prompt.server}:{prompt.name}",
        prompt.description,
        tuple(
            Field(
                argument.name,
                f"{argument.name}: {argument.description}" if argument.description else argument.name,
                hint="" if argument.required else "may stay empty",
                required=argument.required,
                secret=may_be_secret(argument.name, argument.description),
            )
            for argument in prompt.arguments
            if argument.name not in arguments
        ),
        "go on",
        f"{prompt.name} needs its arguments: /prompt {call_form(prompt)}",
    )

"""`/memory`: list the instruction files (AGENTS.md) that are sent with their tokens, and switch them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tui.commands import UI, Chat, CommandError, command
from tui.text.cells import plain
from tui.text.numbers import tokens_exact
from tui.views.view import Menu, Option, filtered


async def complete(_ui: UI, chat: Chat, _args: str) -> Sequence[Option]:
    """Files by name."""
    session, files = chat.session, chat.session.conversation.memory.files
    tokens = await asyncio.to_thread(lambda: [session.draft_tokens(file.section().text) for file in files])
    return [
        Option(
            file.name,
            plain(file.name),
            f"{state}   {tokens_exact(count, 'estimated')} tokens",
            file.on,
            f"{state} {tokens_exact(count, 'estimated')}",
        )
        for file, count, state in zip(files, tokens, ("on " if file.on else "off" for file in files), strict=True)
    ]


@command(
    "memory files (AGENTS.md), what they cost; switch one on or off",
    "context",
    when="idle",
    args="[FILE]",
    complete=complete,
)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Switch the named file, or one chosen from the list, on or off."""
    memory = chat.session.conversation.memory
    if not memory.files:
        await ui.say("No memory files found. Put an AGENTS.md into this folder or above it.")
        return
    source = filtered(lambda: complete(ui, chat, ""))
    name = args or await ui.choose(Menu("Memory files: Enter switches one", source, "/memory FILE", "search files"))
    if not name:
        return
    file = memory.find(name)
    if file is None:
        names = ", ".join(memory_file.name for memory_file in memory.files)
        raise CommandError(f"No single memory file matches {name!r}. Choose one of: {names}.")
    await chat.session.switch_memory(file.name, not file.on)
    await ui.changed()
    await ui.say(f"{plain(file.name)} is {'not sent any more' if file.on else 'sent again'}, from the next message on.")

"""`/quit`: quit the program."""

from __future__ import annotations

from tui.commands import UI, Chat, Command


async def run(ui: UI, chat: Chat, args: str) -> None:
    """Quit; everything is kept."""
    await ui.leave()


COMMAND = Command("quit", "quit; everything is kept", run, "program", when="always", aliases=("exit", "q"))

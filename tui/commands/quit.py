"""`/quit`: quit the program."""

from __future__ import annotations

from tui.commands import UI, Chat, command


@command("quit; everything is kept", "program", when="always", aliases=("exit", "q"))
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Quit; everything is kept."""
    await ui.leave()

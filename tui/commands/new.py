"""`/new`: start a new conversation."""

from __future__ import annotations

from tui.commands import UI, Chat, command


@command("start a new conversation; this one is kept", "conversation", when="idle", aliases=("clear",), first=True)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Start an empty one; the current one is kept."""
    await ui.attach(await chat.workspace.new_session())

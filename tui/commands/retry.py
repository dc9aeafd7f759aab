"""`/retry`: request the last answer again."""

from __future__ import annotations

from tui.commands import UI, Chat, command


@command("ask for the last answer again", "conversation", when="idle")
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Set the last answer aside and ask again."""
    await ui.turn(chat.session.retry())

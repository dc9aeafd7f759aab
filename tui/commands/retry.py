"""`/retry`: request the last answer again."""

from __future__ import annotations

from tui.commands import UI, Chat, Command


async def run(ui: UI, chat: Chat, args: str) -> None:
    """Set the last answer aside and ask again."""
    await ui.turn(chat.session.retry())


COMMAND = Command("retry", "ask for the last answer again", run, "conversation", when="idle")

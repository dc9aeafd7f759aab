"""`/times`: show or hide when each message was written."""

from __future__ import annotations

from tui.commands import UI, Chat, command


@command("show or hide when each message was written", "view", when="always", screen_only=True)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Show or hide them."""
    assert ui.screen is not None
    await ui.screen.toggle_times()

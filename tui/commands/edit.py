"""`/edit`: edit the draft in an external editor."""

from __future__ import annotations

from tui.commands import UI, Chat, command


@command("edit the draft in $EDITOR", "view", when="idle", screen_only=True, local_only=True)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Open $VISUAL or $EDITOR and wait until it exits."""
    assert ui.screen is not None
    await ui.screen.edit_draft()

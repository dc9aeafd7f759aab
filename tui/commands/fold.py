"""`/fold`: fold or unfold everything in the transcript."""

from __future__ import annotations

from tui.commands import UI, Chat, command


@command("fold or unfold reasoning, tool results and long messages", "view", when="always", screen_only=True)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Fold everything if something is unfolded, else unfold all."""
    assert ui.screen is not None
    await ui.screen.fold()

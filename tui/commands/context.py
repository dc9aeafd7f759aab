"""`/context`: what fills the context window."""

from __future__ import annotations

from tui.commands import UI, Chat, command


@command("what fills the context window", "context", aliases=("ctx",), first=True)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Show the parts of the next request. Changes nothing."""
    from tui.views.context_table import ContextView

    await ui.show(ContextView(chat.session, chat.workspace))

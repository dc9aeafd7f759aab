"""`/usage`: tokens, cost, and the accuracy of the estimates."""

from __future__ import annotations

from tui.commands import UI, Chat, command


@command("tokens, cost and the accuracy of the estimates", "context", aliases=("cost",))
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Show the usage of this conversation, today and all conversations."""
    from tui.views.usage_table import UsageView

    await ui.show(UsageView(chat.workspace, chat.session))

"""`/rename`: give this conversation a title."""

from __future__ import annotations

from tui.commands import UI, Chat, CommandError, command


@command("name this conversation", "conversation", args="TITLE")
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Set the title."""
    if not args:
        raise CommandError("/rename needs a title.")
    await chat.session.conversation.update(title=args)
    await ui.changed()
    await ui.say(f"This conversation is called {args}.", passing=True)

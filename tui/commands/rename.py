"""`/rename`: give this conversation a title."""

from __future__ import annotations

from tui.commands import UI, Chat, CommandError, command
from tui.text.clean import abbreviated

MAX_TITLE = 200  # characters


@command("name this conversation", "conversation", args="TITLE")
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Set the title."""
    if not args:
        raise CommandError("/rename needs a title.")
    title = abbreviated(args, MAX_TITLE)
    await chat.session.conversation.update(title=title)
    await ui.changed()
    await ui.say(f"This conversation is called {title}.", passing=True)

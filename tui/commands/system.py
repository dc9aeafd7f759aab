"""`/system`: show or change the system prompt."""

from __future__ import annotations

from tui.commands import UI, Chat, command


@command("show or change the system prompt", "model", args="[text]")
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Without an argument, show it."""
    session = chat.session
    if not args:
        none = "There is no system prompt. /system TEXT sets one."
        await ui.say(f"System prompt: {session.system}" if session.system else none)
        return
    await session.set_system(args)
    await ui.changed()
    await ui.say("The system prompt is changed from the next message on.")

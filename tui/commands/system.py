"""`/system`: show, change or remove the system prompt."""

from __future__ import annotations

from collections.abc import Sequence

from tui.commands import UI, Chat, command
from tui.views.view import Option

OFF, RESET = "off", "reset"


async def complete(_ui: UI, _chat: Chat, args: str) -> Sequence[Option]:
    """The words, unless a text is being written."""
    words = {OFF: "send none in this conversation", RESET: "use that of the config file"}
    return [Option(word, word, what) for word, what in words.items() if word.startswith(args.lower())]


@command(
    "show, set or drop the system prompt",
    "model",
    args=f"[text|{OFF}|{RESET}]",
    complete=complete,
)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Without an argument, show it."""
    session = chat.session
    if not args:
        none = "There is no system prompt. /system TEXT sets one."
        shown = f"System prompt (/system {OFF} removes it): {session.system}"
        await ui.say(shown if session.system else none)
        return
    text = {OFF: "", RESET: chat.workspace.settings.system}.get(args.lower(), args)
    await session.set_system(text)
    await ui.changed()
    if not text:
        await ui.say("No system prompt is sent from the next message on.")
    elif args.lower() == RESET:
        await ui.say(f"The system prompt is that of the config file from the next message on: {text}")
    else:
        await ui.say("The system prompt is changed from the next message on.")

"""`/system`: show, change or remove the system prompt."""

from __future__ import annotations

from tui.commands import UI, Chat, command, fixed

OFF, RESET = "off", "reset"


@command(
    "show, change or remove the system prompt",
    "model",
    args=f"[text|{OFF}|{RESET}]",
    complete=fixed((OFF, "send none in this conversation"), (RESET, "use that of the config file")),
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

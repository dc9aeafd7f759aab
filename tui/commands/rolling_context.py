"""`/rolling-context`: trim old content instead of summarising it."""

from __future__ import annotations

from tui.commands import UI, Chat, CommandError, command, fixed

ON = "Rolling context is on: old content is left out when the window is nearly full. Nothing is deleted."
OFF = "Rolling context is off: old content is summarised when the window is nearly full."


@command(
    "leave old content out instead of summarising it",
    "context",
    args="[on|off]",
    aliases=("rolling",),
    complete=fixed(("on", "trim old content when the window is nearly full"), ("off", "summarise instead")),
)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Switch it on or off; without an argument, toggle it."""
    session = chat.session
    switched = not session.conversation.info.rolling
    on = {"": switched, "toggle": switched, "on": True, "off": False}.get(args.lower())
    if on is None:
        raise CommandError(f"/rolling-context takes on or off, not {args!r}.")
    await session.set_rolling(on)
    await ui.changed()
    await ui.say(ON if on else OFF)

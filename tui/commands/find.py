"""`/find`: search this conversation."""

from __future__ import annotations

from tui.commands import UI, Chat, CommandError, command
from tui.text.numbers import plural


@command("search this conversation", "view", args="[words]", aliases=("search",))
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Go to the nearest match, or without words to the next one. In `--plain` list the matches."""
    if ui.screen is not None:
        number, count = await ui.screen.find(args)
        if count:
            await ui.say(f"{number} of {count}   /find for the next one", passing=True)
            return
    elif args:
        lines = [(message.role, line) for message in chat.session.messages for line in message.text.splitlines()]
        matches = [f"{role}: {line}" for role, line in lines if args.lower() in line.lower()]
        if matches:
            await ui.say("\n".join([*matches, f"{plural(len(matches), 'line')}."]))
            return
    raise CommandError(f"{args!r} is not in this conversation." if args else "/find needs words to look for.")

"""`/window`: the size of this model's context window."""

from __future__ import annotations

from tui.commands import UI, Chat, CommandError, command, fixed
from tui.config.values import parse_tokens
from tui.text.numbers import tokens_exact

RESET = "reset"
SMALLEST = 1_000  # tokens; a smaller number is one of thousands without its "k"


@command(
    "set the size of this model's context window",
    "model",
    args=f"[128k|{RESET}]",
    complete=fixed((RESET, "forget what was set and learned")),
)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Set it, forget what was set and learned, or show it."""
    session = chat.session
    if args:
        try:
            tokens = None if args.lower() == RESET else parse_tokens(args)
        except ValueError as error:
            raise CommandError(f"{str(error).rstrip('.')}.") from None
        if tokens is not None and tokens < SMALLEST:
            raise CommandError(f"{tokens} would be {tokens} tokens; write {tokens}k for thousands.")
        await session.set_window(tokens)
    await ui.changed()
    limits = session.usage.limits if session.usage else None
    size = tokens_exact(limits.context if limits else None)
    source = f" ({limits.detail})" if limits and limits.detail else ""
    more = "" if args else f" /window 128k sets it, /window {RESET} forgets what was set and learned."
    await ui.say(f"The window of this model is {size} tokens{source}.{more}")

"""`/leave-out`: leave the last turn out of requests, or include it again."""

from __future__ import annotations

from tui.commands import UI, Chat, CommandError, command
from tui.context.reduction.groups import starts_turn
from tui.text.numbers import SURE, tokens_exact
from tui.views.context_lists import why_not


@command("leave the last turn out of requests, or include it again", "context", when="idle")
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Exclude the last question and everything that answered it; if that is done already, include it again."""
    session = chat.session
    questions = [message.id for message in session.messages if starts_turn(message)]
    if not questions:
        raise CommandError("There is no turn to leave out yet: write a message first.")
    left_out = session.conversation.not_sent().get(questions[-1], "")
    if reason := why_not(left_out, pin=False):
        raise CommandError(reason)
    turn = [message.id for message in session.messages if message.id >= questions[-1]]
    before = await session.refresh_usage()
    out = left_out != "excluded"
    for message_id in turn:
        await session.exclude(message_id, out)
    after = await session.refresh_usage()
    await ui.changed()
    source = after.source if before.source in SURE else before.source
    change = tokens_exact(abs(before.total - after.total), source)
    if out:
        await ui.say(f"The last turn is not sent any more: {change} tokens less. /leave-out includes it again.")
    else:
        await ui.say(f"The last turn is sent again: {change} tokens more.")

"""`/thinking`: how much the model reasons before it answers."""

from __future__ import annotations

from tui.commands.ui import UI, Chat, Command, CommandError, fixed
from tui.messages import EFFORTS

DEFAULT = "default"


async def run(ui: UI, chat: Chat, args: str) -> None:
    """Set the reasoning effort, or say what it is."""
    from tui.views.models import effort_text

    session, effort = chat.session, args.lower()
    if effort and effort not in (*EFFORTS, DEFAULT):
        raise CommandError(f"/thinking takes {', '.join(EFFORTS)} or {DEFAULT}, not {args!r}.")
    if effort:
        await session.set_reasoning(None if effort == DEFAULT else effort)
    await ui.say(effort_text(session.reasoning, session.reasoning_sent))


COMMAND = Command(
    "thinking",
    "how much the model reasons first",
    run,
    "model",
    args="[off|low|medium|high]",
    complete=fixed(*((effort, "") for effort in EFFORTS), (DEFAULT, "provider default")),
)

"""`/thinking`: how much the model reasons before it answers."""

from __future__ import annotations

from collections.abc import Sequence

from tui.commands import UI, Chat, CommandError, command
from tui.messages import EFFORTS
from tui.views.view import Option

DEFAULT = "default"


async def complete(_ui: UI, chat: Chat, _args: str) -> Sequence[Option]:
    """The efforts that the model supports. Others are accepted too: the nearest supported one is used."""
    efforts = chat.workspace.provider(chat.session.provider).efforts(chat.session.model)
    return [*(Option(effort, effort) for effort in efforts), Option(DEFAULT, DEFAULT, "provider default")]


@command("set the reasoning effort, or show it", "model", args="[off|low|medium|high]", complete=complete)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Set the reasoning effort, or show it."""
    from tui.views.models import effort_text

    session, effort = chat.session, args.lower()
    if effort and effort not in (*EFFORTS, DEFAULT):
        raise CommandError(f"/thinking takes {', '.join(EFFORTS)} or {DEFAULT}, not {args!r}.")
    if effort:
        await session.set_reasoning(None if effort == DEFAULT else effort)
    await ui.say(effort_text(session.conversation.target.reasoning, session.reasoning_sent))

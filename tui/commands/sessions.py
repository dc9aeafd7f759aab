"""`/sessions`: open another conversation."""

from __future__ import annotations

from tui.commands import UI, Chat, CommandError, command
from tui.views.conversations import session_menu


@command("open another conversation", "conversation", when="idle", args="[words or id]", aliases=("resume",))
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Open the conversation with this id (or a part of it), else choose from those that contain the words."""
    session_id: str | None = None
    if args:
        every = await chat.workspace.sessions()
        named = [info for info in every if info.id.startswith(args) or info.id.endswith(args)]
        if len(named) > 1:
            raise CommandError(f"{len(named)} conversations have an id like {args!r}: write more of it.")
        session_id = named[0].id if named else None
    if session_id is None:
        session_id = await ui.choose(session_menu(chat.workspace, chat.session, args))
    if session_id is not None:
        await ui.attach(await chat.workspace.resume(session_id))

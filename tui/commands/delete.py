"""`/delete`: remove this conversation from the list."""

from __future__ import annotations

from collections.abc import Sequence

from tui.commands.ui import UI, Chat, Command, CommandError
from tui.views.view import Choice

UNDO = "undo"


async def run(ui: UI, chat: Chat, args: str) -> None:
    """Delete it, or restore the conversation deleted last in this run."""
    workspace, session = chat.workspace, chat.session
    if args not in ("", UNDO):
        raise CommandError(f"/delete deletes this conversation; /delete {UNDO} brings back the last one.")
    if args == UNDO:
        if not (deleted := workspace.deleted):
            raise CommandError("Nothing was deleted since the start.")
        await workspace.restore_session(deleted)
        await ui.attach(await workspace.resume(deleted))
        return
    if not session.messages:
        raise CommandError("There is nothing in this conversation yet.")
    title = session.title
    await workspace.delete_session(session.id)
    await ui.attach(await workspace.new_session())
    await ui.say(f"{title!r} is deleted. /delete {UNDO} brings it back.", passing=True)


async def complete(_ui: UI, chat: Chat, args: str) -> Sequence[Choice]:
    """Offers nothing before a letter is typed: enter after `/delete ` deletes."""
    return [Choice(UNDO, UNDO, "bring back what was deleted last")] if args and chat.workspace.deleted else []


COMMAND = Command(
    "delete",
    "take this conversation out of the list; undo brings it back",
    run,
    "conversation",
    when="idle",
    args="[undo]",
    complete=complete,
)

"""`/delete`: remove this conversation from the list."""

from __future__ import annotations

from collections.abc import Sequence

from tui.commands import UI, Chat, CommandError, command
from tui.views.view import Option

UNDO = "undo"


async def complete(_ui: UI, chat: Chat, args: str) -> Sequence[Option]:
    """Offers nothing before a letter is typed: enter after `/delete ` deletes."""
    return [Option(UNDO, UNDO, "restore the conversation deleted last")] if args and chat.workspace.deleted else []


@command("delete this conversation; undo restores it", "conversation", when="idle", args="[undo]", complete=complete)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Delete it, or restore the conversation deleted last in this run."""
    workspace, session = chat.workspace, chat.session
    if args not in ("", UNDO):
        raise CommandError(f"/delete deletes this conversation; /delete {UNDO} restores the one deleted last.")
    if args == UNDO:
        if not (deleted := workspace.deleted):
            raise CommandError("No conversation was deleted since chatctx started.")
        await workspace.restore_session(deleted)
        restored = await workspace.resume(deleted)
        await ui.attach(restored)
        await ui.say(f"{restored.conversation.info.title!r} is restored.", passing=True)
        return
    if not session.messages:
        raise CommandError("This conversation is empty.")
    title = session.conversation.info.title
    await workspace.delete_session(session.id)
    await ui.attach(await workspace.new_session())
    await ui.say(f"{title!r} is deleted. /delete {UNDO} restores it.", passing=True)

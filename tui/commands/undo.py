"""`/undo`: undo the last compaction, or the last change of its summary."""

from __future__ import annotations

from tui.commands import UI, Chat, CommandError, command


@command("undo the last compaction, or the last change of its summary", "context", when="idle")
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Undo it and say what was restored."""
    line = await chat.session.undo()
    if line is None:
        raise CommandError("There is no compaction to undo.")
    await ui.changed()
    await ui.say(line)

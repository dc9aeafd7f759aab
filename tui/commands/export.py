"""`/export`: write this conversation to a file."""

from __future__ import annotations

from tui.commands import UI, Chat, CommandError, command
from tui.config.files import new_file
from tui.text.clean import abbreviated


@command("write this conversation to a file", "conversation", args="[FILE.md|.html|.jsonl]", local_only=True)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Write it; the file's suffix names the format. Never overwrites a file."""
    name = args or f"chatctx-{chat.session.id[-8:]}.md"
    try:
        path = new_file(name)
        await chat.session.export(path)
    except OSError as error:
        shown = abbreviated(name, 60)
        raise CommandError(f"{shown} can't be written ({error.strerror}): name another place.") from None
    except ValueError as error:
        raise CommandError(f"Not written: {error}.") from None
    await ui.say(f"Written to {path.absolute()}")

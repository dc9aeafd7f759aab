"""`/export`: write this conversation to a file."""

from __future__ import annotations

from tui.commands import UI, Chat, CommandError, command
from tui.config.files import at_home, is_there
from tui.text.clean import abbreviated


@command("write this conversation to a file", "conversation", args="[FILE.md|.html|.jsonl]", local_only=True)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Write it; the file's suffix names the format. Never overwrites a file."""
    name = args or f"chatctx-{chat.session.id[-8:]}.md"
    path = at_home(name)
    if is_there(path):
        raise CommandError(f"Not written: {path} is there already: name another file.")
    try:
        await chat.session.export(path)
    except OSError as error:
        shown = abbreviated(name, 60)
        raise CommandError(f"{shown} can't be written ({error.strerror}): name another place.") from None
    except ValueError as error:
        raise CommandError(f"Not written: {error}.") from None
    await ui.say(f"Written to {path.absolute()}")

"""`/export`: write this conversation to a file."""

from __future__ import annotations

from tui.commands import UI, Chat, command, split_option
from tui.config.files import at_home

FORCE = "--force"


@command("write this conversation to a file", "conversation", args="[FILE.md|.html|.jsonl] [--force]", local_only=True)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Write it; the file's suffix names the format. A file that is there is overwritten only with --force."""
    name, overwrite = split_option(args, FORCE)
    path = at_home(name or f"chatctx-{chat.session.id[-8:]}.md")
    await chat.session.export(path, overwrite=overwrite)
    await ui.say(f"Written to {path.absolute()}")

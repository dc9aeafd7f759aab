"""`/paste`: attach the image in the system clipboard, or insert its text."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tui.commands import UI, Chat, CommandError, command
from tui.config.files import short_path


@command("attach the image in the clipboard, or insert its text", "view", local_only=True)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Save an image as a file and mention it in the draft; text goes into the draft as a paste."""
    from tui.chat.clipboard import ClipboardError, paste_tools, read, save_picture
    from tui.text.labels import mention_of

    screen = ui.screen
    try:
        content = await read(*await asyncio.to_thread(paste_tools, os.environ))
    except ClipboardError:
        if screen is not None and screen.clipboard:  # copied within this program
            await screen.paste(screen.clipboard)
            return
        raise
    if isinstance(content, str):
        if screen is None:
            raise CommandError("The clipboard holds text: the terminal pastes it.")
        await screen.paste(content)
        return
    try:
        path = await asyncio.to_thread(save_picture, content, chat.workspace.settings.data_dir / "pictures")
    except OSError as error:
        raise CommandError(f"The image can't be saved ({error.strerror}): make room in the data folder.") from None
    name = short_path(path, Path.home())
    if screen is not None:
        await screen.mention(name)
    else:
        await ui.say(f"The image is saved. Name it in a message: {mention_of(name)}")

"""The command `/paste`: the picture in the system's clipboard becomes an attachment, its text goes into the draft."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tui.screens.chat.command_base import CommandBase


class PasteCommand(CommandBase):
    """`/paste`, and the key for it."""

    async def paste(self, _args: str) -> None:
        """Put a picture beside the other attachments of the draft (`@file`), or insert text as a paste."""
        from tui.screens.clipboard_reading import ClipboardError, keep, read, tools_for

        area = self.screen.composer.area
        try:
            found = await read(*await asyncio.to_thread(tools_for, os.environ))
            if isinstance(found, str):
                area.insert_paste(found)
                return
            path = await asyncio.to_thread(keep, found, self.screen.pictures)
        except ClipboardError as error:
            if text := self.screen.app.clipboard:  # copied in here
                area.insert_paste(text)
            else:
                self.refuse(str(error))
            return
        except OSError as error:
            self.refuse(f"The picture can't be kept ({error.strerror}): there has to be room in the data folder.")
            return
        area.mention(_short(path))


def _short(path: Path) -> str:
    """The path as a person writes it."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except ValueError:
        return str(path)

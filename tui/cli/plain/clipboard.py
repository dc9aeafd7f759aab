"""`/copy` and `/paste` in `chatctx --plain`: by the system's tools alone, no escape sequence is ever written."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from tui.chat.store.store import UsageError
from tui.cli.lines import FENCE
from tui.cli.listing import write
from tui.screens import clipboard
from tui.screens.clipboard_reading import ClipboardError, keep, read, tools_for
from tui.widgets.composer.paste import mention_of

if TYPE_CHECKING:
    from tui.cli.plain.ports import ChatLike


class PlainClipboard:
    """The commands about the clipboard. Errors are raised; the chat says them."""

    def __init__(self, chat: ChatLike) -> None:
        self._chat = chat

    async def copy(self, _args: str) -> None:
        """The last answer, as it was written."""
        messages = self._chat.session.messages
        answer = next((m for m in reversed(messages) if m.role == "assistant" and m.text), None)
        if answer is None:
            raise UsageError("there is no answer to copy yet")
        tool = clipboard.tool_for(os.environ)
        if tool is None or not await clipboard.run_tool(tool, answer.text):
            raise UsageError("the clipboard is out of reach here: /export FILE writes the conversation to a file")
        write(clipboard.outcome("", len(answer.text), tool[0], True))

    async def paste(self, _args: str) -> None:
        """Keep the picture in the clipboard, and say how it goes along. Text is pasted by the terminal."""
        try:
            found = await read(*await asyncio.to_thread(tools_for, os.environ))
            if isinstance(found, str):
                raise UsageError(f"the clipboard holds text: paste it between two lines of {FENCE}")
            path = await asyncio.to_thread(keep, found, self._chat.workspace.settings.data_dir / "pictures")
        except ClipboardError as error:
            raise UsageError(str(error)) from None
        except OSError as error:
            what = f"the picture can't be kept ({error.strerror}): there has to be room in the data folder"
            raise UsageError(what) from None
        write(f"The picture is kept. Name it in a message: {mention_of(str(path))}")

"""Copying, and saying truthfully what came of it."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping
from functools import cached_property

from textual.app import App
from textual.worker import Worker

TIMEOUT = 2.0
"""Seconds a clipboard tool may take."""


def tool_for(environ: Mapping[str, str], platform: str = sys.platform) -> list[str] | None:
    """The command that takes the clipboard's text on its input here, None where there is none.

    Inside tmux its own buffer is set, and with `-w` the clipboard of the terminal around it: there the escape sequence
    of the program would end in tmux. Over ssh the tools of this machine would reach the wrong clipboard.
    """
    candidates: list[list[str]] = []
    if environ.get("TMUX"):
        candidates.append(["tmux", "load-buffer", "-w", "-"])
    elif not environ.get("SSH_CONNECTION"):
        if platform == "darwin":
            candidates.append(["pbcopy"])
        if environ.get("WAYLAND_DISPLAY"):
            candidates.append(["wl-copy"])
        if environ.get("DISPLAY"):
            candidates += [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
        if platform == "win32" or environ.get("WSL_DISTRO_NAME"):
            candidates.append(["clip.exe"])
    return next((command for command in candidates if shutil.which(command[0])), None)


async def run_tool(command: list[str], text: str) -> bool:
    """Give `text` to a clipboard tool. True if it said that all is well."""
    devnull = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=devnull, stderr=devnull
        )
        async with asyncio.timeout(TIMEOUT):
            await process.communicate(text.encode("utf-8", "replace"))
    except (OSError, TimeoutError):
        return False
    return process.returncode == 0


def outcome(name: str, characters: int, tool: str | None, worked: bool) -> str:
    """What to tell the person: who took the text (`name`, where it has one), or that nobody can know."""
    what = f"{name}, {characters:,} characters" if name else f"{characters:,} characters"
    if tool is not None and worked:
        return f"Copied {what} ({tool})."
    return f"Sent {what} to the terminal's clipboard (OSC 52). If they don't arrive, the terminal does not allow it."


class CopyingApp(App[None]):
    """An app in which every copy goes every way there is, whoever asks for it: a key, a selection, a text field."""

    @cached_property
    def _one_copy(self) -> asyncio.Lock:
        """The tools take their turn: the last copy is the one that stays."""
        return asyncio.Lock()

    def copy_to_clipboard(self, text: str, what: str = "") -> None:
        """Copy by the escape sequence and by the system's tool, then say which is known to have worked.

        `what` names the text.
        """
        super().copy_to_clipboard(text.encode("utf-8", "replace").decode())

        async def by_tool() -> None:
            async with self._one_copy:
                tool = tool_for(os.environ)
                worked = tool is not None and await run_tool(tool, text)
            self.notify(outcome(what, len(text), tool[0] if tool else None, worked), markup=False)

        worker: Worker[None] = self.run_worker(by_tool, group="copy", exit_on_error=False)
        del worker  # named only for its type

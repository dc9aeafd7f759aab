"""The command `/import`: a session from a file, opened at once."""

from __future__ import annotations

from pathlib import Path

from tui.screens.command_base import CommandBase


class ImportCommand(CommandBase):
    """`/import FILE`."""

    async def take_in(self, args: str) -> None:
        """Read, measure, store and open it; what can't be read is said, and nothing of it is kept."""
        from tui.chat.recording import RecordingError  # with the store behind it: not before the first frame

        workspace = self.workspace()
        if workspace is None or self.idle() is None:
            return
        if not args:
            self.refuse("/import needs a file: a .jsonl of chatctx, or a session of Claude Code, pi or Gemini CLI.")
            return
        try:
            info = await workspace.import_file(_path(args))
        except RecordingError as error:
            self.refuse(f"Not imported: {error}")
            return
        await self.screen.attach(await workspace.resume(info.id))
        self.screen.notify(f"Imported {info.messages:,} messages.", markup=False)


def _path(name: str) -> Path:
    return Path(name).expanduser()

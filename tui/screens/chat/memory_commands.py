"""The command `/memory`: which instruction files go along, what they cost, and switching them."""

from __future__ import annotations

from collections.abc import Sequence

from tui.screens.chat.command_base import CommandBase
from tui.screens.items import Item, filtered
from tui.screens.session_ports import SessionLike
from tui.text.cells import plain
from tui.text.numbers import tokens_exact
from tui.widgets.composer.completion import Choice


class MemoryCommands(CommandBase):
    """`/memory [FILE]`."""

    async def memory(self, args: str) -> None:
        """Without a name the list of files; with one, that file is switched off, or on again."""
        if (session := self.idle()) is None:
            return
        if not session.memory.files:
            self.say("There are no memory files here. AGENTS.md in this folder or above would be one.")
            return
        if not args:
            self.pick("Memory files: Enter switches one", filtered(self._memory_items), self._switch, "search files")
            return
        file = session.memory.find(args)
        if file is None:
            names = ", ".join(known.name for known in session.memory.files)
            self.refuse(f"There is no one memory file {args!r}: there is {names}.")
            return
        await session.switch_memory(file.name, not file.on)
        await session.refresh_usage()
        self.recounted()
        self.say(f"{plain(file.name)} is {'not sent any more' if file.on else 'sent again'}, from the next message on.")

    def _switch(self, name: str | None) -> None:
        if name is not None:
            self.screen.action_command(f"memory {name}")

    async def _memory_items(self) -> list[Item]:
        session = self.screen.session
        if session is None:
            return []
        return [
            Item(file.name, plain(file.name), f"{'on ' if file.on else 'off'}   ~{tokens} tokens", file.on)
            for file, tokens in zip(session.memory.files, self._tokens(session), strict=True)
        ]

    def _tokens(self, session: SessionLike) -> list[str]:
        return [tokens_exact(session.draft_tokens(file.section().text)) for file in session.memory.files]

    async def complete_memory(self, _args: str) -> Sequence[Choice]:
        """Files by name."""
        return [Choice(item.key, item.label, item.detail) for item in await self._memory_items()]

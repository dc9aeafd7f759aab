"""Commands about conversations: new, open, name, write out, take away, use."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.config.paths import new_file
from tui.screens.chat.command_base import CommandBase
from tui.screens.items import Item
from tui.text.numbers import age

if TYPE_CHECKING:
    from tui.screens.ports import SessionInfoLike


class ConversationCommands(CommandBase):
    """The commands `/new`, `/sessions`, `/rename`, `/export`, `/delete`, `/retry` and `/usage`."""

    deleted = ""  # id of the conversation deleted last in this run

    async def new(self, _args: str) -> None:
        """`/new`."""
        workspace = self.workspace()
        if workspace is not None and self.idle() is not None:
            await self.screen.attach(await workspace.new_session())

    async def pick_session(self, args: str) -> None:
        """`/sessions [words]`: the list, or the one conversation that was named."""
        workspace = self.workspace()
        if workspace is None or self.idle() is None:
            return
        if args and any(info.id == args for info in await workspace.sessions()):
            await self.screen.attach(await workspace.resume(args))
            return

        async def source(query: str) -> Sequence[Item]:
            return self._session_items(await workspace.sessions(query or args))

        from tui.screens.sessions import SessionPicker

        present = self.screen.session.id if self.screen.session is not None else ""
        hint = args or "search in all conversations"
        picker = SessionPicker(workspace, source, self._renamed, placeholder=hint, present=present)
        self.screen.app.push_screen(picker, self._resume)

    async def _renamed(self, session_id: str, title: str) -> None:
        """Give a conversation of the list another name."""
        session, workspace = self.screen.session, self.workspace()
        if session is not None and session.id == session_id:
            await session.rename(title)
            self.screen.refresh_title()
        elif workspace is not None:
            await workspace.rename_session(session_id, title)

    def _session_items(self, infos: Sequence[SessionInfoLike]) -> list[Item]:
        present = self.screen.session.id if self.screen.session is not None else ""
        now = time.time()
        items = []
        for info in infos:
            label = ("↳ " if info.parent else "") + (info.title or "(no title)")
            when = f"{age(info.updated_at, now):>6}"
            detail = f"{when}   {info.messages:>5,} msgs   {info.model}"
            items.append(Item(info.id, label, detail, info.id == present, when))
        return items

    def _resume(self, session_id: str | None) -> None:
        if session_id is not None:
            self.screen.action_command(f"sessions {session_id}")

    async def retry(self, _args: str) -> None:
        """`/retry`."""
        if (session := self.idle()) is not None:
            self.screen.turns.run(session.retry())

    async def rename(self, args: str) -> None:
        """`/rename TITLE`."""
        if (session := self.ready()) is None:
            return
        if not args:
            self.refuse("/rename needs a title.")
            return
        await session.rename(args)
        self.screen.refresh_title()

    async def export(self, args: str) -> None:
        """`/export [FILE]`: never over a file that is there."""
        if (session := self.ready()) is None:
            return
        name = args or f"chatctx-{session.id[-8:]}.md"
        try:
            path = new_file(name)
            await session.export(path)
        except OSError as error:
            self.refuse(f"Not written: {name} ({error.strerror}); name another place.")
            return
        except ValueError as error:
            self.refuse(f"Not written: {error}.")
            return
        self.say(f"Written to {path.absolute()}")

    async def delete(self, args: str) -> None:
        """`/delete`: take the conversation on screen out of the list; `/delete undo` puts the last one back."""
        workspace = self.workspace()
        if workspace is None or (session := self.idle()) is None:
            return
        if args == "undo" and self.deleted:
            await workspace.restore_session(self.deleted)
            await self.screen.attach(await workspace.resume(self.deleted))
            self.deleted = ""
            return
        if not session.messages:
            self.refuse("There is nothing in this conversation yet.")
            return
        self.deleted = session.id
        title = session.title
        await workspace.delete_session(session.id)
        await self.screen.attach(await workspace.new_session())
        self.screen.notify(f"{title!r} is deleted. /delete undo brings it back.", timeout=8, markup=False)

    async def usage(self, _args: str) -> None:
        """`/usage`."""
        from tui.screens.usage import UsagePanel

        session, workspace = self.ready(), self.workspace()
        if session is not None and workspace is not None:
            self.screen.app.push_screen(UsagePanel(workspace, session))

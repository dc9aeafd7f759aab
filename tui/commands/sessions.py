"""`/sessions`: open another conversation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui.commands import UI, Chat, CommandError, command
from tui.text.numbers import age
from tui.views.view import Menu, Option

if TYPE_CHECKING:
    from tui.chat.turn.session import ChatSession
    from tui.chat.workspace import Workspace

FORK = "↳ "
"""Mark before the title of a forked conversation."""


@dataclass(frozen=True, kw_only=True)
class SessionMenu(Menu):
    """The stored conversations; they can also be renamed, deleted and restored."""

    workspace: Workspace
    session: ChatSession


def session_menu(workspace: Workspace, session: ChatSession, words: str = "") -> SessionMenu:
    """The conversations that contain `words`; the words can be changed in the menu."""

    async def source(query: str) -> Sequence[Option]:
        options, now = [], time.time()
        for info in await workspace.sessions(query or words):
            label = (FORK if info.parent else "") + (info.title or "(no title)")
            when = f"{age(info.updated_at, now):>6}"
            detail = f"{when}   {info.messages:>5,} msgs   {info.model}"
            options.append(Option(info.id, label, detail, info.id == session.id, when, info.id[-8:]))
        return options

    return SessionMenu(
        title="Conversations",
        source=source,
        usage="/sessions ID",
        placeholder=words or "search in all conversations",
        empty="no matches" if words else "no conversations yet",
        workspace=workspace,
        session=session,
    )


@command("open another conversation", "conversation", when="idle", args="[words or id]", aliases=("resume",))
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Open the conversation with this id (or a part of it), else choose from those that contain the words."""
    named = await asyncio.to_thread(chat.workspace.store.with_id, args)
    if len(named) > 1:
        raise CommandError(f"Several conversations have an id like {args!r}: type more of it.")
    session_id = named[0].id if named else await ui.choose(session_menu(chat.workspace, chat.session, args))
    if session_id is not None:
        await ui.attach(await chat.workspace.resume(session_id))

"""Stored conversations to choose from, and search results in one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from tui.text.cells import plain
from tui.text.numbers import age, plural
from tui.views.view import Menu, Option

if TYPE_CHECKING:
    from tui.chat.store.store import SessionInfo
    from tui.chat.turn.session import ChatSession
    from tui.chat.workspace import Workspace
    from tui.messages import Message

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
        infos = await workspace.sessions(query or words)
        return session_options(infos, session.id, time.time())

    return SessionMenu(
        title="Conversations",
        source=source,
        usage="/sessions ID",
        placeholder=words or "search in all conversations",
        empty="no matches" if words else "no conversations yet",
        workspace=workspace,
        session=session,
    )


def session_options(infos: Sequence[SessionInfo], present: str, now: float) -> list[Option]:
    """One line each; `present` is the id of the current one."""
    options = []
    for info in infos:
        label = (FORK if info.parent else "") + (info.title or "(no title)")
        when = f"{age(info.updated_at, now):>6}"
        detail = f"{when}   {info.messages:>5,} msgs   {info.model}"
        options.append(Option(info.id, label, detail, info.id == present, when, info.id[-8:]))
    return options


@dataclass(frozen=True, slots=True)
class FindView:
    """The lines of a conversation that contain some words."""

    messages: Sequence[Message]
    words: str
    title = "Found"

    async def lines(self, width: int) -> Sequence[Content]:
        """Each after the role of its author, then their number."""
        words = self.words.lower()
        matches = [
            f"{message.role}: {plain(line)}"
            for message in self.messages
            for line in message.text.splitlines()
            if words in line.lower()
        ]
        return [*map(Content, matches), Content(f"{plural(len(matches), 'line')}.")]

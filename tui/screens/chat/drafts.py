"""The draft being written and prompts for the up key: stored copies that survive a crash."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.chat.turn.session import ChatSession
    from tui.screens.chat.screen import ChatScreen

log = logging.getLogger(__name__)

SAVE_PAUSE = 0.4
"""Seconds after a key before the draft is stored."""


class Drafts:
    """Stores the draft of a chat screen, and prompts for the up key."""

    def __init__(self, screen: ChatScreen) -> None:
        self.screen = screen
        self.unstored: list[str] = []  # prompts for the up key that are not stored yet

    def save_soon(self) -> None:
        """Store the draft after a short pause."""
        self.screen.soon(self.save, "draft-save", SAVE_PAUSE)

    @property
    def text(self) -> str:
        """Everything written that is not stored elsewhere: what is being sent, what waits, and the prompt.

        The stored draft is replaced by a shorter one only once the removed part is stored.
        """
        turns, composer = self.screen.turns, self.screen.composer
        texts = [*self.unstored, turns.sending, *turns.waiting, *composer.outgoing, *composer.history.left]
        return "\n\n".join(filter(None, [*texts, composer.value])).strip("\n")

    async def save(self) -> None:
        """Store the draft, and waiting messages, now."""
        session = self.screen.session
        if session is not None:
            await session.save_draft(self.text)

    async def hand_over(self, before: ChatSession, session: ChatSession) -> None:
        """Move the draft to a conversation without one; otherwise each keeps its own. Raises `StoreError`."""
        if session.draft:
            await before.save_draft(self.text)
            self.screen.composer.value = session.draft
        else:
            await session.save_draft(self.text)  # before it is removed from the old one
            await before.save_draft("")

    def remember(self, text: str, *, sent: bool = False) -> None:
        """Store a prompt for the up key, in this run and later ones; until then it counts as a draft.

        A `sent` message is part of the conversation as well.
        """
        history = self.screen.composer.history
        left = history.left
        history.add(text)
        for one in left if sent else [*left, text]:
            self.unstored.append(one)
            self.screen.background(partial(self.store_prompt, one), "prompts")
        if sent and self.screen.workspace is not None:
            self.screen.background(partial(self.screen.workspace.add_prompt, text), "prompts")

    async def remember_now(self, text: str) -> None:
        """Like `remember`, but stored when this returns. Raises `StoreError`, with the text kept in memory."""
        self.screen.composer.history.add(text)
        self.unstored.append(text)
        await self.store_prompt(text)

    async def store_prompt(self, text: str) -> None:
        """Store a prompt for the up key; until then it is part of the draft. Raises `StoreError`."""
        if self.screen.workspace is not None:
            await self.screen.workspace.add_prompt(text)
            self.unstored.remove(text)
            self.save_soon()

"""What the parts of the plain chat need of the whole: who is talked to, and how a person is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tui.chat.conversation.events import SessionEvent
    from tui.chat.turn.session import ChatSession
    from tui.chat.workspace import Workspace


class ChatLike(Protocol):
    """One conversation after another. `talks`: a person is at both ends, so that who speaks has to be said."""

    session: ChatSession

    @property
    def workspace(self) -> Workspace:
        """Everything behind the chat."""
        ...

    @property
    def talks(self) -> bool:
        """Whether a person reads and writes, and no pipe."""
        ...

    def introduce(self) -> None:
        """Say who answers, and where a stored conversation stood."""
        ...

    async def ask(self, question: str) -> str:
        """One line from the person; "" at the end of all lines."""
        ...

    async def text(self, question: str) -> str:
        """One line from the person, or all between two fences; "" at the end of all lines."""
        ...

    async def turn(self, events: AsyncIterator[SessionEvent]) -> None:
        """Write down what a turn brings."""
        ...

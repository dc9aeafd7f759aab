"""What the screens need of a conversation's tools, as a protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tui.chat.calling.session_tools import ToolLine
    from tui.context.reduction.deferral import ToolPlan
    from tui.context.usage.rows import UsageItem
    from tui.tools.approval import Decision, Remembered


class SessionToolsLike(Protocol):
    """The tools of one conversation."""

    @property
    def plan(self) -> ToolPlan:
        """What goes out now, and what waits until the model searches for it."""
        ...

    @property
    def takes_any(self) -> bool:
        """Whether the model in use calls tools, as far as that is known."""
        ...

    @property
    def off_by_default(self) -> bool:
        """Whether tools are off for the model in use unless they are switched on."""
        ...

    async def prepare(self) -> None:
        """Count what is offered, where that was not done yet."""
        ...

    async def lines(self, items: Sequence[UsageItem] = ()) -> Sequence[ToolLine]:
        """Every tool there is; `items` are the tools' rows of the latest measure."""
        ...

    async def switch(self, pattern: str, on: bool) -> Sequence[str]:
        """Switch the tools whose name fits; their names."""
        ...

    def approve(self, ask_id: str, decision: Decision) -> None:
        """A person's answer to a call that asks."""
        ...

    async def remembered(self) -> Sequence[Remembered]:
        """The answers that hold for all conversations."""
        ...

    async def forget(self, name: str) -> None:
        """Ask again for this tool."""
        ...

    async def full_text(self, sha256: str) -> str | None:
        """All of a result that was cut; None where it is not kept here."""
        ...

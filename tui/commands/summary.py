"""`/summary`: read and edit the summary of what was compacted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from tui.commands import UI, Chat, CommandError, command

if TYPE_CHECKING:
    from tui.chat.compaction.compactor import CurrentSummary
    from tui.chat.conversation.events import SessionEvent
    from tui.chat.turn.session import ChatSession


@command("read and edit the summary of what was compacted", "context", when="idle")
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Edit the current summary. A person types no `args`: a message of the transcript passes its id."""
    session = chat.session
    summary = session.compactor.current_summary(args)
    if summary is None:
        none = "There is no summary: /compact makes one."
        raise CommandError("This summary was replaced or undone." if args else none)
    await ui.edit(summary)
    if summary.done is not None:
        await ui.turn(_edited(session, summary))


async def _edited(session: ChatSession, summary: CurrentSummary) -> AsyncIterator[SessionEvent]:
    from tui.chat.conversation.events import MessageAdded, Notice, UsageChanged
    from tui.context.reduction.compaction import compaction_report

    assert summary.done is not None
    record, message = summary.done
    yield MessageAdded(message)
    yield Notice("info", compaction_report(record))
    yield UsageChanged(await session.refresh_usage())

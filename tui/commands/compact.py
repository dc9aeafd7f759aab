"""`/compact`: summarise the older part of the conversation now."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from tui.commands import UI, Chat, CommandError, command
from tui.errors import ExpectedError
from tui.views.view import Option

if TYPE_CHECKING:
    from tui.chat.conversation.events import SessionEvent
    from tui.chat.turn.session import ChatSession

PREVIEW = "--preview"
_PREVIEW = (PREVIEW, "edit the summary before it takes effect")


async def complete(_ui: UI, _chat: Chat, args: str) -> Sequence[Option]:
    """Offers nothing before a "-" is typed: enter after `/compact ` compacts."""
    return [Option(PREVIEW, *_PREVIEW)] if args.startswith("-") else []


@command(
    "summarise the older part; --preview to edit the summary first",
    "context",
    when="idle",
    args="[--preview] [focus]",
    complete=complete,
    variants=(_PREVIEW,),
)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Compact, or show the summary first; arguments are instructions to the model."""
    first, _, instructions = args.partition(" ")
    if first == PREVIEW:
        await ui.turn(_previewed(ui, chat.session, instructions.strip()))
    elif first.startswith("--"):
        raise CommandError(f"/compact has the option {PREVIEW}, not {first}.")
    else:
        await ui.turn(chat.session.compact(args))


async def _previewed(ui: UI, session: ChatSession, instructions: str) -> AsyncIterator[SessionEvent]:
    """Run a turn until the person has decided, so that queued messages wait for it."""
    from tui.chat.conversation.events import CompactionFinished, CompactionStarted, Notice, UsageChanged
    from tui.context.reduction.records import CompactionRecord

    yield CompactionStarted(automatic=False)
    try:
        draft = await session.compactor.draft_summary(instructions)
    except ExpectedError as error:
        yield Notice("warning", f"{str(error).rstrip('.')}. Nothing was changed.")
        return
    await ui.edit(draft)
    match draft.done:
        case CompactionRecord() as record, summary:
            yield CompactionFinished(record, summary)
        case _:
            yield Notice("info", "Not compacted. Nothing was changed.")
    yield UsageChanged(await session.refresh_usage())

"""Going back and leaving out, where a summary stands for part of the conversation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat.fakes import FakeWorkspace, ScriptedProvider, drain, open_workspace
from tui.chat.session import ChatSession

LONG = "The keeper counts the boats in the harbour, and writes the number into the book with the red spine. " * 10


async def compacted(workspace: FakeWorkspace, times: int = 1) -> ChatSession:
    """Turns 0 to 3 behind the first summary, one turn more behind each later one, the last four as they were said."""
    session = await workspace.new_session()
    for number in range(7 + times):
        await drain(session.send(f"{number} {LONG}"))
        if number >= 7:
            await session.summaries.accept(await session.summaries.draft(), f"Summary {number - 6}.")
    return session


def sent(session: ChatSession) -> list[str]:
    """What of the person's messages and the summaries would go out, in brief."""
    messages = [m for m in session._conversation.request().messages if m.role == "user"]
    return [m.text.split()[-1 if m.kind == "summary" else 0] for m in messages]


def turn(session: ChatSession, number: int) -> str:
    """The id of the message that began a turn."""
    return next(m.id for m in session.messages if m.text.startswith(f"{number} "))


@pytest.mark.parametrize("which", ["first", "last"])
async def test_leaving_out_a_message_at_the_edge_of_a_summary_brings_nothing_back(tmp_path: Path, which: str) -> None:
    async with open_workspace(tmp_path, ScriptedProvider(window=20_000)) as workspace:
        session = await compacted(workspace)
        before = sent(session)
        assert before == ["1.", "4", "5", "6", "7"]
        standing = session.summaries.standing()
        assert standing is not None
        edge = getattr(standing.record, which)
        await session.exclude(edge, True)
        assert sent(session) == before
        await session.exclude(edge, False)
        await session.exclude(standing.message.id, True)
        assert sent(session) == before[1:]


@pytest.mark.parametrize(
    ("back_to", "left", "undone"),
    [
        (8, ["2.", "5", "6", "7"], "Compacted 3 messages"),  # the first summary, and turn 4
        (5, ["2."], "Compacted 3 messages"),
        (4, ["1."], "Compacted 8 messages"),
        (2, ["0", "1"], ""),
        (0, [], ""),
    ],
)
async def test_going_back_keeps_the_summaries_of_what_came_before(
    tmp_path: Path, back_to: int, left: list[str], undone: str
) -> None:
    async with open_workspace(tmp_path, ScriptedProvider(window=20_000)) as workspace:
        session = await compacted(workspace, 2)
        assert sent(session) == ["2.", "5", "6", "7", "8"]
        await session.rewind(turn(session, back_to))
        assert sent(session) == left
        line = await session.undo() or ""
        assert line.removeprefix("Taken back: ").partition(":")[0] == undone

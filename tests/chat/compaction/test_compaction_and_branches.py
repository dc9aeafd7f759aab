"""Going back and leaving out, where a summary stands for part of the conversation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat.fakes import FakeWorkspace, ScriptedProvider, drain, open_workspace
from tui.chat.turn.session import ChatSession

LONG = "The keeper counts the boats in the harbour, and writes the number into the book with the red spine. " * 10


async def compacted(workspace: FakeWorkspace, times: int = 1) -> ChatSession:
    """Turns 0 to 3 behind the first summary, one turn more behind each later one, the last four as they were said."""
    session = await workspace.new_session()
    for number in range(7 + times):
        await drain(session.send(f"{number} {LONG}"))
        if number >= 7:
            await (await session.compactor.draft_summary()).accept(f"Summary {number - 6}.")
    return session


def sent(session: ChatSession) -> list[str]:
    """What of the person's messages and the summaries would go out, in brief."""
    messages = [m for m in session.conversation.request().messages if m.role == "user"]
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
        current = session.compactor.current_summary()
        assert current is not None
        edge = getattr(current.record, which)
        await session.exclude(edge, True)
        assert sent(session) == before
        await session.exclude(edge, False)
        await session.exclude(current.message.id, True)
        assert sent(session) == before[1:]


@pytest.mark.parametrize(
    ("back_to", "remaining", "undone"),
    [
        (8, ["2.", "5", "6", "7"], "Compacted 3 messages"),  # the first summary, and turn 4
        (5, ["2."], "Compacted 3 messages"),
        (4, ["1."], "Compacted 8 messages"),
        (2, ["0", "1"], ""),
        (0, [], ""),
    ],
)
async def test_going_back_keeps_the_summaries_of_what_came_before(
    tmp_path: Path, back_to: int, remaining: list[str], undone: str
) -> None:
    async with open_workspace(tmp_path, ScriptedProvider(window=20_000)) as workspace:
        session = await compacted(workspace, 2)
        assert sent(session) == ["2.", "5", "6", "7", "8"]
        await session.rewind(turn(session, back_to))
        assert sent(session) == remaining
        line = await session.undo() or ""
        assert line.removeprefix("Undone: ").partition(":")[0] == undone


async def test_what_no_summary_has_read_stays_beside_it(tmp_path: Path) -> None:
    """A message of another program in the same conversation, and one that was left out and is taken in again."""
    provider = ScriptedProvider(window=20_000)
    async with open_workspace(tmp_path, provider) as workspace, open_workspace(tmp_path, provider) as elsewhere:
        session = await workspace.new_session()
        await drain(session.send(f"0 {LONG}"))
        other = await elsewhere.resume(session.id)
        await drain(other.send(f"other {LONG}"))
        for number in range(1, 8):
            await drain(session.send(f"{number} {LONG}"))
        left_out = turn(session, 2)
        await session.exclude(left_out, True)
        draft = await session.compactor.draft_summary()
        await draft.accept("Summary 1.")
        await session.exclude(left_out, False)
        assert sent(session) == ["1.", "2", "4", "5", "6", "7"]
        again = await workspace.resume(session.id)
        assert sent(again) == ["1.", "other", "2", "4", "5", "6", "7"]
        await drain(again.send(f"8 {LONG}"))
        await (await again.compactor.draft_summary()).accept("Summary 2.")
        assert sent(again) == ["2.", "5", "6", "7", "8"]  # this one has read them

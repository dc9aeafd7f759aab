"""What a person wrote waits for the disk; what only a kill must not take does not."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from tests.chat.fakes import ScriptedProvider, drain, open_workspace
from tests.messages import assistant, tool
from tui.chat.store.database import new_id
from tui.messages import ToolResult
from tui.providers.base import TextDelta

OWN = re.compile(r"INSERT INTO (messages|records|prompts) |UPDATE sessions SET draft")
STREAM = re.compile(r"(?:INSERT|INSERT OR REPLACE) INTO (deltas|calls|counts|state) ")


async def test_words_of_a_person_wait_for_the_disk_and_a_stream_does_not(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        session = await workspace.new_session()
        statements: list[str] = []
        workspace.store._db.set_trace_callback(statements.append)
        await drain(session.send("hello"))
        await session.conversation.save_draft("half a thought")
        await session.exclude(session.messages[0].id, True)
        await workspace.add_prompt("hello")
        assert {kind for kind, _ in _writes(statements, OWN)} == {"messages", "records", "prompts", "draft"}
        assert all(full for _, full in _writes(statements, OWN))
        reply = assistant(id=new_id(), status="streaming")
        await asyncio.to_thread(session.conversation.write_events, reply, [TextDelta("word ")])
        workspace.store._db.set_trace_callback(None)
        assert ("messages", False) in _writes(statements, OWN)  # the row of the reply that streams
        assert {kind for kind, _ in _writes(statements, STREAM)} >= {"deltas", "calls", "counts", "state"}
        assert not any(full for _, full in _writes(statements, STREAM))


async def test_a_tools_result_waits_for_the_disk(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        session = await workspace.new_session()
        first, second = ToolResult("c1", "f", "r"), ToolResult("c2", "f", "r")
        statements: list[str] = []
        workspace.store._db.set_trace_callback(statements.append)
        for results in ((first,), (first, second)):
            workspace.store.add_message(session.id, tool(*results, id="0", status="streaming"))
        workspace.store._db.set_trace_callback(None)
        assert set(_writes(statements, OWN)) == {("messages", True)}


def _writes(statements: list[str], pattern: re.Pattern[str]) -> list[tuple[str, bool]]:
    """What was written, and whether its commit waited for the disk."""
    writes: list[tuple[str, bool]] = []
    full = False
    for statement in statements:
        if statement.startswith("PRAGMA synchronous"):
            full = statement.endswith("FULL")
        elif match := pattern.search(statement):
            writes.append((match.group(1) or "draft", full))
    return writes

"""A compaction killed at any of its writes: the store opens, and the conversation is as before or as after."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chat.fakes import ScriptedProvider, drain, open_workspace
from tui.chat.conversation.history import RecordKind
from tui.context.reduction.records import active_compactions
from tui.messages import Message

CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.chat.fakes import ScriptedProvider, answer, drain, open_workspace

async def main(folder, last):
    provider = ScriptedProvider([answer("They spoke of boats.")], window=20_000)
    async with open_workspace(Path(folder), provider) as workspace:
        session = await workspace.resume()
        await session.refresh_usage()
        written = 0
        def count(statement):
            nonlocal written
            if statement.split()[0] in ("INSERT", "UPDATE", "DELETE", "COMMIT", "BEGIN"):
                written += 1
                if written == last:
                    os.kill(os.getpid(), signal.SIGKILL)
        workspace.store._db.set_trace_callback(count)
        await drain(session.compact())
        workspace.store._db.set_trace_callback(None)
        print(written)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


async def prepare(folder: Path) -> list[Message]:
    """A session worth compacting, in `folder`; its messages."""
    async with open_workspace(folder, ScriptedProvider(window=20_000)) as workspace:
        session = await workspace.new_session()
        for number in range(10):
            await drain(session.send(f"{number}: boats, sails and gulls. " * 20))
        return list(session.messages)


def compacted(folder: Path, kill_at: int) -> subprocess.CompletedProcess[str]:
    """A process that compacts the session in `folder` and is killed at its write number `kill_at` (0: never)."""
    command = [sys.executable, "-c", CHILD, str(folder), str(kill_at)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


async def state_after_restart(folder: Path) -> tuple[list[Message], int, int]:
    """What a new start finds: the messages, the compactions in force, the next request's tokens; it can go on."""
    async with open_workspace(folder, ScriptedProvider(window=20_000)) as workspace:
        session = await workspace.resume()
        messages = list(session.messages)
        records = workspace.store.records(session.id)
        usage = await session.refresh_usage()
        events = await drain(session.send("and then?"))
        assert events
        assert session.messages[-1].status == "complete"
        in_force = active_compactions(session.conversation.state.checkpoints)
        assert len([r for r in records if r.kind == RecordKind.CHECKPOINT]) == len(in_force)
        return messages, len(in_force), usage.total


@pytest.mark.slow
def test_killed_at_every_write_it_is_before_or_after(tmp_path: Path) -> None:
    original = tmp_path / "original"
    original.mkdir()
    before = asyncio.run(prepare(original))
    whole = tmp_path / "whole"
    shutil.copytree(original, whole)
    done = compacted(whole, 0)
    assert done.returncode == 0, done.stderr
    writes = int(done.stdout)
    after, compactions, small = asyncio.run(state_after_restart(whole))
    assert (len(after), compactions) == (len(before) + 1, 1)
    assert writes >= 5
    outcomes = set()
    for kill_at in range(1, writes + 1):
        folder = tmp_path / str(kill_at)
        shutil.copytree(original, folder)
        assert compacted(folder, kill_at).returncode == -9
        messages, compactions, total = asyncio.run(state_after_restart(folder))
        if compactions:
            assert (len(messages), total) == (len(after), small)
        else:
            assert messages == before
            assert total > small
        outcomes.add(compactions)
    assert 0 in outcomes

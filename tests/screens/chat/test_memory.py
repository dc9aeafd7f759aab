"""`/memory`, and what is said of memory files when a session opens."""

from __future__ import annotations

import pytest

from tests.fakes import FakeSession, FakeWorkspace
from tests.screens.conftest import running
from tui.chat.memory_files import MemoryFile, MemoryFiles

MEMORY = MemoryFiles(
    (
        MemoryFile("/p/AGENTS.md", "~/p/AGENTS.md", "be brief " * 30, "00"),
        MemoryFile("/c/AGENTS.md", "~/c/AGENTS.md", "be kind", "01", on=False),
    ),
    ("~/p/AGENTS.md has changed: its new text goes with the next message.",),
)


@pytest.mark.slow
async def test_notices_are_shown_and_the_list_switches() -> None:
    session = FakeSession(memory=MEMORY)
    async with running(FakeWorkspace(session)) as run:
        await run.shows("has changed")
        await run.type("/memory")
        await run.press("enter")
        await run.shows("Memory files", "~/p/AGENTS.md", "on ", "off", "tokens")
        await run.press("enter")
        await run.shows("~/p/AGENTS.md is not sent any more")
        assert [file.on for file in session.memory.files] == [False, False]
        await run.type("/memory c/AGENTS.md")
        await run.press("enter")
        await run.shows("~/c/AGENTS.md is sent again")
        assert [file.on for file in session.memory.files] == [False, True]
        await run.type("/memory nothing.txt")
        await run.press("enter")
        await run.shows("No single memory file")


async def test_without_files_it_says_how_there_would_be_one() -> None:
    async with running() as run:
        await run.type("/memory")
        await run.press("enter")
        await run.shows("AGENTS.md in this folder")

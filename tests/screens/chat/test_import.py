"""`/import FILE` on the screen: what was imported before is asked about, a long import says how far it is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.widgets import OptionList

from tests.screens.conftest import running
from tests.screens.scenarios import SESSION, Scenario, assistant, user
from tui.chat.interchange.importing import Imported
from tui.chat.workspace import Workspace


@pytest.mark.slow
async def test_what_was_imported_before_can_be_opened_or_had_twice(tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    async with running(Scenario(messages=[user("old"), assistant("older")], title="an old talk")) as run:
        await run.command(f"/export {file}")
        await run.shows("Written to")
        await run.command("/new")
        await run.until(lambda: run.session.id != SESSION)
        await run.command(f"/import {file}")
        await run.shows("Imported before", "All 2 messages of this file are here already.", "an old talk")
        await run.press("escape")
        await run.until(lambda: run.app.screen is run.chat)
        assert run.session.messages == []
        await run.command(f"/import {file}")
        await run.shows("Open what is here")
        await run.until(lambda: isinstance(run.app.focused, OptionList))
        await run.press("enter")
        await run.until(lambda: run.session.id == SESSION)
        await run.command(f"/import {file}")
        await run.shows("Import it again")
        await run.until(lambda: isinstance(run.app.focused, OptionList))
        await run.press("down", "enter")
        await run.until(lambda: run.session.id != SESSION)
        assert [message.text for message in run.session.messages] == ["old", "older"]


async def test_an_import_says_that_it_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = asyncio.Event()

    async def slowly(self: Workspace, path: Path, *, again: bool = False) -> Imported:
        await gate.wait()
        return Imported(self.store.sessions()[0], calls=0, source="chatctx")

    monkeypatch.setattr(Workspace, "import_file", slowly)
    async with running(Scenario(messages=[user("old")])) as run:
        await run.command("/import talk.jsonl")
        await run.shows("● importing talk.jsonl …")
        await run.type("meanwhile")
        gate.set()
        await run.shows("Imported 1 message.")
        await run.until(lambda: "importing" not in run.text)

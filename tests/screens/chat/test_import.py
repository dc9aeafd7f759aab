"""`/import FILE`."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import OptionList

from tests.fakes import FakeInfo
from tests.screens.conftest import running


async def test_a_file_comes_in_and_is_opened(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").touch()
    async with running() as run:
        await run.type("/import ")
        await run.press("enter")
        await run.shows("/import needs a file")
        await run.type(f"/import {tmp_path / 'none.jsonl'}")
        await run.press("enter")
        await run.shows("Not imported", "no such file")
        assert run.workspace.resumed == []
        await run.type(f"/import {tmp_path / 'talk.jsonl'}")
        await run.press("enter")
        await run.until(lambda: run.workspace.resumed == ["s9"])


@pytest.mark.slow
async def test_what_was_imported_before_can_be_opened_or_had_twice(tmp_path: Path) -> None:
    file = tmp_path / "twice.jsonl"
    async with running() as run:
        run.workspace.infos = [FakeInfo("s8", "an old talk")]
        await run.command(f"/import {file}")
        await run.shows("Imported before", "All 4 messages of this file are here already.", "an old talk")
        await run.press("escape")
        await run.until(lambda: run.app.screen is run.chat)
        assert run.workspace.resumed == []
        await run.command(f"/import {file}")
        await run.shows("Open what is here")
        await run.until(lambda: isinstance(run.app.focused, OptionList))
        await run.press("enter")
        await run.until(lambda: run.workspace.resumed == ["s8"])
        await run.command(f"/import {file}")
        await run.shows("Import it again")
        await run.until(lambda: isinstance(run.app.focused, OptionList))
        await run.press("down", "enter")
        await run.until(lambda: run.workspace.resumed == ["s8", "s9"])


async def test_a_long_import_says_how_far_it_is(tmp_path: Path) -> None:
    async with running() as run:
        run.workspace.import_gate.clear()
        await run.command(f"/import {tmp_path / 'talk.jsonl'}")
        await run.shows("importing talk.jsonl, 7 of 9 calls measured")
        await run.type("meanwhile")
        run.workspace.import_gate.set()
        await run.until(lambda: run.workspace.resumed == ["s9"])
        await run.until(lambda: "importing" not in run.text)

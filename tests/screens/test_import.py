"""`/import FILE`."""

from __future__ import annotations

from pathlib import Path

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

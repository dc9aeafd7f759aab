"""What is stored beside conversations, and is damaged or of another version: it costs that value only."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.chat.fakes import ScriptedProvider, drain, open_workspace
from tui.tools.approval import Remembered

STATE = {
    "window:scripted/m": ('{"asked": {"newer": 1}}', '{"asked": 5, "cut": "x"}', '{"asked": {"context": 8000}}'),
    "models:scripted": ('{"models": 5}', '{"models": [{"newer": 1}]}', '{"models": [{"id": null}], "at": "x"}'),
    "tool_approvals": ('{"x": 5}', '{"x": {}}', '{"x": []}'),
    "mcp_agreed": ('{"/a/.mcp.json": 5}',),
    "last_models": ('{"": 5, "scripted": {}}', "["),
    "trims": ('{"requests": Infinity}',),
}
OF_KEY = "INSERT OR REPLACE INTO state VALUES (?, ?)"
CASES: list[tuple[str, tuple[str, ...]]] = []
CASES += [(OF_KEY, (key, value)) for key, values in STATE.items() for value in values]
CASES += [("UPDATE measurements SET data = ?", (data,)) for data in ("x", "[]", '{"replied": 5}', '{"newer": 1}')]
CASES += [("UPDATE calibrations SET data = ?", (data,)) for data in ("x", "5", '{"observations": [[]]}')]
CASES += [("UPDATE prompts SET text = ?", ("x",))]


@pytest.mark.parametrize(("sql", "values"), CASES)
async def test_an_odd_value_costs_that_value_only(tmp_path: Path, sql: str, values: tuple[str, ...]) -> None:
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        await drain((await workspace.new_session()).send("hello"))
        await workspace.model_list.ask()
        workspace.store.add_prompt("hello")
        path = workspace.store.path
    with sqlite3.connect(path) as db:
        db.execute(sql, values)
    db.close()
    async with open_workspace(tmp_path, ScriptedProvider()) as workspace:
        session = await workspace.resume()
        await session.set_rolling(True)
        await drain(session.send("again"))
        assert session.messages[-1].status == "complete"
        await workspace.model_list.cached()
        await session.tools.lines()
        assert session.tools.box.remembered() == {}
        session.tools.box.remember(Remembered("x", "allow", "f"))
        await session.set_window(5_000)
        assert (await session.refresh_usage()).limits.context == 5_000
        workspace.store.add_prompt("again")
        assert workspace.store.prompts()[-1] == "again"

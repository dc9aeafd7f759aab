from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.messages import tool
from tests.screens.conftest import SIZES, running
from tests.screens.scenarios import SESSION, ident
from tests.screens.tooling import Tooling
from tui.chat.tool_calls.session_tools import ToolLine
from tui.messages import ToolResult
from tui.screens.pager import Pager
from tui.screens.tools import ToolsPanel
from tui.tools.approval import Remembered

LINES = [
    ToolLine("list_files", "built-in", "Lists.", 130, "estimated", True, "allow", True, 0.0),
    ToolLine("read_file", "built-in", "Reads.", 210, "derived", True, "allow", True, 1.0),
    ToolLine("github__create_issue", "github", "Creates [red]an[/] issue.", 480, "estimated", True, "ask", False, 0.0),
    ToolLine("github__delete\x1b[2J", "github", "Deletes.", None, "estimated", False, "never", False, 0.0),
]


ANSWERS = [Remembered("github__create_issue", "allow", "x"), Remembered("gone__tool", "never", "y")]


def tooling(**values: Any) -> Tooling:
    return Tooling(**{"listed": list(LINES), "answers": list(ANSWERS), **values})


async def test_every_tool_is_listed_with_its_cost_and_its_rule_and_nothing_changes() -> None:
    setup = tooling()
    async with running(setup.scenario()) as run:
        records = run.workspace.store.records(SESSION)
        await run.command("/tools")
        for size in SIZES:
            await run.pilot.resize_terminal(*size)
            await run.shows("built in: 2 of 2 on", "● list_files", "~130", "MCP server github: 1 of 2 on")
            [read] = [line for line in run.text.splitlines() if "● read_file" in line]
            assert " 210 " in read
            await run.until(lambda: any("● create" in line and "asks first" in line for line in run.text.splitlines()))
            assert "\x1b" not in run.text
        setup.listed.append(replace(LINES[2], name="mail__send", origin="mail"))
        setup.tell(run.workspace, "mail")  # the open list follows
        await run.until(lambda: isinstance(run.app.screen, ToolsPanel) and len(run.app.screen.rows) == 10)
        await run.press("escape")
        assert (setup.listed[:-1], setup.answers, setup.switched) == (LINES, ANSWERS, [])
        assert run.workspace.store.records(SESSION) == records


@pytest.mark.slow
async def test_the_keys_stay_on_one_line_below_the_list() -> None:
    async with running(tooling(listed=LINES * 5).scenario(), size=(60, 20)) as run:
        await run.command("/tools")
        await run.shows("● create_issue")
        await run.press("down", "down")
        await run.shows("space on or off   f forget your answer   esc close")
        await run.pilot.resize_terminal(40, 15)
        await run.shows("space on or off  esc close")


@pytest.mark.slow
async def test_the_cost_of_all_says_how_it_is_known() -> None:
    async with running(tooling().scenario()) as run:
        await run.command("/tools")
        await run.shows("3 tools, ~8,000 tokens with every request (estimated)")


@pytest.mark.slow
async def test_a_key_switches_and_enter_on_a_source_changes_nothing() -> None:
    setup = tooling()
    async with running(setup.scenario()) as run:
        await run.command("/tools")
        await run.shows("● list_files")
        await run.press("enter")
        await run.pilot.pause()
        assert [line.on for line in setup.listed] == [True, True, True, False]
        await run.press("down", "space")
        await run.shows("○ list_files")
        await run.press("up", "space")
        await run.shows("built in: 0 of 2 on")
        await run.press("space")
        await run.shows("built in: 2 of 2 on")


@pytest.mark.slow
async def test_all_of_a_server_is_one_switch() -> None:
    setup = tooling(listed=[replace(LINES[2], name=f"github__{number}") for number in range(40)])
    async with running(setup.scenario()) as run:
        await run.command("/tools")
        await run.shows("MCP server github: 40 of 40 on")
        await run.press("space")
        await run.shows("MCP server github: 0 of 40 on")
        assert setup.switched == [("github__*", False)]


@pytest.mark.slow
async def test_an_answer_can_be_forgotten() -> None:
    setup = tooling()
    async with running(setup.scenario()) as run:
        await run.command("/tools")
        await run.shows("gone__tool: never runs, you said", "asks first, you said")
        await run.press(*["down"] * 6, "f")
        await run.until(lambda: [answer.tool for answer in setup.answers] == ["github__create_issue"])
        await run.press(*["up"] * 2, "f")
        await run.until(lambda: not setup.answers)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("takes", "small", "words"),
    [(False, False, "This model does not support tools"), (True, True, "Off for this model, which is small")],
)
async def test_why_there_are_none_is_said(takes: bool, small: bool, words: str) -> None:
    off = [replace(line, on=False) for line in LINES]
    async with running(tooling(listed=off, takes_any=takes, off_by_default=small).scenario()) as run:
        await run.command("/tools")
        await run.shows(words)


@pytest.mark.slow
async def test_all_of_a_cut_result_can_be_read() -> None:
    whole = "\n".join(f"line {number}\x1b[31m" for number in range(5_000))
    message = tool(ToolResult("c", "fetch", "line 0\n[…]", full="aa"), ToolResult("d", "read", "short"), id=ident("m9"))
    async with running(tooling(texts={"aa": whole}).scenario(messages=[message])) as run:
        await run.press("alt+up")
        await run.shows("o open · enter unfold · c copy")
        await run.press("o")
        await run.until(lambda: isinstance(run.app.screen, Pager))
        await run.shows("fetch, read: 5,003 lines", "── fetch ──", "line 20")
        await run.press("end")
        await run.shows("line 4999", "── read ──", "short")
        assert "\x1b" not in run.text
        await run.press("home")
        await run.shows("line 0")
        await run.press("escape")
        await run.until(lambda: run.app.screen is run.chat)

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes import FakeSession, FakeWorkspace
from tests.screens.conftest import SIZES, running
from tui.chat.calling.session_tools import ToolLine
from tui.messages import Message, ToolResult
from tui.screens.pager import Pager
from tui.screens.tools.tools import ToolsPanel
from tui.tools.approval import Remembered

LINES = [
    ToolLine("list_files", "built-in", "Lists.", 130, "estimated", True, "allow", True, 0.0),
    ToolLine("read_file", "built-in", "Reads.", 210, "derived", True, "allow", True, 1.0),
    ToolLine("github__create_issue", "github", "Creates [red]an[/] issue.", 480, "estimated", True, "ask", False, 0.0),
    ToolLine("github__delete\x1b[2J", "github", "Deletes.", None, "estimated", False, "never", False, 0.0),
]


def workspace() -> FakeWorkspace:
    session = FakeSession()
    session.tools.listed = list(LINES)
    session.tools.kept = [Remembered("github__create_issue", "allow", "x"), Remembered("gone__tool", "never", "y")]
    return FakeWorkspace(session)


@pytest.mark.parametrize("size", SIZES)
async def test_every_tool_is_listed_with_its_cost_and_its_rule(size: tuple[int, int]) -> None:
    async with running(workspace(), size=size) as run:
        await run.command("/tools")
        await run.shows("built in: 2 of 2 on", "● list_files", "~130", "MCP server github: 1 of 2 on")
        [read] = [line for line in run.text.splitlines() if "● read_file" in line]
        assert " 210 " in read
        [create] = [line for line in run.text.splitlines() if "● create" in line]
        assert "asks first" in create
        assert "\x1b" not in run.text


async def test_the_keys_stay_on_one_line_below_the_list() -> None:
    fake = workspace()
    fake.session.tools.listed *= 5
    async with running(fake, size=(60, 20)) as run:
        await run.command("/tools")
        await run.shows("● create_issue")
        await run.press("down", "down")
        await run.shows("space on or off   f forget your answer   esc close")
        await run.pilot.resize_terminal(40, 15)
        await run.shows("space on or off  esc close")


async def test_an_open_list_follows_servers() -> None:
    async with running(workspace()) as run:
        await run.command("/tools")
        await run.shows("● create_issue")
        run.session.tools.listed.append(replace(LINES[2], name="mail__send", origin="mail"))
        run.workspace.servers.tell("mail")
        await run.shows("MCP server mail: 1 of 1 on")


async def test_the_search_says_how_it_goes_away() -> None:
    async with running(workspace()) as run:
        await run.command("/tools off search_tools")
        await run.shows('[tools] defer = "off" sends them all')


@pytest.mark.slow
async def test_the_cost_of_all_says_how_it_is_known() -> None:
    async with running(workspace()) as run:
        await run.command("/tools")
        await run.shows("3 tools, ~8,000 tokens with every request (estimated)")


@pytest.mark.slow
async def test_a_key_switches_and_enter_on_a_source_changes_nothing() -> None:
    async with running(workspace()) as run:
        await run.command("/tools")
        await run.shows("● list_files")
        await run.press("enter")
        await run.pilot.pause()
        assert [line.on for line in run.session.tools.listed] == [True, True, True, False]
        await run.press("down", "space")
        await run.shows("○ list_files")
        await run.press("up", "space")
        await run.shows("built in: 0 of 2 on")
        await run.press("space")
        await run.shows("built in: 2 of 2 on")


@pytest.mark.slow
async def test_all_of_a_server_is_one_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = workspace()
    shown.session.tools.listed = [replace(LINES[2], name=f"github__{number}") for number in range(40)]
    real, asked = shown.session.tools.switch, []

    async def switch(pattern: str, on: bool) -> list[str]:
        asked.append((pattern, on))
        return await real(pattern, on)

    monkeypatch.setattr(shown.session.tools, "switch", switch)
    async with running(shown) as run:
        await run.command("/tools")
        await run.shows("MCP server github: 40 of 40 on")
        await run.press("space")
        await run.shows("MCP server github: 0 of 40 on")
        assert asked == [("github__*", False)]


@pytest.mark.slow
async def test_an_answer_can_be_forgotten() -> None:
    async with running(workspace()) as run:
        await run.command("/tools")
        await run.shows("gone__tool: never runs, you said", "asks first, you said")
        await run.press(*["down"] * 6, "f")
        await run.until(lambda: [answer.tool for answer in run.session.tools.kept] == ["github__create_issue"])
        await run.press(*["up"] * 2, "f")
        await run.until(lambda: not run.session.tools.kept)


async def test_words_switch_without_the_panel() -> None:
    async with running(workspace()) as run:
        await run.command("/tools off read_file")
        await run.shows("read_file is not offered any more in this conversation.")
        assert not run.session.tools.listed[1].on
        await run.command("/tools on")
        await run.shows("4 tools are offered in this conversation.")
        await run.command("/tools off nonsense")
        await run.shows("There is no tool 'nonsense'")
        await run.command("/tools what")
        await run.shows("/tools lists the tools")
        run.session.tools.takes_any = False
        await run.command("/tools on read_file")
        await run.shows("this model calls no tools")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("takes", "small", "words"),
    [(False, False, "This model calls no tools"), (True, True, "Off for this model, which is small")],
)
async def test_why_there_are_none_is_said(takes: bool, small: bool, words: str) -> None:
    shown = workspace()
    shown.session.tools.listed = [replace(line, on=False) for line in LINES]
    shown.session.tools.takes_any, shown.session.tools.off_by_default = takes, small
    async with running(shown) as run:
        await run.command("/tools")
        await run.shows(words)


async def test_all_of_a_cut_result_can_be_read() -> None:
    whole = "\n".join(f"line {number}\x1b[31m" for number in range(5_000))
    message = Message(
        "tool", (ToolResult("c", "fetch", "line 0\n[…]", full="aa"), ToolResult("d", "read", "short")), id="m9"
    )
    shown = FakeWorkspace(FakeSession(messages=[message]))
    shown.session.tools.texts["aa"] = whole
    async with running(shown) as run:
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


async def test_opening_the_panel_changes_nothing() -> None:
    async with running(workspace()) as run:
        before = list(run.session.tools.listed), list(run.session.tools.kept), list(run.session.log)
        await run.command("/tools")
        await run.until(lambda: isinstance(run.app.screen, ToolsPanel))
        await run.shows("● list_files")
        await run.press("escape")
        assert (list(run.session.tools.listed), list(run.session.tools.kept), list(run.session.log)) == before

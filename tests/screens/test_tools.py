from __future__ import annotations

from typing import Any

import pytest

from tests.messages import tool as tool_message
from tests.screens.conftest import SIZES, Running, running
from tests.screens.scenarios import SESSION, EchoProvider, Scenario, ident
from tests.screens.tooling import Listed, Tooling, tool
from tui.chat.conversation.history import RecordKind
from tui.messages import ToolResult
from tui.providers.base import Capabilities
from tui.screens.pager import Pager
from tui.screens.tools import ToolsPanel
from tui.tools.approval import Remembered

NAMES = ("list_files", "read_file", "github__create_[red]issue", "github__delete\x1b[2J")
ANSWERS = [Remembered("github__create_[red]issue", "allow", "x"), Remembered("gone__tool", "never", "y")]
"""The first is of the tool as it was."""


def tooling(**values: Any) -> Tooling:
    built_in, github = [tool(name, read_only=True) for name in NAMES[:2]], [tool(name, "github") for name in NAMES[2:]]
    sources = [Listed(built_in), Listed(github, "github")]
    sizes = {"list_files": 130, "github__create_[red]issue": 480}
    return Tooling(**{"sources": sources, "off": [NAMES[3]], "answers": ANSWERS, "tokens": sizes, **values})


def row(run: Running, name: str) -> str:
    return next((line for line in run.text.splitlines() if f"● {name}" in line), "")


def on(run: Running) -> list[bool]:
    return [run.session.tools.is_on(name, run.session.conversation.target) for name in NAMES]


def switched(run: Running) -> list[dict[str, Any]]:
    return [record.data for record in run.workspace.store.records(SESSION) if record.kind == RecordKind.TOOLS]


async def test_every_tool_is_listed_with_its_cost_and_its_rule_and_nothing_changes() -> None:
    async with running(tooling().scenario()) as run:
        records = run.workspace.store.records(SESSION)
        await run.command("/tools")
        for size in SIZES:
            await run.resize(*size)
            await run.shows("built in: 2 of 2 on", "● list_files", "~130", "MCP server github: 1 of 2 on")
            await run.until(lambda: " ~2.7k " in row(run, "read_file") and "asks first" in row(run, "create"))
            assert "\x1b" not in run.text
        run.workspace.services.tools.sources["mail"] = Listed([tool("mail__send", "mail")], "mail")
        run.workspace.servers._heard("mail")  # the open list follows
        await run.until(lambda: isinstance(run.app.screen, ToolsPanel) and len(run.app.screen.rows) == 10)
        await run.press("escape")
        assert await run.session.tools.remembered() == ANSWERS
        assert run.workspace.store.records(SESSION) == records


@pytest.mark.slow
async def test_the_keys_stay_on_one_line_below_the_list() -> None:
    many = [Listed([tool(f"github__create_issue_{number:02}", "github") for number in range(20)], "github")]
    async with running(tooling(sources=many).scenario(), size=(60, 20)) as run:
        await run.command("/tools")
        await run.shows("● create_issue_00")
        await run.press("down", "down")
        await run.shows("space on or off   f forget your answer   esc close")
        await run.resize(40, 15)
        await run.shows("space on or off  esc close")


@pytest.mark.slow
async def test_the_cost_of_all_says_how_it_is_known() -> None:
    async with running(tooling().scenario()) as run:
        await run.command("/tools")
        await run.shows("3 tools, ~8,000 tokens with every request (estimated)")


@pytest.mark.slow
async def test_a_key_switches_and_enter_on_a_source_changes_nothing() -> None:
    async with running(tooling().scenario()) as run:
        await run.command("/tools")
        await run.shows("● list_files")
        await run.press("enter")
        await run.pilot.pause()
        assert on(run) == [True, True, True, False]
        await run.press("down", "space")
        await run.shows("○ list_files")
        await run.press("up", "space")
        await run.shows("built in: 0 of 2 on")
        await run.press("space")
        await run.shows("built in: 2 of 2 on")


@pytest.mark.slow
async def test_all_of_a_server_is_one_switch() -> None:
    many = [Listed([tool(f"github__{number}", "github") for number in range(40)], "github")]
    async with running(tooling(sources=many, off=()).scenario()) as run:
        await run.command("/tools")
        await run.shows("MCP server github: 40 of 40 on")
        await run.press("space")
        await run.shows("MCP server github: 0 of 40 on")
        assert switched(run) == [{"name": "github__*", "on": False}]


@pytest.mark.slow
async def test_an_answer_can_be_forgotten() -> None:
    async with running(tooling().scenario()) as run:
        box = run.workspace.services.tools
        await run.command("/tools")
        await run.shows("gone__tool: never runs, you said", "asks first, you said")
        await run.press(*["down"] * 6, "f")
        await run.until(lambda: list(box.remembered()) == [ANSWERS[0].tool])
        await run.press(*["up"] * 2, "f")
        await run.until(lambda: not box.remembered())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"server": EchoProvider(able=Capabilities(tools=False))}, "This model does not support tools"),
        ({"provider": "demo"}, "Off for this model, which is small"),
    ],
)
async def test_why_there_are_none_is_said(values: dict[str, Any], words: str) -> None:
    async with running(tooling().scenario(**values)) as run:
        await run.command("/tools")
        await run.shows(words)


@pytest.mark.slow
async def test_all_of_a_cut_result_can_be_read() -> None:
    whole = "\n".join(f"line {number}\x1b[31m" for number in range(5_000))
    message = tool_message(
        ToolResult("c", "fetch", "line 0\n[…]", full="aa"), ToolResult("d", "read", "short"), id=ident("m9")
    )
    async with running(Scenario(messages=[message])) as run:
        run.workspace.store.put_blob("aa", whole.encode())
        await run.press("alt+up")
        await run.shows("o open   enter unfold   c copy")
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

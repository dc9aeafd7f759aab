"""Keys that a panel shows at its edge can be clicked."""

from __future__ import annotations

import pytest

from tests.chat.fakes import answer
from tests.screens import mcp_scene, tool_scene
from tests.screens.conftest import Running, running
from tests.screens.scenarios import Scenario, assistant, ident, long_scenario, stored, user
from tests.screens.tool_scene import ASKED
from tui.screens.question import ApprovalPanel

pytestmark = pytest.mark.slow  # the whole program on a screen, most of a second each


async def click(run: Running, words: str) -> None:
    """Click on `words`, wherever they are."""
    await run.shows(words)
    lines = run.text.splitlines()
    y = next(number for number, line in enumerate(lines) if words in line)
    await run.pilot.click(offset=(lines[y].index(words) + 1, y))


@pytest.mark.slow
async def test_everything_about_context_can_be_clicked() -> None:
    scenario = Scenario(messages=[user("hi", "m1"), assistant("ho", "m2")])
    async with running(scenario) as run:
        await click(run, "/context for more")
        await click(run, "m messages")
        await click(run, "p pin")
        await run.until(lambda: run.session.conversation.state.pinned == {ident("m2")})
        await click(run, "s biggest first")
        await click(run, "s in order")
        await click(run, "x leave out")
        await run.until(lambda: run.session.conversation.not_sent() == {ident("m2"): "excluded"})
        await click(run, "esc back")
        await click(run, "h requests")
        await click(run, "esc back")
        await click(run, "f fits where?")
        await click(run, "esc back")
        await click(run, "t rolling on")
        await run.until(lambda: run.session.conversation.info.rolling)
        await click(run, "system prompt")
        await click(run, "esc close")
        await run.until(lambda: run.app.screen is run.chat)


async def test_conversations_are_deleted_brought_back_and_opened_by_mouse() -> None:
    async with running(
        Scenario(other=[stored("s8", "one", updated_at=4.0), stored("s9", "two", updated_at=3.0)])
    ) as run:
        await run.command("/sessions")
        await run.shows("one", "two")
        await click(run, "^d delete")
        await run.until(lambda: run.workspace.deleted == "s8")
        await click(run, "^z restore")
        await run.until(lambda: not run.workspace.deleted)
        await click(run, "enter open")
        await run.until(lambda: run.session.id == "s8")


@pytest.mark.slow
async def test_a_summary_is_asked_for_again_left_and_accepted_by_mouse() -> None:
    async with running(long_scenario()) as run:
        run.server.script += [answer("the first"), answer("the second"), answer("the third")]
        await run.command("/compact --preview")
        await click(run, "ctrl+r ask again")
        await run.press("enter")
        await run.shows("the second")
        await click(run, "esc cancel")
        await run.shows("Not compacted")
        await run.command("/compact --preview")
        await click(run, "ctrl+s compact with this")
        await run.shows("Compacted ")
        summary = run.session.compactor.current_summary()
        assert summary is not None and summary.text == "the third"


async def test_a_call_that_asks_is_stopped_by_mouse() -> None:
    async with running(size=(80, 24)) as run:
        run.app.push_screen(ApprovalPanel(ASKED, lambda _typed: None))
        await click(run, "esc stop the answer")
        await run.until(lambda: run.app.screen is run.chat)


@pytest.mark.slow
async def test_tools_are_switched_and_left_by_mouse() -> None:
    async with running(tool_scene.scenario()) as run:
        await run.command("/tools")
        await click(run, "list_files")
        await run.shows("○ list_files")
        await click(run, "space on or off")
        await run.shows("● list_files")
        await click(run, "esc close")
        await run.until(lambda: run.app.screen is run.chat)


@pytest.mark.slow
async def test_servers_are_unfolded_and_left_by_mouse() -> None:
    async with running(mcp_scene.scenario()) as run:
        await run.command("/mcp")
        await run.shows("enter read it and decide")
        await run.press("down")
        await click(run, "enter unfold")
        await run.shows("docs.example.com")
        await click(run, "esc close")
        await run.until(lambda: run.app.screen is run.chat)


@pytest.mark.slow
async def test_a_key_that_the_person_has_set_is_the_one_shown_and_pressed() -> None:
    keys = {
        "context.messages": "l", "panel.close": "f9", "pager.copy": "k", "tools.switch": "w", "approval.once": "j",
        "sessions.delete": "ctrl+b",
    }  # fmt: skip
    async with running(tool_scene.scenario(), keys=keys) as run:
        await run.press("f2")
        await run.shows("l messages   h requests", "q close")
        await run.press("l")
        await run.shows("Messages ·", "q back")
        await run.press("f9", "f9")
        await run.command("/tools")
        await run.shows("w all on or off", "q close")
        await run.press("f9")
        await run.command("/sessions")
        await run.shows("^r rename   ^b delete   f9 close")
        await run.press("f9")
        run.app.push_screen(ApprovalPanel(ASKED, lambda _typed: None))
        await run.shows("j  run it, once", "s  run it, in this", "f9 stop the answer")


async def test_the_keys_of_a_chosen_message_are_those_of_the_person_and_can_be_clicked() -> None:
    keys = {"transcript.copy": "k,ctrl+k", "transcript.leave": "q"}
    async with running(Scenario(messages=[user("hi", "m1"), assistant("ho", "m2")]), keys=keys) as run:
        await run.press("alt+up")
        await run.shows("k copy")
        await click(run, "p pin")
        await run.until(lambda: run.session.conversation.state.pinned == {ident("m2")})
        await click(run, "q back")
        await run.until(lambda: run.chat.transcript.cursor_id is None)

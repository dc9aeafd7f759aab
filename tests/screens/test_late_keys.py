"""Keys that reach a panel before it is drawn or after it is closed: they end neither the program nor another panel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest
from textual.events import Paste, Resize
from textual.geometry import Size
from textual.message_pump import MessagePump
from textual.widgets import Input
from textual.worker import WorkerCancelled

from tests.screens import tool_scene
from tests.screens.conftest import running
from tests.screens.scenarios import Scenario, assistant, user
from tui.app import GuardedPalette
from tui.chat.turn.session import ChatSession
from tui.screens.base import Panel
from tui.screens.chat.screen import ChatScreen
from tui.screens.context_lists import MessagesPanel
from tui.screens.lists import Picker
from tui.screens.pager import HelpPanel
from tui.screens.rows import ListPanel
from tui.screens.tools import ToolListPanel

pytestmark = pytest.mark.slow  # the whole program on a screen, most of a second each


async def test_keys_for_a_palette_that_is_not_laid_out_yet() -> None:
    async with running(Scenario()) as run:
        run.app.action_command_palette()
        palette = run.app.screen
        for pause in range(6):
            await run.app.run_action("command_list('page_down')", palette)
            await run.app.run_action("command_list('cursor_down')", palette)
            await asyncio.sleep(0 if pause < 3 else 0.01)
        await run.shows("Search for commands")
        await run.press("escape")
        await run.until(lambda: run.app.screen is run.chat)


@pytest.mark.parametrize("opens", ["/", "palette"])
async def test_lists_in_a_window_of_a_few_cells(opens: str) -> None:
    async with running(Scenario()) as run:
        if opens == "palette":
            run.app.action_command_palette()
            await run.shows("Search for commands")
        else:
            await run.type(opens)
            await run.shows("/compact")
        for size in [(1, 1), (2, 20), (4, 4), (7, 3), (1, 40), (80, 24)]:
            await run.resize(*size)
            await run.press("down")
        assert run.app.is_running


async def test_a_palette_closed_before_its_search_begins() -> None:
    async with running(Scenario()) as run:
        run.app.action_command_palette()
        palette = run.app.screen
        assert isinstance(palette, GuardedPalette)
        await run.until(lambda: palette.is_mounted)
        palette.dismiss()
        await run.until(lambda: not palette.is_attached)
        with suppress(WorkerCancelled):
            await palette._gather_commands("x").wait()


async def test_a_panel_closed_twice_leaves_the_one_below_open() -> None:
    async with running(Scenario()) as run:
        await run.command("/help")
        await run.until(lambda: isinstance(run.app.screen, HelpPanel))
        run.app.action_command_palette()
        palette = run.app.screen
        await run.pilot.pause()
        palette.dismiss()
        palette.dismiss()
        await run.pilot.pause()
        assert isinstance(run.app.screen, HelpPanel)
        run.app.screen.dismiss(None)
        palette.dismiss()
        await run.until(lambda: run.app.screen is run.chat)


async def test_a_panel_closed_twice_below_another() -> None:
    async with running(Scenario()) as run:
        await run.command("/help")
        await run.until(lambda: isinstance(run.app.screen, HelpPanel))
        panel = run.app.screen
        run.app.action_command_palette()
        panel.dismiss(None)
        panel.dismiss(None)
        await run.until(lambda: run.app.screen is run.chat)


async def test_a_panel_closed_while_its_action_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = asyncio.Event()

    async def exclude(session: ChatSession, message_id: str, left_out: bool) -> None:
        await stored.wait()

    monkeypatch.setattr(ChatSession, "exclude", exclude)
    async with running(Scenario(messages=[user("hi", "m1"), assistant("ho", "m2")])) as run:
        await run.command("/context")
        await run.shows("m messages")
        await run.press("m")
        await run.until(lambda: isinstance(run.app.screen, MessagesPanel) and run.app.screen.is_mounted)
        panel = run.app.screen
        assert isinstance(panel, Panel)
        action = asyncio.create_task(run.app.run_action("select(False)", panel))
        await run.pilot.pause()
        panel.dismiss(None)
        await run.until(lambda: not panel.query("RowList"))
        stored.set()
        await action


async def test_a_palette_opened_again_while_the_first_one_closes() -> None:
    async with running(Scenario()) as run:
        for _ in range(3):
            run.app.action_command_palette()
            await asyncio.sleep(0)
            run.app.screen.dismiss()
        await run.until(lambda: run.app.screen is run.chat)


async def test_a_megabyte_pasted_into_a_field_of_one_line_is_refused() -> None:
    async with running(Scenario()) as run:
        await run.command("/sessions")
        await run.until(lambda: isinstance(run.app.focused, Input))
        field = run.app.focused
        assert isinstance(field, Input)
        field.post_message(Paste("word " * 200_000))
        field.post_message(Paste("term"))
        await run.until(lambda: field.value == "term")


async def test_a_change_of_tools_goes_on_once_its_panel_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, changed = asyncio.Event(), asyncio.Event()
    refresh_usage = ChatSession.refresh_usage

    async def slow(session: ChatSession) -> None:
        await counted.wait()
        await refresh_usage(session)

    monkeypatch.setattr(ChatScreen, "request_changed", lambda _screen: changed.set())
    async with running(tool_scene.scenario()) as run:
        await run.command("/tools")
        await run.shows("● list_files")
        panel = run.app.screen
        monkeypatch.setattr(ChatSession, "refresh_usage", slow)
        await run.press("down", "space", "escape")
        await run.until(lambda: not panel.is_attached)
        counted.set()
        await run.until(changed.is_set)


async def test_what_reaches_a_panel_that_closes_needs_no_widgets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[Callable[[], object]] = []
    async with running(Scenario()) as run:
        for command in ("/theme", "/sessions", "/context", "/tools", "/help"):
            await run.command(command)
            await run.until(lambda: run.app.screen is not run.chat and run.app.screen.is_mounted)
            panel = run.app.screen
            assert isinstance(panel, Panel)
            with monkeypatch.context() as patched:
                patched.setattr(MessagePump, "call_after_refresh", lambda _panel, callback: calls.append(callback))
                panel.call_after_refresh(panel.query_one, ".panel")
            await panel.dismiss(None)
            await run.until(lambda: run.app.screen is run.chat)
            assert not panel.query(".panel")
            calls.pop()()
            await panel.on_event(Resize(Size(70, 20), Size(70, 20)))


@pytest.mark.parametrize("command", ["/sessions", "/theme", "/tools"])
async def test_keys_pressed_before_a_list_is_there_act_on_it(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = late_lists(monkeypatch)
    async with running(tool_scene.scenario()) as run:
        await run.command(command)
        await run.shows("loading …")
        panel = run.app.screen
        await run.press("up")  # to the last row
        loaded.set()
        assert isinstance(panel, ListPanel)
        await run.until(lambda: len(panel.rows) > 1 and panel.cursor == len(panel.rows) - 1)


@pytest.mark.parametrize(("command", "close"), [("/sessions", "escape"), ("/tools", "escape"), ("/tools", "ctrl+c")])
async def test_keys_for_a_list_that_was_closed_before_it_came_do_nothing(
    command: str, close: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = late_lists(monkeypatch)
    async with running(tool_scene.scenario()) as run:
        await run.command(command)
        await run.shows("loading …")
        await run.press("down", "space", "ctrl+d", close)
        await run.until(lambda: run.app.screen is run.chat)
        loaded.set()
        await run.press("x")
        await run.until(lambda: run.chat.composer.value == "x")


async def test_letters_never_wait_for_a_menu_since_later_ones_would_pass_them(monkeypatch: pytest.MonkeyPatch) -> None:
    late_lists(monkeypatch)
    async with running(Scenario()) as run:
        await run.command("/sessions")
        await run.shows("loading …")
        panel = run.app.screen
        assert isinstance(panel, Picker)
        panel.set_focus(None)  # as it is at first
        await run.press("j", "k", "a", "down")
        assert [event.key for event in panel.held or ()] == ["down"]


def late_lists(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Makes all lists wait for the event."""
    loaded = asyncio.Event()

    def late(kind: type, name: str) -> None:
        read = getattr(kind, name)

        async def waiting(*arguments: object) -> object:
            await loaded.wait()
            return await read(*arguments)

        monkeypatch.setattr(kind, name, waiting)

    late(Picker, "options")
    late(ToolListPanel, "_read")
    return loaded

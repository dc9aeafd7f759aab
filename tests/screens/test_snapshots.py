"""Every screen as it looks, at three sizes, dark and light. After a wanted change: pytest --snapshot-update, then look.

Chat and `/context` are there in all six combinations, the others in one theme at each size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from tests.fakes import FakeSession, FakeSettings, FakeWorkspace, make_usage, opener
from tests.pictures import settled
from tests.screens import mcp_scene, scenes
from tests.screens.conftest import screen_text, wait_until
from tui.app import ChatApp
from tui.chat.events import ContextTrimmed, SessionEvent

Compare: TypeAlias = Callable[..., bool]

WIDE, USUAL, SMALL = (120, 40), (80, 24), (40, 15)
DARK, LIGHT = "chatctx-dark", "chatctx-light"


def case(size: tuple[int, int], theme: str) -> Any:
    """A parameter with a readable name."""
    return pytest.param((size, theme), id=f"{size[0]}x{size[1]}-{theme.removeprefix('chatctx-')}")


Case: TypeAlias = tuple[tuple[int, int], str]
ALL = [case(size, theme) for size in (WIDE, USUAL, SMALL) for theme in (DARK, LIGHT)]
SOME = [case(WIDE, DARK), case(USUAL, LIGHT), case(SMALL, DARK)]


class QuietApp(ChatApp):
    """The program without what would differ from one picture to the next."""

    def export_screenshot(self, **options: Any) -> str:
        """Without what changes: an address of a font, a number."""
        return settled(super().export_screenshot(**options))


@pytest.fixture(autouse=True)
def same_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """One clock, one time zone, an empty folder, no colours or clipboard tools of this terminal."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(time, "time", lambda: scenes.NOW)
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "TMUX", "DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    yield
    monkeypatch.undo()
    time.tzset()


def shows(
    compare: Compare,
    case: Case,
    workspace: FakeWorkspace,
    *keys: str,
    until: str,
    command: str = "",
    event: SessionEvent | None = None,
) -> bool:
    """Whether the screen after `event`, `command` and `keys`, once it shows `until`, is the one that was agreed on."""
    size, theme = case
    app = QuietApp(FakeSettings(theme=theme), opener(workspace))
    app.animation_level = "none"

    async def act(pilot: Pilot[Any]) -> None:
        chat = app.chat
        chat.composer.area.cursor_blink = False
        await wait_until(pilot, lambda: chat.session is not None and chat.cost is not None)
        if event is not None:
            chat.turns.show(event)
        if command:
            chat.action_command(command)
        for key in keys:
            await pilot.press(key)
        await wait_until(pilot, lambda: until in screen_text(app))
        for line in app.screen.query(Input):
            line.cursor_blink = False
        await pilot.pause()

    return compare(app, terminal_size=size, run_before=act)


@pytest.mark.parametrize("case", ALL)
def test_chat(snap_compare: Compare, case: Case) -> None:
    workspace, event = scenes.workspace(rolling=True), ContextTrimmed(2, 492, ("a1", "a2"))
    assert shows(snap_compare, case, workspace, event=event, until="492")


@pytest.mark.parametrize("case", ALL)
def test_context(snap_compare: Compare, case: Case) -> None:
    assert shows(snap_compare, case, scenes.workspace(), "f2", until="52,100")


@pytest.mark.parametrize("case", SOME)
@pytest.mark.parametrize("end", ["nearly_empty", "full", "unknown"])
def test_context_at_the_ends(snap_compare: Compare, end: str, case: Case) -> None:
    usage = {"nearly_empty": scenes.nearly_empty(), "full": scenes.full(), "unknown": scenes.typical(None)}[end]
    assert shows(snap_compare, case, scenes.workspace(usage), "f2", until=f"{usage.total:,}")


@pytest.mark.parametrize("case", SOME)
def test_context_messages(snap_compare: Compare, case: Case) -> None:
    assert shows(snap_compare, case, scenes.workspace(), "f2", "m", "up", until="◆")


@pytest.mark.parametrize("case", SOME)
def test_context_history(snap_compare: Compare, case: Case) -> None:
    workspace = scenes.workspace(messages=scenes.long_talk())
    assert shows(snap_compare, case, workspace, "f2", "h", until="40 calls")


@pytest.mark.parametrize("case", SOME)
def test_context_fits_where(snap_compare: Compare, case: Case) -> None:
    assert shows(snap_compare, case, scenes.workspace(), "f2", "f", until="Counted for the present model")


@pytest.mark.parametrize("case", SOME)
def test_usage(snap_compare: Compare, case: Case) -> None:
    assert shows(snap_compare, case, scenes.workspace(), command="usage", until="calls")


@pytest.mark.parametrize("case", SOME)
def test_conversations(snap_compare: Compare, case: Case) -> None:
    assert shows(snap_compare, case, scenes.workspace(), "down", command="sessions", until="↳")


@pytest.mark.parametrize("case", SOME)
def test_models(snap_compare: Compare, case: Case) -> None:
    assert shows(snap_compare, case, scenes.workspace(), command="model", until="qwen3")


@pytest.mark.parametrize("case", SOME)
def test_mcp(snap_compare: Compare, case: Case) -> None:
    assert shows(snap_compare, case, mcp_scene.workspace(), "down", "enter", command="mcp", until="log, all")


@pytest.mark.parametrize("case", SOME)
def test_help(snap_compare: Compare, case: Case) -> None:
    assert shows(snap_compare, case, scenes.workspace(), command="help", until="/context")


@pytest.mark.parametrize("case", SOME)
def test_welcome(snap_compare: Compare, case: Case) -> None:
    session = FakeSession(provider="local", model="SmolLM2-135M-Instruct", usage=make_usage(24, 8_192, rows=()))
    assert shows(snap_compare, case, FakeWorkspace(session=session), "/", until="/context")

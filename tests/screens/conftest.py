"""The app in a headless terminal, over a scripted workspace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.strip import Strip

from tests.fakes import FakeWorkspace, fake_settings, opener
from tui.app import ChatApp
from tui.config.settings import Settings

SIZES = [(120, 40), (60, 20), (40, 15)]


@pytest.fixture(autouse=True)
def nobodys_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No clipboard of whoever runs the tests."""
    for name in ("TMUX", "DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)


async def wait_until(pilot: Pilot[Any], condition: Callable[[], bool], *, seconds: float = 10.0) -> None:
    """Let the app work until `condition` holds; fails after `seconds`."""
    async with asyncio.timeout(seconds):
        while not condition():
            await pilot.pause(0.01)


def screen_text(app: ChatApp) -> str:
    """What the terminal shows, line by line, blanks at the ends cut."""
    width, height = app.size
    lines = app.screen._compositor.render_strips()
    return "\n".join(Strip.join([strip]).crop(0, width).text.rstrip() for strip in lines[:height])


class Running:
    """A started app with what tests look at."""

    def __init__(self, app: ChatApp, pilot: Pilot[Any], workspace: FakeWorkspace) -> None:
        self.app, self.pilot, self.workspace = app, pilot, workspace
        self.chat = app.chat

    @property
    def session(self) -> Any:
        """The fake session on screen."""
        return self.workspace.session

    @property
    def text(self) -> str:
        """What is on screen."""
        return screen_text(self.app)

    async def press(self, *keys: str) -> None:
        """Press keys."""
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        """Type text key by key, as fast as a terminal hands it over: Pilot would wait for the screen at each key."""
        for character in text:
            self.pilot.app.post_message(events.Key(_character_to_key(character), character))
        await self.pilot.pause()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition."""
        await wait_until(self.pilot, condition)

    async def shows(self, *parts: str) -> None:
        """Wait until all parts are on screen; on failure the screen is in the message."""
        try:
            await self.until(lambda: all(part in self.text for part in parts))
        except TimeoutError:
            raise AssertionError(f"{parts!r} not all on screen:\n{self.text}") from None

    async def command(self, line: str) -> None:
        """Write a slash command and send it."""
        self.chat.composer.value = line
        await self.pilot.pause()
        self.chat.composer.completions.offer(())
        await self.press("enter")


@asynccontextmanager
async def running(
    workspace: FakeWorkspace | None = None,
    *,
    size: tuple[int, int] = (120, 40),
    settings: Settings | None = None,
    gate: asyncio.Event | None = None,
    wait: bool = True,
) -> AsyncIterator[Running]:
    """Start the app; with `wait` until the session is on screen."""
    workspace = workspace or FakeWorkspace()
    workspace.settings = settings or fake_settings()
    app = ChatApp(workspace.settings, opener(workspace, gate))
    async with app.run_test(size=size, notifications=True) as pilot:
        run = Running(app, pilot, workspace)
        if wait:
            await run.until(lambda: app.chat.session is not None)
            await pilot.pause()
        yield run

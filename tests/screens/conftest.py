"""The app in a headless terminal, over the real workspace."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.strip import Strip

from tests.screens.scenarios import EchoProvider, Scenario, SetModels, opener, settings_in
from tui.app import ChatApp
from tui.chat.conversation.events import SessionEvent
from tui.chat.turn.session import ChatSession
from tui.chat.workspace import Workspace
from tui.config.settings import Settings
from tui.messages import Attachment

SIZES = [(120, 40), (60, 20), (40, 15)]


@pytest.fixture(autouse=True)
def nobodys_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No clipboard of whoever runs the tests."""
    for name in ("TMUX", "DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)


async def wait_until(pilot: Pilot[Any], condition: Callable[[], bool], *, seconds: float = 30.0) -> None:
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

    def __init__(self, app: ChatApp, pilot: Pilot[Any], scenario: Scenario) -> None:
        self.app, self.pilot, self.scenario = app, pilot, scenario
        self.chat = app.chat

    @property
    def session(self) -> ChatSession:
        """The session on screen."""
        assert self.chat.session is not None
        return self.chat.session

    @property
    def workspace(self) -> Workspace:
        """Everything behind it."""
        assert self.chat.workspace is not None
        return self.chat.workspace

    @property
    def server(self) -> EchoProvider:
        """What answers."""
        return self.scenario.server

    @property
    def models(self) -> SetModels:
        """The list of models."""
        return cast("SetModels", self.workspace.model_list)

    @property
    def sent(self) -> list[str]:
        """What was written in this run, in the conversation on screen."""
        if self.chat.session is None:
            return []
        stored = {message.id for message in self.scenario.messages}
        mine = [message for message in self.session.messages if message.role == "user" and message.kind == "chat"]
        return [message.text for message in mine if message.id not in stored]

    @property
    def attached(self) -> list[list[str]]:
        """The attachments of each message written in this run."""
        stored = {message.id for message in self.scenario.messages}
        mine = [message for message in self.session.messages if message.role == "user" and message.id not in stored]
        return [[part.name for part in message.parts if isinstance(part, Attachment)] for message in mine]

    @property
    def model(self) -> str:
        """The model in use, "provider/model"."""
        return f"{self.session.provider}/{self.session.model}"

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

    async def resize(self, width: int, height: int) -> None:
        """Resize the terminal, and wait until the screen is laid out for that."""
        await self.pilot.resize_terminal(width, height)
        await self.until(lambda: self.app.screen.size == (width, height))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition."""
        await wait_until(self.pilot, condition)

    def turn(self, events: AsyncIterator[SessionEvent]) -> None:
        """Show a turn whose events are decided beforehand."""
        self.chat.background(partial(self.chat.turns.run, events), "scripted", again=True)

    async def idle(self) -> None:
        """Wait until no turn runs and nothing waits."""
        await self.until(lambda: not self.chat.turns.busy and not self.chat.turns.waiting)

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
    scenario: Scenario | None = None,
    *,
    size: tuple[int, int] = (120, 40),
    folder: Path | None = None,
    gate: asyncio.Event | None = None,
    wait: bool = True,
    **settings: Any,
) -> AsyncIterator[Running]:
    """Start the app in a scenario; with `wait` until the session is on screen. `settings` are those of the program."""
    scenario = scenario or Scenario()
    with tempfile.TemporaryDirectory() as temporary:
        values: Settings = settings_in(folder or Path(temporary), **settings)
        app = ChatApp(values, opener(scenario, values, gate))
        async with app.run_test(size=size, notifications=True) as pilot:
            run = Running(app, pilot, scenario)
            try:
                if wait:
                    await run.until(lambda: app.chat.session is not None)
                    await pilot.pause()
                yield run
            finally:
                if not app.chat.closing:
                    await app.chat.leave()
                await scenario.close()

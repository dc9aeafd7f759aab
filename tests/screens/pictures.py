"""Pictures of a screen at three sizes, and of the largest in light colours too, from one start of the program."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_textual_snapshot import SVGImageExtension
from syrupy.assertion import SnapshotAssertion
from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, TextArea

from tests.pictures import settled
from tests.screens.conftest import screen_text, wait_until
from tests.screens.scenarios import Scenario, opener, settings_in
from tui.app import ChatApp
from tui.chat.conversation.events import SessionEvent
from tui.screens.base import Panel
from tui.screens.rows import ListPanel

SIZES = ((120, 40), (80, 24), (40, 15))
DARK, LIGHT = "chatctx-dark", "chatctx-light"


class QuietApp(ChatApp):
    """The program without what would differ from one picture to the next."""

    def export_screenshot(self, **options: Any) -> str:
        """Without what changes: an address of a font, a number."""
        return settled(super().export_screenshot(**options))


class Pictures:
    """Compares what a screen shows with the pictures that were agreed on."""

    def __init__(self, snapshot: SnapshotAssertion) -> None:
        self._agreed = snapshot.use_extension(SVGImageExtension)

    async def __call__(
        self,
        scenario: Scenario,
        *keys: str,
        until: str,
        command: str = "",
        event: SessionEvent | None = None,
        panel: Panel[Any] | None = None,
        name: str = "",
    ) -> None:
        """The screen after a `command`, an `event` or with a `panel`, and `keys`, once it shows `until`.

        `name` where a test has several.
        """
        with tempfile.TemporaryDirectory() as folder:
            settings = settings_in(Path(folder), theme=DARK)
            app = QuietApp(settings, opener(scenario, settings))
            await self._compare(app, keys, until, command or event or panel, name)

    async def _compare(
        self, app: QuietApp, keys: Sequence[str], until: str, first: str | SessionEvent | Panel[Any] | None, name: str
    ) -> None:
        app.animation_level = "none"
        async with app.run_test(size=SIZES[0]) as pilot:
            chat = app.chat
            chat.composer.area.cursor_blink = False
            await chat.ui.themes()
            await wait_until(pilot, lambda: chat.session is not None and chat.cost is not None)
            if isinstance(first, Panel):
                app.push_screen(first)
            elif isinstance(first, str):
                chat.action_command(first)
            elif first is not None:
                chat.turns.show(first)
            if isinstance(first, str) and first and keys:  # for its list
                await wait_until(pilot, lambda: isinstance(app.screen, ListPanel) and bool(app.screen.rows))
            for key in keys:
                await pilot.press(key)
            await wait_until(pilot, lambda: until in screen_text(app))
            chat.turns._since = float("inf")  # a turn under way says no seconds
            chat.turns.tick()
            different = [label async for label in self._compared(app, pilot, name)]
            await chat.leave()
        assert not different, f"not as agreed on: {', '.join(different)}; --snapshot-update, then look"

    async def _compared(self, app: ChatApp, pilot: Pilot[Any], name: str) -> Any:
        for width, height in SIZES:
            await pilot.resize_terminal(width, height)
            await quiet(app, pilot)  # a list drawn anew tries its themes on
            for theme in (DARK, LIGHT) if (width, height) == SIZES[0] else (DARK,):  # the smaller ones: same colours
                label = "-".join(filter(None, (name, f"{width}x{height}", theme.removeprefix("chatctx-"))))
                if await still(app, pilot, theme) != self._agreed(name=label):
                    yield label


def _ends(group: str) -> bool:
    """Whether work of this group ends by itself: a turn and a command may wait for a person."""
    return group != "turn" and not group.startswith("/")


async def quiet(app: ChatApp, pilot: Pilot[Any]) -> None:
    """Wait until nothing is under way (but what waits for a person) and nothing changes any more."""
    await pilot.pause()
    if isinstance(palette := app.screen, CommandPalette):
        await wait_until(pilot, lambda: palette.has_class("-ready"))
        palette.query_one(OptionList).highlighted = 0  # on a slow machine it is the first of those that came first
    for line in app.screen.query(Input):
        line.cursor_blink = False
    for area in app.screen.query(TextArea):
        area.cursor_blink = False
    await wait_until(pilot, lambda: not any(_ends(worker.group) and worker.is_running for worker in app.workers))
    text = ""
    while text != (text := screen_text(app)):
        await pilot.pause()


async def still(app: ChatApp, pilot: Pilot[Any], theme: str) -> str:
    """The picture in `theme`, once nothing changes any more: a list of themes tries them on when it is drawn again."""
    app.theme = theme
    if isinstance(app.screen, CommandPalette):  # it keeps its colours while it is open (Textual 8.2.8)
        await app.screen.dismiss()
        app.action_command_palette()
    await quiet(app, pilot)
    while app.theme != theme:
        app.theme = theme
        await quiet(app, pilot)
    return app.export_screenshot(simplify=True)

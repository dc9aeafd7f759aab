"""The whole program in a headless terminal: real store, real accounting, the demo provider instead of a network."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from textual import events
from textual.pilot import Pilot

from tests.screens.conftest import Running, wait_until
from tests.screens.scenarios import Scenario
from tui.app import ChatApp
from tui.chat.turn.session import ChatSession
from tui.chat.workspace import Workspace
from tui.config.settings import ProviderSettings, Settings
from tui.screens.chat.screen import OpenWorkspace
from tui.widgets.bars import number

SIZES = [(120, 40), (40, 15)]


pytestmark = pytest.mark.usefixtures("quick_demo")


def settings_in(folder: Path, model: str = "demo/guide", **more: Any) -> Settings:
    """Settings with everything in one folder."""
    return Settings(model=model, config_file=folder / "config.toml", data_dir=folder, log_dir=folder, **more)


def opener(settings: Settings, resume: str | None) -> OpenWorkspace:
    """Opens the real workspace."""

    async def open_workspace() -> Workspace:
        return await Workspace.open(settings, resume=resume)

    return open_workspace


class Real(Running):
    """A running app over the real workspace."""

    def __init__(self, app: ChatApp, pilot: Pilot[Any]) -> None:
        super().__init__(app, pilot, Scenario())

    @property
    def session(self) -> ChatSession:
        """The session on screen."""
        assert self.chat.session is not None
        return self.chat.session

    async def answered(self) -> None:
        """Wait until the turn is over."""
        await self.until(lambda: not self.chat.turns.busy and not self.chat.turns.waiting)


@asynccontextmanager
async def running(
    settings: Settings, *, size: tuple[int, int] = (120, 40), resume: str | None = None
) -> AsyncIterator[Real]:
    """Start the program; leave it as a person does."""
    app = ChatApp(settings, opener(settings, resume))
    async with app.run_test(size=size, notifications=True) as pilot:
        run = Real(app, pilot)
        await run.until(lambda: app.chat.session is not None)
        yield run
        if app.is_running:
            await pilot.press("ctrl+q")
            await wait_until(pilot, lambda: not app.is_running)


@pytest.mark.parametrize("size", SIZES)
async def test_write_be_answered_leave_and_come_back(tmp_path: Path, size: tuple[int, int]) -> None:
    settings = settings_in(tmp_path)
    async with running(settings, size=size) as run:
        await run.type("hello")
        await run.press("enter")
        await run.answered()
        await run.shows("hello", "/ 8.2k")
        await run.type("a draft")
    async with running(settings, size=size, resume="") as run:
        messages = run.session.messages
        assert [message.role for message in messages] == ["user", "assistant"]
        assert messages[1].status == "complete"
        assert run.chat.composer.value == "a draft"
        await run.shows("› a draft")


async def test_panel_status_line_and_json_say_the_same(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    async with running(settings) as run:
        await run.type("how much is this")
        await run.press("enter")
        await run.answered()
        assert run.chat.session is not None
        usage = run.chat.session.usage
        assert usage is not None
        assert number(usage).plain in run.chat.status_bar.render().plain
        await run.press("f2")
        await run.shows(f"{usage.total:,} / 8,192 tokens")
        await run.press("escape")
        total = usage.total
    environ = {
        "CHATCTX_DATA_DIR": str(tmp_path),
        "CHATCTX_LOG_DIR": str(tmp_path),
        "PATH": "/usr/bin",
        "HOME": str(tmp_path),
    }
    command = [sys.executable, "-m", "tui", "context", "--json"]
    shown = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, env=environ, timeout=60, check=False
    )
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["total"] == total


async def test_esc_keeps_the_part_that_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.providers.local.PAUSE", 0.05)
    settings = settings_in(tmp_path)
    async with running(settings) as run:
        await run.type("go")
        await run.press("enter")
        await run.shows("This is the demo")
        await run.press("escape")
        await run.answered()
        last = run.session.messages[-1]
        assert last.status == "cancelled"
        assert last.text.startswith("**This is the demo")
    async with running(settings, resume="") as run:
        await run.shows("This is the demo")


async def test_rolling_context_is_remembered(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    async with running(settings) as run:
        await run.command("/rolling-context on")
        await run.shows("rolling on")
    async with running(settings) as run:
        await run.shows("rolling on")


async def test_a_megabyte_is_pasted_counted_and_refused_with_a_way_out(tmp_path: Path) -> None:
    big = "the quick brown fox jumps over the lazy dog, again\n" * 20_000
    async with running(settings_in(tmp_path)) as run:
        run.chat.composer.area.post_message(events.Paste(big))
        await run.shows("[paste 1: 20,001 lines, 1.0 MB]", "draft ~")
        await run.press("enter")
        await run.answered()
        assert run.session.messages[0].text == big
        await run.shows("✗")


async def test_with_the_network_gone_nothing_is_lost(tmp_path: Path) -> None:
    away = {"away": ProviderSettings(kind="openai-compatible", base_url="http://127.0.0.1:9/v1")}
    async with running(settings_in(tmp_path, "away/model", providers=away)) as run:
        await run.type("are you there")
        await run.press("enter")
        await run.answered()
        await run.shows("✗", "127.0.0.1:9")
        assert run.session.messages[0].text == "are you there"
        assert "Traceback" not in run.text


async def test_an_unknown_model_is_one_line_and_the_program_ends_as_with_any_bad_usage(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "nobody/knows")
    app = ChatApp(settings, opener(settings, None))
    async with app.run_test() as pilot:
        await wait_until(pilot, lambda: not app.is_running)
    assert app.return_code == 2


async def test_a_fork_is_measured_at_once_named_deleted_and_brought_back(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    async with running(settings) as run:
        totals = []
        for text in ("one", "two"):
            await run.type(text)
            await run.press("enter")
            await run.answered()
            assert run.chat.session is not None and run.chat.session.usage is not None
            totals.append(run.chat.session.usage.total)
        session = run.chat.session
        assert session is not None and run.chat.workspace is not None
        calls = len(run.chat.workspace.services.calls.rows())
        await run.press("alt+up", "alt+up", "alt+up", "f")
        await run.shows("This is a fork")
        fork = run.chat.session
        assert fork is not None and fork.id != session.id
        await run.until(lambda: fork.usage is not None)
        assert fork.usage is not None
        assert (
            fork.usage.total == totals[0]
        )  # the demo measures nothing; tests/chat/interchange/test_fork.py has one that does
        assert len(run.chat.workspace.services.calls.rows()) == calls
        await run.command("/sessions")
        await run.shows("● ↳ one")
        await run.press("down", "ctrl+r", "ctrl+u", *"first", "enter")
        await run.shows("first")
        await run.press("ctrl+d")
        await run.shows("'first' is deleted")
        await run.until(lambda: "  first" not in run.text)
        await run.press("ctrl+z")
        await run.shows("  first")
        await run.press("enter")
        await run.until(lambda: run.chat.session is not None and run.chat.session.id == session.id)
        assert run.chat.session is not None
        assert [message.text for message in run.session.messages if message.role == "user"] == ["one", "two"]


async def test_after_another_program_had_the_terminal_the_whole_screen_is_written(tmp_path: Path) -> None:
    async with running(settings_in(tmp_path)) as run:
        await run.pilot.pause()
        with mock.patch.object(run.app._changes, "forget") as forgotten:
            run.app._resume_signal()
            assert forgotten.called
            assert run.app.screen._repaint_required or run.app.screen._compositor._dirty_regions

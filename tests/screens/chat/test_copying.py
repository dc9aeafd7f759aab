"""What is copied goes every way there is, whoever asks for it, and the toast says what is known of that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.screens.conftest import Running, running
from tests.screens.scenarios import Scenario, assistant, user


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """A clipboard tool; what it was given last."""
    tool, file = tmp_path / "wl-copy", tmp_path / "taken"
    tool.write_text(f"#!/bin/sh\ncat > {file}\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return lambda: file.read_text(encoding="utf-8")


def scenario() -> Scenario:
    return Scenario(messages=[user("one two three", "m1"), assistant("four", "m2")])


async def select(run: Running, words: str) -> None:
    await run.shows(words)
    lines = run.text.splitlines()
    y = next(number for number, line in enumerate(lines) if words in line)
    x = lines[y].index(words)
    await run.pilot.mouse_down(offset=(x, y))
    await run.pilot.hover(offset=(x + len(words) // 2, y))
    await run.pilot.hover(offset=(x + len(words) - 1, y))
    await run.pilot.mouse_up(offset=(x + len(words) - 1, y))
    await run.until(lambda: bool(run.app.screen.get_selected_text()))


@pytest.mark.slow
async def test_a_selection_is_copied_once_and_then_ctrl_c_is_ctrl_c_again(taken: Callable[[], str]) -> None:
    async with running(scenario()) as run:
        await select(run, "two three")
        await run.press("ctrl+c")
        await run.shows("Copied 9 characters (wl-copy).")
        assert taken() == "two three"
        await run.press("ctrl+c")
        await run.shows("Press ctrl+c again to quit.")


async def test_what_is_selected_in_the_prompt_is_copied_the_same_way(taken: Callable[[], str]) -> None:
    async with running(scenario()) as run:
        await run.type("some words")
        await run.press("ctrl+shift+left", "ctrl+c")
        await run.shows("Copied 5 characters (wl-copy).")
        assert taken() == "words"
        assert run.chat.composer.value == "some words"


async def test_what_is_copied_ends_no_paste_in_a_terminal(taken: Callable[[], str]) -> None:
    async with running(scenario()) as run:
        run.app.copy_to_clipboard("ls\x1b[201~\r\x9b201~\x07\trm \u2067שלום\u2069")
        await run.shows("characters (wl-copy).")
        assert taken() == "ls␛[201~\n\ufffd201~␇\trm \u2067שלום\u2069"


async def test_half_an_emoji_is_copied_as_far_as_it_can_be(taken: Callable[[], str]) -> None:
    async with running(scenario()) as run:
        run.app.copy_to_clipboard("a\ud83d")
        await run.shows("Copied 2 characters (wl-copy).")
        assert taken() == "a?"

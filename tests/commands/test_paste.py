"""`/paste`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.scripted_ui import Commands
from tests.messages import PNG

Put = Callable[[bytes], None]


@pytest.fixture
def clipboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Sets what the clipboard's tool prints; nothing until then."""
    folder = tmp_path / "bin"
    folder.mkdir()
    content = tmp_path / "content"
    tool = folder / "wl-paste"
    tool.write_text(f"#!/bin/sh\nexec /bin/cat {content} 2>/dev/null\n")
    tool.chmod(0o755)
    for name in ("DISPLAY", "SSH_CONNECTION", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setenv("PATH", str(folder))

    def put(data: bytes) -> None:
        content.write_bytes(data)

    return put


async def test_a_picture_is_kept_and_mentioned(commands: Commands, clipboard: Put) -> None:
    clipboard(PNG)
    await commands.run("/paste")
    [path] = list((commands.workspace.settings.data_dir / "pictures").iterdir())
    assert path.read_bytes() == PNG
    assert commands.screen is not None and commands.screen.draft == f"@{path}"
    commands.screen = None
    assert await commands.output("/paste") == f"The image is saved. Name it in a message: @{path}"


async def test_text_goes_into_the_draft(commands: Commands, clipboard: Put) -> None:
    clipboard(b"some words")
    await commands.run("/paste")
    assert commands.screen is not None and commands.screen.draft == "some words"
    commands.screen = None
    assert await commands.refusal("/paste") == "The clipboard holds text: the terminal pastes it."


async def test_with_nothing_in_it_what_was_copied_here_is_pasted(commands: Commands, clipboard: Put) -> None:
    assert await commands.refusal("/paste") == "The clipboard holds neither an image nor text."
    assert commands.screen is not None
    commands.screen.clipboard = "copied here"
    await commands.run("/paste")
    assert commands.screen.draft == "copied here"


async def test_a_folder_that_cant_be_written_is_said(commands: Commands, clipboard: Put) -> None:
    clipboard(PNG)
    (commands.workspace.settings.data_dir / "pictures").write_text("a file")
    assert "The image can't be saved (File exists)" in await commands.refusal("/paste")

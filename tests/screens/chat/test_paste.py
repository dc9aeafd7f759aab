"""Pictures from the clipboard, by whatever tool the system has, and files dropped on the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.machine import program
from tests.messages import PNG
from tests.screens.conftest import running
from tui.chat import clipboard
from tui.chat.clipboard import ClipboardError, paste_tools, read
from tui.widgets.draft import dropped_files


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which commands are found; the clipboard of a Wayland desktop."""
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def holds(folder: Path, data: bytes, kind: str = "image/png") -> None:
    """The clipboard holds `data`."""
    (folder / "data").write_bytes(data)
    program(folder, "wl-paste", f'[ "$2" = {kind} ] || [ "$3" = {kind} ] || exit 1\nexec /bin/cat {folder}/data')


@pytest.mark.parametrize(
    ("environ", "platform", "words"),
    [
        ({"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}, "linux", "install wl-clipboard"),
        ({"DISPLAY": ":0"}, "linux", "install xclip"),
        ({}, "linux", "no display"),
        ({"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}, "darwin", "Over ssh"),
    ],
)
def test_where_no_tool_is_there_the_line_says_what_to_install(
    tools: Path, environ: dict[str, str], platform: str, words: str
) -> None:
    with pytest.raises(ClipboardError, match=words):
        paste_tools(environ, platform)


@pytest.mark.parametrize(
    ("environ", "platform", "name", "output"),
    [
        ({"DISPLAY": ":0"}, "linux", "xclip", "exec /bin/cat {}"),
        ({}, "darwin", "osascript", "printf '«data PNGf%s»\\n' $(/usr/bin/od -An -v -tx1 {} | /usr/bin/tr -d ' \\n')"),
        ({"WSL_DISTRO_NAME": "u"}, "linux", "powershell.exe", "exec /usr/bin/base64 {}"),
    ],
)
async def test_every_tool_s_own_way_of_writing_a_picture_is_read(
    tools: Path, environ: dict[str, str], platform: str, name: str, output: str
) -> None:
    (tools / "data").write_bytes(PNG)
    program(tools, name, output.format(tools / "data"))
    assert await read(*paste_tools(environ, platform)) == PNG


async def test_a_program_of_the_working_directory_is_not_run(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tools, "wl-paste", f": > {tools}/ran")
    program(tools, "wl-copy", f": > {tools}/ran")
    monkeypatch.chdir(tools)
    monkeypatch.setenv("PATH", ".")
    monkeypatch.setenv("WAYLAND_DISPLAY", "w")
    monkeypatch.delenv("TMUX", raising=False)
    with pytest.raises(ClipboardError, match="can't be read"):
        paste_tools({"WAYLAND_DISPLAY": "w"}, "linux")
    assert await clipboard.run_copy_tool("text") is None
    assert not (tools / "ran").exists()


async def test_a_tool_that_hangs_is_given_up(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clipboard, "PASTE_TIMEOUT", 0.1)
    program(tools, "wl-paste", "exec /bin/sleep 60")
    with pytest.raises(ClipboardError, match="did not answer"):
        await read(*paste_tools({"WAYLAND_DISPLAY": "w"}, "linux"))


async def test_what_is_no_picture_or_too_much_is_not_taken(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holds(tools, b"GIF89 or so")
    with pytest.raises(ClipboardError, match="neither an image nor text"):
        await read(*paste_tools({"WAYLAND_DISPLAY": "w"}, "linux"))
    monkeypatch.setattr(clipboard, "MAX_FILE", 20)
    holds(tools, PNG)
    with pytest.raises(ClipboardError, match="no model takes that"):
        await read(*paste_tools({"WAYLAND_DISPLAY": "w"}, "linux"))


async def test_a_picture_is_attached_to_the_draft(tools: Path, tmp_path: Path) -> None:
    holds(tools, PNG)
    async with running(data_dir=tmp_path / "data") as run:
        await run.type("what is this?")
        await run.press("ctrl+v")
        await run.until(lambda: "@" in run.chat.composer.value)
        [picture] = (tmp_path / "data" / "pictures").iterdir()
        assert picture.read_bytes() == PNG
        assert run.chat.composer.value == f"what is this? @{picture} "
        await run.shows("draft ~", picture.name)
        await run.press("enter")
        await run.until(lambda: run.attached == [[picture.name]])


async def test_text_is_inserted_and_without_a_tool_the_program_s_own_clipboard(tools: Path) -> None:
    holds(tools, b"some words\r\nand more", "text")
    async with running() as run:
        await run.command("/paste")
        await run.until(lambda: run.chat.composer.value == "some words\nand more")
        (tools / "wl-paste").unlink()
        await run.press("ctrl+v")
        await run.shows("install wl-clipboard", "@path")
        run.app.copy_to_clipboard(" copied here")
        await run.press("ctrl+v")
        await run.until(lambda: run.chat.composer.value == "some words\nand more copied here")


async def test_files_dropped_on_the_terminal_are_attached() -> None:
    from textual.events import Paste

    async with running() as run:
        await run.type("see")
        run.chat.composer.area.post_message(Paste("'/tmp/two words.PNG' /tmp/a.pdf "))
        await run.until(lambda: run.chat.composer.value == 'see @"/tmp/two words.PNG" @/tmp/a.pdf ')


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("/tmp/a.png", ["/tmp/a.png"]),
        ("/tmp/my\\ cat.jpeg\n", ["/tmp/my cat.jpeg"]),
        ("file:///tmp/my%20cat.webp", ["/tmp/my cat.webp"]),
        ("~/cat.gif", ["~/cat.gif"]),
        ("/tmp/a.txt", []),
        ("look at /tmp/a.png", []),
        ("cat.png", []),
        ("'/tmp/a.png", []),
        ("/tmp/a.png\n/tmp/b.png", []),
        ("", []),
    ],
)
def test_only_whole_paths_of_pictures_count_as_dropped(text: str, files: list[str]) -> None:
    assert dropped_files(text) == files

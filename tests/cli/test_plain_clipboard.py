"""`/copy` and `/paste` of `chatctx --plain`, with the tools of a Wayland desktop; `/delete` and its undo."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.machine import program

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 3, 2) + b"\x08\x02\0\0\0"

DESKTOP = {"TMUX": "", "DISPLAY": "", "SSH_CONNECTION": "", "WSL_DISTRO_NAME": "", "WAYLAND_DISPLAY": "wayland-0"}


@pytest.fixture
def bin_dir(tmp_path: Path) -> Path:
    """The only folder in which commands are found."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


@pytest.mark.slow
def test_an_answer_is_copied_and_a_picture_kept(run: Run, bin_dir: Path, tmp_path: Path) -> None:
    (bin_dir / "data").write_bytes(PNG)
    program(bin_dir, "wl-copy", f"exec /bin/cat > {bin_dir}/copied")
    program(bin_dir, "wl-paste", f"exec /bin/cat {bin_dir}/data")
    done = run("--plain", stdin="/copy\nhi\n/copy\n/paste\n", PATH=str(bin_dir), **DESKTOP)
    assert done.returncode == 0
    assert done.stderr == "chatctx: There is no answer to copy yet.\n"
    assert (bin_dir / "copied").read_text().startswith("**This is the demo")
    assert "characters (wl-copy)." in done.stdout
    [picture] = (tmp_path / "data" / "pictures").iterdir()
    assert picture.read_bytes() == PNG
    assert f"@{picture}" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.slow
def test_without_tools_the_lines_say_what_to_do_and_a_deletion_is_taken_back(run: Run, bin_dir: Path) -> None:
    lines = "/delete\n/delete undo\nfirst words\n/copy\n/paste\n/delete\n/sessions\n/delete undo\n/find first\n"
    done = run("--plain", stdin=lines, PATH=str(bin_dir), **DESKTOP)
    nothing, none, copy, paste = done.stderr.splitlines()
    assert "nothing in this conversation yet" in nothing
    assert "Nothing was deleted" in none
    assert "/export FILE" in copy
    assert "install wl-clipboard" in paste
    assert "'first words' is deleted. /delete undo restores it.\nNo conversations yet." in done.stdout
    assert "user: first words" in done.stdout

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from tui.tools.base import ToolError
from tui.tools.files import confine
from tui.tools.files.confine import BY_FOLDER, Confinement
from tui.tools.files.read_file import read_file
from tui.tools.files.walk import Walk

pytestmark = pytest.mark.skipif(not BY_FOLDER, reason="symbolic links and special files as Unix has them")


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """A working directory, with something secret beside it."""
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a.txt").write_text("alpha\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_text("SECRET\n")
    return root


@pytest.fixture(params=["folder by folder", "by path"])
def opening(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of opening: by path is for Windows, which does not refuse links by itself."""
    if request.param == "by path":
        monkeypatch.setattr(confine, "BY_FOLDER", False)
        monkeypatch.setattr(confine, "_FILE", os.O_RDONLY)


def read(root: Path, path: str, *allowed: Path) -> str:
    return read_file({"path": path}, Confinement(root, allowed)).text


@pytest.mark.usefixtures("opening")
@pytest.mark.parametrize("path", ["sub/a.txt", "./sub/../sub/a.txt", "sub//a.txt", " sub/a.txt "])
def test_files_inside_are_read(inside: Path, path: str) -> None:
    assert "alpha" in read(inside, path)
    assert "alpha" in read(inside, str(inside / "sub" / "a.txt"))


@pytest.mark.parametrize(
    "path",
    ["../outside/a.txt", "sub/../../outside/a.txt", "/etc/passwd", "~/x", "~nobody-at-all/x", "a\0b", "x" * 5000],
)
def test_ways_out_are_refused(inside: Path, path: str) -> None:
    with pytest.raises(ToolError):
        read(inside, path)


def test_a_folder_whose_name_begins_alike_is_outside(inside: Path) -> None:
    beside = inside.with_name("root2")
    beside.mkdir()
    (beside / "a.txt").write_text("SECRET")
    with pytest.raises(ToolError, match="outside the working directory"):
        read(inside, "../root2/a.txt")


def test_links_are_judged_by_where_they_lead(inside: Path) -> None:
    (inside / "in").symlink_to("sub/a.txt")
    (inside / "out").symlink_to("../outside/a.txt")
    (inside / "folder").symlink_to("../outside")
    (inside / "loop").symlink_to("loop")
    assert "alpha" in read(inside, "in")
    for path in ("out", "folder/a.txt", "loop"):
        with pytest.raises(ToolError):
            read(inside, path)
    assert "SECRET" in read(inside, "out", inside.parent / "outside")


def test_special_files_are_refused_at_once(inside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(inside / "pipe")
    monkeypatch.chdir(inside)  # a socket's path may not be long
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for path, word in (("pipe", "a pipe"), ("socket", "a socket"), ("sub", "is a folder")):
            with pytest.raises(ToolError, match=word):
                read(inside, path)
    with pytest.raises(ToolError, match="a device"):
        read(inside, "/dev/zero", Path("/dev"))


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="Linux")
def test_at_the_root_the_system_s_own_files_are_no_files(inside: Path) -> None:
    (inside / "keys").symlink_to("/proc/self/environ")
    for path in ("proc/self/environ", "/proc/self/../self/maps", str(inside / "keys"), "dev/null", "sys/power/state"):
        with pytest.raises(ToolError, match="belongs to the operating system"):
            read(Path("/"), path)
    assert "no_files" in read(Path("/"), __file__)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_put_in_place_while_it_is_opened_leads_nowhere(inside: Path, what: str) -> None:
    """A thread swaps what is read for a link that leads out, and back, as fast as it can."""
    target, link = (
        (inside / "sub", "../outside") if what == "folder" else (inside / "sub" / "a.txt", "../../outside/a.txt")
    )
    spare = target.with_name("spare")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            target.rename(spare)
            target.symlink_to(link)
            target.unlink()
            spare.rename(target)

    thread = threading.Thread(target=swap)
    thread.start()
    texts, refused = set(), 0
    try:
        for _ in range(2_000):
            try:
                texts.add(read(inside, "sub/a.txt"))
            except ToolError:
                refused += 1
    finally:
        stop.set()
        thread.join()
    assert refused
    assert not any("SECRET" in text for text in texts)


@pytest.mark.usefixtures("opening")
def test_a_link_that_was_put_in_place_after_resolving_is_refused(inside: Path) -> None:
    confinement = Confinement(inside)
    place = confinement.place("sub/a.txt")
    (inside / "sub").rename(inside / "gone")
    (inside / "sub").symlink_to("../outside")
    with pytest.raises(ToolError), confinement.opened(place, "file"):
        pass


def test_a_walk_does_not_follow_links(inside: Path) -> None:
    (inside / "out").symlink_to("../outside")
    (inside / "up").symlink_to("..")
    confinement = Confinement(inside)
    entries = {entry.path: entry for entry in Walk(confinement, confinement.place("."), float("inf")).entries()}
    assert set(entries) == {"out", "up", "sub", "sub/a.txt"}
    assert entries["out"].is_link
    assert not entries["out"].is_folder


@pytest.mark.usefixtures("opening")
def test_a_link_put_in_place_between_a_look_and_the_opening_is_refused(
    inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = confine.wrong_kind
    swapped: list[bool] = []

    def look(mode: int, kind: confine.Kind) -> str:
        if not swapped:
            swapped.append(True)
            (inside / "sub" / "a.txt").unlink()
            (inside / "sub" / "a.txt").symlink_to("../../outside/a.txt")
        return real(mode, kind)

    monkeypatch.setattr(confine, "wrong_kind", look)
    with pytest.raises(ToolError, match="became a symbolic link"):
        read(inside, "sub/a.txt")
    assert swapped

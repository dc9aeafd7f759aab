"""Paths as people write them; what the program writes is for its owner alone."""

from __future__ import annotations

import logging
import os
import stat
import threading
from pathlib import Path

import pytest

from tui.chat.store.database import database_files
from tui.chat.store.store import SessionStore
from tui.config.files import (
    FileTooLargeError,
    at_home,
    find_program,
    from_home,
    open_private,
    private_folder,
    private_log,
    read_all,
)

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="modes of Unix"),
    pytest.mark.usefixtures("open_umask"),
]


def test_a_program_of_the_working_directory_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "rg"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for path, found in ((".", None), ("", None), (f"nowhere{os.pathsep}.", None), (str(tmp_path), str(program))):
        monkeypatch.setenv("PATH", path)
        assert find_program("rg") == found


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_was_open_to_others_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "chatctx"
    path = folder / "chatctx.db"
    store = SessionStore(path)
    folder.chmod(0o755)
    for file in database_files(path):
        if file.exists():
            file.chmod(0o644)
    assert mode(path.with_name("chatctx.db-wal")) == 0o644
    again = SessionStore(path)
    assert {file.name: oct(mode(file)) for file in database_files(path) if file.exists() and mode(file) & 0o077} == {}
    assert mode(folder) == mode(folder / "running") == 0o700
    again.close()
    store.close()


def test_a_log_and_the_older_ones_are_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.log"
    handler = private_log(path, most_bytes=10, older=1)
    for _ in range(3):
        handler.handle(logging.makeLogRecord({"msg": "x" * 20}))
    handler.close()
    assert {file.name: oct(mode(file)) for file in path.parent.iterdir()} == {"a.log": "0o600", "a.log.1": "0o600"}
    assert mode(path.parent) == 0o700


def test_the_log_never_writes_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.log"
    handler = private_log(path, most_bytes=1_000, older=1)
    handler.handle(logging.makeLogRecord({"msg": "no file caf\udce9"}))
    assert path.read_text() == "no file caf\\udce9\n"
    handler.handle(logging.makeLogRecord({"msg": "lost %d", "args": ("no number",)}))
    handler.close()
    assert capsys.readouterr().err == ""


def test_folders_that_are_created_on_the_way_are_private_too(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        private_folder(tmp_path / "state" / "chatctx" / "log")
    finally:
        os.umask(before)
    assert {mode(folder) for folder in tmp_path.rglob("*")} == {0o700}


def test_an_existing_file_is_closed_and_what_is_no_file_is_left(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "a").chmod(0o664)
    with open_private(tmp_path / "a", "w") as file:
        file.write("y")
    assert mode(tmp_path / "a") == 0o600
    before = mode(Path(os.devnull))
    with open_private(Path(os.devnull), "w") as file:
        file.write("y")
    assert mode(Path(os.devnull)) == before
    with pytest.raises(FileExistsError):
        private_folder(tmp_path / "a")


def test_a_home_is_read_as_a_shell_reads_it() -> None:
    assert at_home("~/x") == Path.home() / "x"
    assert at_home("~nobody-here/x") == Path("~nobody-here/x")
    with pytest.raises(ValueError, match="'~nobody-here' is not a home folder here"):
        from_home("~nobody-here/x")
    assert from_home("a/~b") == Path("a/~b")


def test_a_file_and_a_pipe_are_read_up_to_a_size(tmp_path: Path) -> None:
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.write_bytes(b"12345")
    assert read_all(file, 5) == b"12345"
    with pytest.raises(FileTooLargeError):
        read_all(file, 4)
    os.mkfifo(pipe)
    for most, whole in ((5, True), (4, False)):
        writer = threading.Thread(target=pipe.write_bytes, args=(b"12345",))
        writer.start()
        if whole:
            assert read_all(pipe, most) == b"12345"
        else:
            with pytest.raises(FileTooLargeError):
                read_all(pipe, most)
        writer.join()


def test_a_pipe_that_nothing_writes_to_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.config.files.PIPE_SECONDS", 0.0)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="nothing writes to this pipe"):
        read_all(pipe, 5)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero on this system")
def test_a_device_never_ends_and_is_not_begun() -> None:
    with pytest.raises(OSError, match="it is a device"):
        read_all(Path("/dev/zero"), 1_000)

"""What the program writes is for its owner alone."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

import pytest

from tui.chat.store.database import database_files
from tui.chat.store.store import SessionStore
from tui.config.private import open_private, private_folder, private_log

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes of Unix")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def open_umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


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

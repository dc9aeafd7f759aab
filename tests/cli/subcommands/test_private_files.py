"""What the commands leave behind is for their user alone, and `chatctx doctor` says where it is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.config.test_files import mode
from tui.cli.subcommands.doctor import _private
from tui.config.settings import Settings

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes of Unix")


@pytest.fixture(autouse=True)
def open_umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.slow
def test_all_that_a_session_leaves_is_private(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    run("ask", "hello")
    ident = run("sessions").stdout.split()[0]
    run("export", ident, str(tmp_path / "talk.md"))
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "config.toml"]
    assert {path.suffix for path in files} >= {".db", ".log", ".md"}
    assert {path.name: oct(mode(path)) for path in files if mode(path) & 0o077} == {}
    assert mode(tmp_path / "log") == 0o700
    assert mode(tmp_path / "data") == 0o755  # a folder that somebody else made and named


def test_doctor_says_what_it_could_not_close(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data", log_dir=tmp_path / "log")
    for folder in (settings.data_dir, settings.log_dir):
        folder.mkdir(mode=0o700)
    settings.database.touch(0o600)
    settings.log_file.touch(0o600)
    assert list(_private(settings)) == []
    settings.database.chmod(0o644)
    settings.log_dir.chmod(0o750)
    assert [(finding.level, finding.text) for finding in _private(settings)] == [
        ("problem", f"{settings.database} can be read by others (mode 0644): chmod 600 it"),
        ("note", f"others may look into {settings.log_dir} (mode 0750); if it is yours alone: chmod 700 it"),
    ]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="takes root to become somebody else")
def test_another_user_reads_nothing(run: Run, tmp_path: Path) -> None:
    run("ask", "the secret word is needle")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and str(folder).startswith("/tmp/"):
            folder.chmod(mode(folder) | 0o011)
    child = os.fork()
    if not child:
        os.setuid(65534)  # nobody
        try:
            (tmp_path / "data" / "chatctx.db").read_bytes()
        except PermissionError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

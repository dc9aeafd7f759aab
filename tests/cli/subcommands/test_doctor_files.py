"""What `chatctx doctor` says of the files."""

from __future__ import annotations

from pathlib import Path

from tui.cli.subcommands.doctor import _files
from tui.config.settings import Settings


def test_folders_that_can_not_be_made_are_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings = Settings(config_file=tmp_path / "none.toml", data_dir=tmp_path / "file" / "x", log_dir=tmp_path / "new")
    config, sessions, log = _files(settings)
    assert (config.level, config.text) == ("ok", f"{tmp_path}/none.toml (not there yet; the defaults hold)")
    assert (sessions.level, sessions.text) == ("problem", f"{tmp_path}/file is no folder")
    assert (log.level, log.text) == ("ok", f"{tmp_path}/new/chatctx.log")
    *_, log = _files(Settings(data_dir=tmp_path, log_dir=tmp_path / "file"))
    assert (log.level, log.text) == ("note", f"none: {tmp_path}/file is no folder")


def test_what_may_not_be_looked_at_stops_nothing(tmp_path: Path) -> None:
    unseen = tmp_path / ("x" * 300) / "y"
    findings = list(_files(Settings(config_file=unseen, data_dir=unseen, log_dir=unseen)))
    assert [finding.what for finding in findings] == ["config", "sessions", "log"]

"""What `chatctx doctor` says of MCP servers. None is started for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tui.cli.subcommands.doctor import _servers
from tui.config.settings import Settings


def test_each_server_is_named_with_what_will_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_KEY", "sk-abcdefghijklmnopqrst")
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"theirs": {"command": "x"}}}')
    servers = {
        "good": {"command": sys.executable, "args": ["--key", "${MY_KEY}"]},
        "web": {"url": "https://x.example/mcp?secret=1", "headers": {"A": "${MY_KEY}"}},
        "resting": {"command": "x", "disabled": True},
        "missing": {"command": "no-such-program-anywhere"},
        "unset": {"command": "x", "env": {"K": "${CHATCTX_SURELY_NOT_SET}"}},
        "wrong": {"comand": "x"},
    }
    findings = list(_servers(Settings(mcp_servers=servers, config_file=tmp_path / "own" / "config.toml")))
    assert [(finding.level, finding.what) for finding in findings] == [
        ("ok", "mcp"), ("ok", "mcp"), ("note", "mcp"), ("problem", "mcp"), ("problem", "mcp"), ("problem", "mcp"),
        ("note", "mcp"),
    ]  # fmt: skip
    good, web, resting, missing, unset, wrong, theirs = (finding.text for finding in findings)
    assert good == f"good: {sys.executable} --key ${{MY_KEY}} (from {tmp_path}/own/config.toml)"
    assert web.startswith("web: https://x.example/mcp?… (from")
    assert resting.endswith("switched off there")
    assert "no program no-such-program-anywhere" in missing
    assert "CHATCTX_SURELY_NOT_SET is not set" in unset
    assert "did you mean command?" in wrong
    assert theirs == f"{tmp_path}/.mcp.json names theirs; /mcp asks before it is started"
    assert "sk-abc" not in " ".join(finding.text for finding in findings)


def test_without_the_sdk_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tui.cli.subcommands.doctor.importlib.util.find_spec", lambda _name: None)
    first, *_ = _servers(Settings(mcp_servers={"a": {"command": sys.executable}}, config_file=tmp_path / "c.toml"))
    assert (first.level, first.text) == ("problem", "the part for servers is not installed: pip install 'chatctx[mcp]'")
    assert list(_servers(Settings(config_file=tmp_path / "c.toml"))) == []

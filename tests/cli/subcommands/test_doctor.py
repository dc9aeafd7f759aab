"""What `chatctx doctor` says of files, keys and MCP servers (none is started); what commands leave is private."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.config.test_files import mode
from tui.cli.subcommands.doctor import _files, _keys, _private, _providers, _servers
from tui.config.settings import ProviderSettings, Settings


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
    assert [(finding.level, finding.subject) for finding in findings] == [
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
    assert (first.level, first.text) == ("problem", "MCP support is not installed: pip install 'chatctx[mcp]'")
    assert list(_servers(Settings(config_file=tmp_path / "c.toml"))) == []


def test_folders_that_can_not_be_made_are_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings = Settings(config_file=tmp_path / "none.toml", data_dir=tmp_path / "file" / "x", log_dir=tmp_path / "new")
    config, sessions, log = _files(settings)
    assert (config.level, config.text) == ("ok", f"{tmp_path}/none.toml (does not exist: defaults apply)")
    assert (sessions.level, sessions.text) == ("problem", f"{tmp_path}/file is not a folder")
    assert (log.level, log.text) == ("ok", f"{tmp_path}/new/chatctx.log")
    *_, log = _files(Settings(data_dir=tmp_path, log_dir=tmp_path / "file"))
    assert (log.level, log.text) == ("note", f"none: {tmp_path}/file is not a folder")


def test_what_may_not_be_looked_at_stops_nothing(tmp_path: Path) -> None:
    unseen = tmp_path / ("x" * 300) / "y"
    findings = list(_files(Settings(config_file=unseen, data_dir=unseen, log_dir=unseen)))
    assert [finding.subject for finding in findings] == ["config", "sessions", "log"]


async def _nobody(_: object) -> list[str]:
    return []


@pytest.mark.parametrize(
    ("table", "level", "text"),
    [
        (ProviderSettings("anthropic", api_key_command="cat token"), "ok", "mine: from api_key_command"),
        (ProviderSettings("anthropic", api_key_env="MINE"), "ok", "mine: in MINE"),
        (ProviderSettings("anthropic", api_key_env="NONE"), "problem", "mine: no key; set NONE, or api_key_command"),
        (ProviderSettings("anthropic"), "problem", "mine: no key; set a variable, named by api_key_env, or "),
        (ProviderSettings(base_url="http://me:hunter2@h/v1"), "ok", "mine: http://[key]@h/v1"),
        (ProviderSettings(base_url="https://hunter2@h/v1"), "ok", "mine: https://[key]@h/v1"),
    ],
)
def test_where_a_key_comes_from_or_what_to_do(
    monkeypatch: pytest.MonkeyPatch, table: ProviderSettings, level: str, text: str
) -> None:
    monkeypatch.setattr("tui.cli.subcommands.doctor.answering", _nobody)
    monkeypatch.setenv("MINE", "key-0001")
    monkeypatch.delenv("NONE", raising=False)
    findings = list(_providers(Settings(providers={"mine": table})))
    [mine] = [finding for finding in findings if finding.text.startswith("mine:")]
    assert mine.level == level and mine.text.startswith(text)


@pytest.mark.parametrize("name", ["demo", "local"])
def test_what_a_provider_ignores_is_named_and_nowhere_repeated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.cli.subcommands.doctor.answering", _nobody)
    monkeypatch.setenv("MINE", "key-0001")
    table = ProviderSettings(base_url="http://x.example", api_key_env="MINE", api_key_command="echo k")
    told = [finding for finding in _providers(Settings(providers={name: table})) if finding.subject != "embedded"]
    assert [(finding.level, finding.subject) for finding in told] == [("note", "providers")] * 4
    assert not any(word in finding.text for finding in told for word in ("x.example", "MINE", "echo k"))


@pytest.mark.slow
def test_all_that_a_session_leaves_is_private(run: Run, tmp_path: Path, open_umask: None) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    run("ask", "hello")
    ident = run("sessions").stdout.split()[0]
    run("export", ident, str(tmp_path / "talk.md"))
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "config.toml"]
    assert {path.suffix for path in files} >= {".db", ".log", ".md"}
    assert {path.name: oct(mode(path)) for path in files if mode(path) & 0o077} == {}
    assert mode(tmp_path / "log") == 0o700
    assert mode(tmp_path / "data") == 0o755  # a folder that somebody else made and named


def test_doctor_says_what_it_could_not_close(tmp_path: Path, open_umask: None) -> None:
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
        ("note", f"others can list {settings.log_dir} (mode 0750); if it is yours alone: chmod 700 it"),
    ]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="takes root to become somebody else")
def test_another_user_reads_nothing(run: Run, tmp_path: Path, open_umask: None) -> None:
    run("ask", "the secret word is needle")
    for folder in (tmp_path, *tmp_path.parents):
        if "/pytest-of-" in str(folder):
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


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("raise ImportError('libgomp.so.1: cannot open shared object file')", r"libgomp\.so\.1.*package libgomp1"),
        ("import os; os._exit(132)", "the process ended with code 132"),
    ],
)
def test_a_llama_cpp_that_cannot_be_loaded_is_a_problem(
    module: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in slim containers, or with a wheel for another processor."""
    (tmp_path / "xllamacpp.py").write_text(module)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    *_, finding = _providers(Settings())
    assert (finding.level, finding.subject) == ("problem", "embedded")
    assert re.search(expected, finding.text)


def test_keys_that_can_not_be_used_are_named() -> None:
    [finding] = _keys(Settings(keys={"chat.help": "enter", "chat.context": "f5"}))
    assert finding.level == "note" and "keys.chat.help to enter, which hides composer.send" in finding.text
    assert list(_keys(Settings())) == []

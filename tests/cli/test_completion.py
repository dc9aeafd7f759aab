"""Completion, by the scripts in the shells they are for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from tests.cli.conftest import Run, one_line
from tests.corpus import required
from tui.cli.command_line import COMMANDS, ROOT
from tui.cli.parsing import COMPLETE, PROGRAM

NAMES = [str(command.name) for command in COMMANDS]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment in which `chatctx` is this program, with files of its own."""
    program = tmp_path / "bin" / "chatctx"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tui "$@"\n')
    program.chmod(0o755)
    (tmp_path / "config.toml").touch()
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("CHATCTX_")},
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "HOME": str(tmp_path),
        "CHATCTX_CONFIG": str(tmp_path / "config.toml"),
        "CHATCTX_DATA_DIR": str(tmp_path / "data"),
        "CHATCTX_LOG_DIR": str(tmp_path / "log"),
    }


def shell(name: str) -> str:
    program = shutil.which(name)
    if program is None:
        required(f"{name} is not installed")
    return program


def offered(line: str) -> list[str]:
    """What click answers after `line`, types of files aside."""
    *words, incomplete = line.split(" ")[1:]
    return [str(item.value) for item in ShellComplete(ROOT, {}, PROGRAM, COMPLETE).get_completions(words, incomplete)]


def in_bash(line: str, folder: Path, env: dict[str, str]) -> list[str]:
    """What Tab offers after `line`."""
    words = line.split(" ")
    script = (
        'eval "$(chatctx completion bash)"; compopt() { echo "${*: -1}"; }\n'
        f"COMP_WORDS=({' '.join(map(repr, words))}); COMP_CWORD={len(words) - 1}; _chatctx_completion chatctx\n"
        '(( ${#COMPREPLY[@]} )) && printf "%s\\n" "${COMPREPLY[@]}"; true'
    )
    done = subprocess.run([shell("bash"), "--norc", "-c", script], capture_output=True, text=True, cwd=folder, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_commands_options_and_choices_are_offered() -> None:
    assert offered("chatctx ") == NAMES
    assert offered("chatctx co") == ["context", "count", "config", "completion"]
    assert offered("chatctx --th") == ["--theme"]
    assert offered("chatctx -m x/y ask --at") == ["--attach"]
    assert offered("chatctx completion z") == ["zsh"]
    assert offered("chatctx replay --method h") == ["hybrid"]
    assert offered("chatctx ask wh") == []


def test_every_option_of_every_command_is_offered() -> None:
    for command in COMMANDS:
        long = {name for param in command.params for name in param.opts if name.startswith("--")}
        assert long <= set(offered(f"chatctx {command.name} --"))


@pytest.mark.slow
def test_bash_offers_commands_files_sessions_and_models(run: Run, tmp_path: Path, env: dict[str, str]) -> None:
    run("ask", "hello")
    ident = json.loads(run("sessions", "--json").stdout)[0]["id"]
    assert in_bash("chatctx co", tmp_path, env) == ["context", "count", "config", "completion"]
    assert in_bash("chatctx import ta", tmp_path, env) == ["default"]  # bash's own files
    assert in_bash(f"chatctx export {ident[:4]}", tmp_path, env) == [ident]
    for line in ("chatctx --resume ", "chatctx usage -s ", "chatctx context "):
        assert in_bash(line, tmp_path, env) == [ident]
    assert in_bash("chatctx ask -m dem", tmp_path, env) == ["demo/guide", "demo/"]
    assert in_bash("chatctx -m anth", tmp_path, env) == ["anthropic/"]


def test_where_nothing_is_stored_or_the_config_is_broken_nothing_is_offered_or_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHATCTX_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("CHATCTX_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "config.toml").touch()
    assert offered("chatctx --resume ") == []
    (tmp_path / "config.toml").write_text("model = \n")
    assert offered("chatctx --resume ") == offered("chatctx -m op") == []
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_titles_are_one_line_beside_their_ids(run: Run, tmp_path: Path, env: dict[str, str]) -> None:
    run("ask", "first\x1b[31m line\nsecond line")
    done = subprocess.run(
        ["chatctx"], capture_output=True, text=True,
        env={**env, COMPLETE: "zsh_complete", "COMP_WORDS": "chatctx context ", "COMP_CWORD": "2"},
    )  # fmt: skip
    kind, ident, title = done.stdout.splitlines()
    assert kind == "plain" and run("context", ident).returncode == 0
    assert "\x1b" not in title and title.startswith("first")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "check"), [("zsh", ["-f", "-n"]), ("fish", ["--no-execute"]), ("bash", ["-n"])])
def test_scripts_are_valid(name: str, check: list[str], tmp_path: Path, run: Run) -> None:
    path = tmp_path / f"script.{name}"
    path.write_text(run("completion", name).stdout)
    done = subprocess.run([shell(name), *check, str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_fish_offers_what_there_is(tmp_path: Path, env: dict[str, str]) -> None:
    def in_fish(line: str) -> list[str]:
        code = f"chatctx completion fish | source; complete -C '{line}'"
        done = subprocess.run(
            [shell("fish"), "--no-config", "-c", code], capture_output=True, text=True, cwd=tmp_path, env=env
        )
        return [line.split("\t")[0] for line in done.stdout.splitlines()]

    assert sorted(in_fish("chatctx ")) == sorted(NAMES)
    assert in_fish("chatctx completion z") == ["zsh"]
    assert in_fish("chatctx ask --at") == ["--attach"]


@pytest.mark.slow
def test_zsh_offers_what_there_is(tmp_path: Path, env: dict[str, str]) -> None:
    script = (
        "compdef() { }\n"
        'eval "$(chatctx completion zsh)"\n'
        "_describe() { print -l $completions_with_descriptions; }\n"
        "words=(chatctx co); CURRENT=2; _chatctx_completion"
    )
    done = subprocess.run([shell("zsh"), "-f", "-c", script], capture_output=True, text=True, cwd=tmp_path, env=env)
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["context", "count", "config", "completion"]


def test_another_shell_is_refused(run_here: Run) -> None:
    done = run_here("completion", "tcsh")
    assert "'bash', 'zsh', 'fish'" in one_line(done.stderr)
    assert done.returncode == 2

"""Completion scripts, run by the shells they are for."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run, one_line
from tests.corpus import required
from tui.cli.completion import bash, described, fish, zsh
from tui.cli.parser import build_parser

COMMANDS = list(described(build_parser()))
NAMES = [command.name for command in COMMANDS[1:]]


def shell(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        required(f"{name} is not installed")
    return found


def in_bash(line: str, folder: Path, **env: str) -> list[str]:
    """What Tab offers after `line`."""
    words = line.split(" ")
    script = bash(COMMANDS) + (
        f"\nCOMP_WORDS=({' '.join(map(repr, words))}); COMP_CWORD={len(words) - 1}; _chatctx chatctx"
        '\n(( ${#COMPREPLY[@]} )) && printf "%s\\n" "${COMPREPLY[@]}"; true'
    )
    done = subprocess.run(
        [shell("bash"), "--norc", "-c", script], capture_output=True, text=True, cwd=folder, env={**os.environ, **env}
    )
    assert done.returncode == 0
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_offers_commands_options_files_and_choices(tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").touch()
    assert in_bash("chatctx ", tmp_path) == NAMES
    assert in_bash("chatctx co", tmp_path) == ["context", "completion"]
    assert in_bash("chatctx --th", tmp_path) == ["--theme"]
    assert in_bash("chatctx -m x/y ask --at", tmp_path) == ["--attach"]
    assert in_bash("chatctx import ta", tmp_path) == ["talk.jsonl"]
    assert in_bash("chatctx import talk.jsonl ta", tmp_path) == ["talk.jsonl"]
    assert in_bash("chatctx ask --attach ta", tmp_path) == ["talk.jsonl"]
    assert in_bash("chatctx export 01 ta", tmp_path) == ["talk.jsonl"]
    assert in_bash("chatctx completion z", tmp_path) == ["zsh"]
    assert in_bash("chatctx replay --method h", tmp_path) == ["hybrid"]
    assert in_bash("chatctx ask wh", tmp_path) == []
    assert in_bash("chatctx nonsense ", tmp_path) == []


def test_bash_offers_session_ids(run: Run, tmp_path: Path) -> None:
    run("ask", "hello")
    ident = json.loads(run("sessions", "--json").stdout)[0]["id"]
    program = tmp_path / "bin" / "chatctx"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tui "$@"\n')
    program.chmod(0o755)
    env = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "CHATCTX_CONFIG": str(tmp_path / "config.toml"),
        "CHATCTX_DATA_DIR": str(tmp_path / "data"),
        "CHATCTX_LOG_DIR": str(tmp_path / "log"),
    }
    for line in ("chatctx context ", "chatctx --resume ", f"chatctx export {ident[:4]}", "chatctx usage -s "):
        assert in_bash(line, tmp_path, **env) == [ident]


@pytest.mark.parametrize(("name", "check"), [("zsh", ["-f", "-n"]), ("fish", ["--no-execute"]), ("bash", ["-n"])])
def test_scripts_are_valid(name: str, check: list[str], tmp_path: Path) -> None:
    path = tmp_path / f"script.{name}"
    path.write_text({"zsh": zsh, "fish": fish, "bash": bash}[name](COMMANDS))
    done = subprocess.run([shell(name), *check, str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_fish_offers_what_there_is(tmp_path: Path) -> None:
    path = tmp_path / "chatctx.fish"
    path.write_text(fish(COMMANDS))

    def offered(line: str) -> list[str]:
        code = f"source {path}; complete -C '{line}'"
        done = subprocess.run(
            [shell("fish"), "--no-config", "-c", code], capture_output=True, text=True, cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path)},
        )  # fmt: skip
        return [line.split("\t")[0] for line in done.stdout.splitlines()]

    assert sorted(offered("chatctx ")) == sorted(NAMES)
    assert offered("chatctx completion z") == ["zsh"]
    assert "--attach" in offered("chatctx ask --at")


def test_every_option_is_in_every_script() -> None:
    def options(parser: argparse.ArgumentParser) -> set[str]:
        found: set[str] = set()
        for action in parser._actions:
            found.update(action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                for sub in action.choices.values():
                    found |= options(sub)
        return found

    long = {name for name in options(build_parser()) if name.startswith("--")}
    assert "--attach" in long and "--days" in long
    for script in (bash(COMMANDS), zsh(COMMANDS)):
        assert {name for name in long if name not in script} == set()
    assert {name for name in long if f"-l {name[2:]}" not in fish(COMMANDS)} == set()


def test_the_command_prints_it(run: Run) -> None:
    assert run("completion", "fish").stdout == fish(COMMANDS) + "\n"
    done = run("completion", "tcsh")
    assert "bash, zsh or fish" in one_line(done.stderr) or "invalid choice" in done.stderr
    assert done.returncode == 2

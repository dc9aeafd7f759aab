"""The command line: what is parsed, and that help and README say the same."""

from __future__ import annotations

import json
import re
import shlex
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.cli.conftest import Run
from tui.cli.command_line import COMMANDS, EXAMPLES, ROOT, parse
from tui.cli.parsing import LAST, TEXT, Command
from tui.config.settings import Settings
from tui.providers.config import PRESETS

README = Path(__file__).resolve().parents[2] / "README.md"

BY_NAME = {str(command.name): command for command in COMMANDS}


def arguments(*argv: str) -> dict[str, Any]:
    return dict(parse(argv).arguments)


def command_lines(text: str) -> list[str]:
    """The calls of chatctx in `text`, each without what stands around it in the shell."""
    return [line.strip() for line in re.findall(r'chatctx(?: (?:"[^"]*"|\'[^\']*\'|[^|>)"\'\n`])*)?', text)]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_page_says_what_every_argument_is(command: Command) -> None:
    page = CliRunner().invoke(ROOT, [str(command.name), "--help"]).output
    assert len(str(command.short_help)) <= 60
    assert len(str(command.help).split()) >= 10
    assert command.examples
    assert all(param.help for param in command.params)
    assert command.examples[0][0] in page


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", *BY_NAME])
@pytest.mark.parametrize("columns", [80, 200])
def test_help_fits_80_columns(name: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    page = CliRunner().invoke(ROOT, [*([name] if name else []), "--help"]).output
    assert max(map(len, page.splitlines())) <= 80


@pytest.mark.parametrize("argv", [["-c"], ["--plain"], *([name] for name in BY_NAME)], ids=" ".join)
def test_what_runs_takes_the_arguments_it_is_given(argv: list[str]) -> None:
    """Every function that a command names is there, and its signature fits."""
    needed = {"export": ["01", "x.md"], "import": ["x"], "replay": ["x"], "completion": ["bash"], "config": ["schema"]}
    invocation = parse([*argv, *needed.get(argv[0], [])])
    module, _, function = invocation.runs.partition(":")
    signature(getattr(import_module(f"tui.cli.{module}"), function)).bind(Settings(), **invocation.arguments)


@pytest.mark.parametrize("line", [line for command in COMMANDS for line, _ in command.examples])
def test_examples_can_be_typed(line: str) -> None:
    calls = command_lines(line)
    assert calls or "pip install" in line
    for call in calls:
        parse(shlex.split(call)[1:])


def test_examples_of_the_first_page_can_be_typed() -> None:
    calls = [call for line, _ in EXAMPLES for call in command_lines(line)]
    assert len(calls) >= 5
    for call in calls:
        parse(shlex.split(call)[1:])


@pytest.mark.parametrize(
    "words", [["-5"], ["what", "is", "-.5"], ["- a list"], ["--dashed words"], ["--", "-x"], ["-"]]
)
def test_words_that_can_be_no_option_belong_to_the_question(words: list[str]) -> None:
    assert arguments("ask", *words)["text"] == tuple(word for word in words if word != "--")
    assert arguments("ask", "--system", words[-1], "hi")["system"] == words[-1]


@pytest.mark.parametrize("argv", [["ask", "-x"], ["ask", "hi", "--sytem", "x"], ["-5"], ["nonsense"], ["doctor", "x"]])
def test_what_is_no_option_nor_command_is_refused(argv: list[str]) -> None:
    with pytest.raises(click.UsageError):
        parse(argv)


def test_options_before_a_command_are_passed_to_it() -> None:
    invocation = parse(["-m", "a/b", "--theme", "t", "-c", "serve", "--gguf", "w"])
    assert invocation.settings == {"model": "a/b", "gguf": Path("w"), "theme": "t"}
    assert {"resume": LAST, **invocation.settings}.items() <= invocation.arguments.items()
    assert parse(["-m", "a/b", "ask", "-m", "c/d", "hi"]).settings["model"] == "c/d"
    assert arguments("--resume", "01", "ask", "hi")["resume"] == "01"
    assert arguments("ask", "hi")["resume"] is None
    assert arguments("ask", "-s", "01", "hi")["resume"] == "01"
    assert arguments("ask", "-c", "hi")["resume"] == LAST


def test_a_session_is_named_once() -> None:
    for argv in (
        ["-c", "-r", "01"], ["-c", "-r", "01", "ask", "hi"], ["ask", "-s", "01", "-c", "hi"],
        ["-c", "ask", "-s", "01", "hi"], ["-r", "01", "ask", "-c", "hi"], ["-c", "ask", "-c", "hi"],
    ):  # fmt: skip
        with pytest.raises(click.UsageError, match="can't go together"):
            parse(argv)


@pytest.mark.parametrize(
    "argv",
    [
        *(["-r", ""], ["-r", "", "ask", "hi"], ["ask", "-s", "", "hi"], ["context", ""], ["export", "", "a.md"]),
        *(["ask", "-m", "", "hi"], ["count", "-m", "", "a"], ["count", ""], ["ask", "-a", "", "hi"], ["import", ""]),
    ],
)
def test_an_empty_variable_names_nothing(argv: list[str]) -> None:
    with pytest.raises(click.UsageError, match="it is empty: name a"):
        parse(argv)


def test_help_is_printed(run_here: Run) -> None:
    for name in ("ask", "import"):
        done = run_here(name, "--help")
        assert done.returncode == 0
        assert "Examples:" in done.stdout


def test_the_readme_lists_every_command_and_no_other() -> None:
    text = README.read_text(encoding="utf-8")
    section = text[text.index("## Command line") :]
    block = section.split("```")[1]
    listed = set(re.findall(r"^(?:.*\| )?chatctx ([a-z]+)", block, re.MULTILINE))
    assert listed == set(BY_NAME)


def test_the_readme_lists_every_provider_with_its_key() -> None:
    section = README.read_text(encoding="utf-8").split("## Models")[1].split("```")[0]
    names = [word for name, config in PRESETS.items() if name != "demo" for word in (name, *config.key_env)]
    assert [word for word in names if f"`{word}`" not in section] == []


@pytest.mark.parametrize("command", ["ask", "context"])
def test_help_names_every_field_of_json(run_here: Run, command: str) -> None:
    run_here("ask", "hi")
    fields = json.loads(run_here(command, *(["hi"] if command == "ask" else []), "--json").stdout)
    about = re.split(r"\W+", (BY_NAME[command].help or "").split("With --json")[1])
    assert [name for name in fields if name not in about] == []


def test_an_argument_is_utf_8_also_where_the_locale_has_no_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    escaped = "é".encode().decode("ascii", "surrogateescape")  # as Python reads it with LC_ALL=C and no UTF-8 mode
    monkeypatch.setattr("os.fsencode", lambda text: text.encode("ascii", "surrogateescape"))
    assert TEXT.convert(escaped, None, None) == "é"
    with pytest.raises(click.BadParameter, match="is not UTF-8 text"):
        TEXT.convert("\udcff", None, None)

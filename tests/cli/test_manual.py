"""Help, README and parser say the same."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tui.cli.manual import MANUAL
from tui.cli.parser import EPILOG, build_parser
from tui.providers.models.presets import PRESETS

README = Path(__file__).resolve().parents[2] / "README.md"


def commands() -> dict[str, argparse.ArgumentParser]:
    (found,) = (a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(found.choices)


def command_lines(text: str) -> list[str]:
    """The calls of chatctx in `text`, each without what stands around it in the shell."""
    return [found.strip() for found in re.findall(r'chatctx(?: (?:"[^"]*"|\'[^\']*\'|[^|>)"\'\n`])*)?', text)]


def test_every_command_has_a_page_and_every_page_a_command() -> None:
    assert set(commands()) == set(MANUAL)


@pytest.mark.parametrize("name", MANUAL)
def test_a_page_says_what_every_argument_is(name: str) -> None:
    page, parser = MANUAL[name], commands()[name]
    assert len(page.help) <= 60
    assert len(page.description.split()) >= 10
    assert page.examples
    for action in parser._actions:
        assert action.help, action
    text = parser.format_help()
    assert max(map(len, text.splitlines())) <= 120
    assert page.examples[0][0] in text


@pytest.mark.parametrize("line", [line for page in MANUAL.values() for line, _ in page.examples])
def test_examples_can_be_typed(line: str) -> None:
    found = command_lines(line)
    assert found or "pip install" in line
    for call in found:
        if call != "chatctx":
            build_parser().parse_args(shlex.split(call)[1:])


def test_examples_of_the_first_page_can_be_typed() -> None:
    lines = [line.split("   ")[0] for line in EPILOG[EPILOG.index("examples") :].splitlines()[1:]]
    found = [call for line in lines for call in command_lines(re.split(r" {3,}", line.strip())[0])]
    assert len(found) >= 5
    for call in found:
        build_parser().parse_args(shlex.split(call)[1:])


def test_help_is_printed(run: Run) -> None:
    for name in ("ask", "import"):
        done = run(name, "--help")
        assert done.returncode == 0
        assert "example" in done.stdout


def test_the_readme_lists_every_command_and_no_other() -> None:
    text = README.read_text(encoding="utf-8")
    section = text[text.index("## Command line") :]
    block = section.split("```")[1]
    listed = set(re.findall(r"^(?:.*\| )?chatctx ([a-z]+)", block, re.MULTILINE))
    assert listed == set(commands())


def test_the_readme_lists_every_provider_with_its_key() -> None:
    section = README.read_text(encoding="utf-8").split("## Models")[1].split("```")[0]
    known = [word for name, config in PRESETS.items() if name != "demo" for word in (name, *config.key_env)]
    assert [word for word in known if f"`{word}`" not in section] == []

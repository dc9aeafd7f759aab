"""The list of commands: finding, parsing, completing, and when each may run."""

from __future__ import annotations

from pathlib import Path

import pytest

import tui.commands
from tests.commands.scripted_ui import Commands, ScriptedUI
from tui import commands as slash
from tui.chat.store.database import StoreError
from tui.commands import Chat
from tui.views.view import match, matching


def test_names_and_aliases_are_unique() -> None:
    names = [name for command in slash.all_commands() for name in (command.name, *command.aliases)]
    assert len(names) == len(set(names))


def test_every_module_is_a_command_and_has_a_test() -> None:
    modules = {path.stem for path in Path(tui.commands.__path__[0]).glob("*.py")} - slash.NO_COMMANDS - {"__init__"}
    assert len(slash.all_commands()) == len(modules)
    assert {command.name.replace("-", "_") for command in slash.all_commands()} == {m.rstrip("_") for m in modules}
    tests = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
    assert {module.rstrip("_") for module in modules} <= tests


def test_the_list_begins_with_what_changes_nothing_and_ends_with_leaving() -> None:
    names = [command.name for command in slash.all_commands()]
    assert names[0] == "context" and names[-1] == "quit"
    sections = [command.section for command in slash.all_commands()]
    assert sections == sorted(sections, key=slash.SECTIONS.index)


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ("/help", True),
        ("/etc/passwd?", False),
        ("//x", False),
        ("/", False),
        ("/a\nb", False),
        (" /help", False),
        ("x", False),
    ],
)
def test_what_is_meant_as_a_command(text: str, yes: bool) -> None:
    assert slash.is_command(text) is yes


def test_what_is_no_command_says_what_to_do() -> None:
    with pytest.raises(slash.CommandError, match=r"There is no command /contxt\. Did you mean /context\?"):
        slash.parse("/contxt please")
    with pytest.raises(slash.CommandError, match="/help lists"):
        slash.parse("/qqqqq")
    with pytest.raises(slash.CommandError, match=r"/new takes no argument\. To send it as a message, put a space"):
        slash.parse("/new idea for the parser")


@pytest.mark.parametrize(("query", "best"), [("co", "context"), ("cont", "context"), ("rol", "rolling-context")])
async def test_letters_in_order_find_a_command(query: str, best: str) -> None:
    choices = await slash.complete(ScriptedUI(), Chat(), f"/{query}")
    assert choices[0].key.strip() == f"/{best}"


async def test_enter_runs_the_command_that_was_typed() -> None:
    for command in slash.all_commands():
        for name in (command.name, *command.aliases):
            choices = await slash.complete(ScriptedUI(), Chat(), f"/{name}")
            assert choices[0].key.strip() == f"/{name}" and choices[0].label == command.usage


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("help", ["help", "helper", "my-help", "my-helper"]),
        ("gpt-5", ["gpt-5", "gpt-5-mini", "openai/gpt-5 ", "openai/gpt-5-mini GPT-5 mini", "mygpt-5"]),
    ],
)
def test_the_same_text_comes_first_then_a_whole_end(query: str, names: list[str]) -> None:
    assert matching(query, reversed(names), str) == names


def test_what_does_not_fit_scores_nothing() -> None:
    assert match("xyz", "context") == 0
    assert match("", "context") > 0


async def test_arguments_are_completed_until_one_is_whole(commands: Commands) -> None:
    assert await commands.completions("/rolling-context o") == ["/rolling-context on", "/rolling-context off"]
    assert await commands.completions("/rolling-context on") == []
    assert await commands.completions("/nope x") == await commands.completions("no command") == []


async def test_what_fails_is_logged_and_what_was_mistyped_is_not(
    commands: Commands, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(**_: object) -> None:
        raise StoreError("the disk is full")

    assert await commands.refusal("/thinking hunter2")
    assert caplog.records == []
    monkeypatch.setattr(commands.session.conversation, "update", fails)
    assert await commands.refusal("/rename hunter2") == "The disk is full."
    assert "/rename failed" in caplog.text and "the disk is full" in caplog.text
    assert "hunter2" not in caplog.text


async def test_before_there_is_a_conversation_most_commands_wait() -> None:
    for command in slash.all_commands():
        if command.when != "always" and not command.screen_only:
            ui = ScriptedUI()
            await slash.run(command, ui, Chat())
            assert ui.refusals == ["Still starting: try again in a moment."]
        assert await slash.complete(ScriptedUI(), Chat(), f"/{command.name} zzz") == []


async def test_what_would_change_a_running_turn_waits_for_it(commands: Commands) -> None:
    waits = "An answer is still coming: stop it or wait for it, then try again."
    for command in slash.all_commands():
        if command.when == "idle":
            assert (await commands.run(f"/{command.name} {command.args and 'x'}", busy=True)).refusals == [waits]
    assert (await commands.run("/tools off fetch", busy=True)).refusals == [waits]


async def test_what_needs_a_screen_says_so_in_lines(commands: Commands) -> None:
    commands.screen = None
    for command in slash.all_commands():
        if command.screen_only:
            assert await commands.refusal(f"/{command.name}") == (
                f"/{command.name} needs the screen: start chatctx without --plain."
            )


async def test_commands_that_run_programs_or_touch_files_are_off_in_a_browser(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(slash.RESTRICTED, "1")
    off = {command.name for command in slash.all_commands() if command.local_only}
    assert off == {"provider", "export", "import", "mcp", "edit", "paste"}
    for name in off:
        (refused,) = (await commands.run(f"/{name}")).refusals
        assert "is off in the browser" in refused


async def test_a_refusal_does_not_repeat_a_megabyte(commands: Commands) -> None:
    refusal = await commands.refusal("/find " + "pasted " * 150_000)
    assert refusal.startswith("'pasted") and refusal.endswith("is not in this conversation.")
    assert len(refusal) < 700
